import type { Kysely } from "kysely";
import type { AddressGuard } from "../../platform/notify/public-address.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { StorageKind } from "../../platform/storage/storage.ts";
import type { Entries } from "./entries.ts";
import type {
  Entry,
  EntryContent,
  EntryKind,
  HubCaller,
  SkillFile,
  Visibility,
  HubTables,
} from "./entry.ts";
import type { Hubs } from "./hubs.ts";
import {
  frontMatterMembers,
  readSkill,
  titleIn,
  zipOf,
  type ArchiveFile,
} from "./skill-document.ts";
import type { DocumentFetcher } from "./document-fetcher.ts";

/** The most characters of a body. */
export const bodyCharactersMax = 100_000;
const titleCharactersMax = 200;
const descriptionCharactersMax = 2_000;

/**
 * Matches control characters, line ends and direction marks, which a line that is shown to people
 * must not contain.
 */
export const unprintable = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** A document to be stored. */
export interface NewDocument {
  kind: EntryKind;
  body: string;
  name?: string | undefined;
  slug?: string | undefined;
  tags?: readonly string[] | undefined;
  /** The slug of the hub that receives it. */
  hub?: string | undefined;
  /** The visibility of a document outside of hubs; in a hub it follows the hub's. */
  visibility?: Visibility | undefined;
  sourceRef?: string | undefined;
  /** Files beside a skill's document. */
  files?: readonly SkillFile[] | undefined;
}

/** Options of the hub. */
export interface HubOptions {
  database: Kysely<HubTables>;
  kind: StorageKind;
  clock: Clock;
  /** Ranges of the operator's own networks from which skills may be imported. */
  importNetworks: readonly string[];
  resolve?: AddressGuard["resolve"];
}

const wrongBody = (problem: string): GatewayError => badField("body", problem);

/**
 * Returns a text as one line of at most this many characters, from a document that anyone may have
 * written.
 */
const lineOf = (text: string, charactersMax: number): string =>
  Array.from(text.replace(unprintable, " ")).slice(0, charactersMax).join("").toWellFormed().trim();

function assertKept(body: string): void {
  if (body.length > bodyCharactersMax)
    throw wrongBody(`must have at most ${bodyCharactersMax} characters.`);
  if (body.includes("\0")) throw wrongBody("must not hold a zero byte.");
  if (!body.isWellFormed()) throw wrongBody("must not hold half a character.");
}

/** Returns the content of a document, with the name and the tags that it is given. */
async function contentOf({
  kind,
  body,
  name,
  tags = [],
}: NewDocument): Promise<Omit<EntryContent, "bundle">> {
  assertKept(body);
  const rest = {
    category: null,
    tags,
    platforms: [],
    recommendedAgents: [],
    recommendedModel: null,
    body,
  };
  if (kind === "skill") {
    const head = await readSkill(body);
    return {
      ...rest,
      title: name ?? head.name,
      description: lineOf(head.description, descriptionCharactersMax),
    };
  }
  const { description } = await frontMatterMembers(body);
  const title = name ?? lineOf((await titleIn(body)) ?? "", titleCharactersMax);
  return {
    ...rest,
    title: title === "" ? "Untitled" : title,
    description:
      typeof description === "string" ? lineOf(description, descriptionCharactersMax) : null,
  };
}

/** Prompts, skills and hubs, and the operations on them. */
export class HubLibrary {
  readonly entries: Entries;
  readonly hubs: Hubs;
  private readonly fetcher: DocumentFetcher;
  /** Serialises imports: a workspace imports one skill at a time. */
  private readonly imports = new KeyedMutex();

  constructor(parts: { entries: Entries; hubs: Hubs; fetcher: DocumentFetcher }) {
    this.entries = parts.entries;
    this.hubs = parts.hubs;
    this.fetcher = parts.fetcher;
  }

  /**
   * Stores a document, in a hub where one is named. Throws `bad_request`, `not_found`, `forbidden`,
   * `duplicate_slug` and `conflict`.
   */
  async add(caller: HubCaller, document: NewDocument): Promise<Entry> {
    const hub =
      document.hub === undefined ? undefined : await this.hubs.findToAddTo(caller, document.hub);
    if (
      hub !== undefined &&
      document.visibility !== undefined &&
      document.visibility !== hub.visibility
    ) {
      throw badField("visibility", "is that of the hub. Leave it out.");
    }
    const content = await contentOf(document);
    const visibility = hub?.visibility ?? document.visibility ?? "workspace";
    const { kind, slug, sourceRef, files } = document;
    return this.entries.create(caller, { kind, content, files, visibility, slug, hub, sourceRef });
  }

  /** Returns the content of an entry with some fields changed; a new body is parsed again. */
  async changedContent(
    { kind, title, tags, body: bodyNow }: Entry,
    {
      body,
      name,
      tags: tagsWanted,
    }: { body?: string | undefined } & Pick<NewDocument, "name" | "tags">,
  ): Promise<Partial<EntryContent>> {
    const given = {
      ...(name === undefined ? {} : { title: name }),
      ...(tagsWanted === undefined ? {} : { tags: tagsWanted }),
    };
    if (body === undefined || body === bodyNow) return given;
    // A prompt's front matter is part of its text and does not describe it.
    if (kind === "prompt") {
      assertKept(body);
      return { ...given, body };
    }
    const read = await contentOf({
      kind,
      body,
      tags: tagsWanted ?? tags,
      name: kind === "skill" ? name : (name ?? title),
    });
    return { title: read.title, description: read.description, tags: read.tags, body };
  }

  /**
   * Copies a skill into a hub, from an address on the web or from a hub of this service. Throws as
   * `add` does.
   */
  async importSkill(
    caller: HubCaller,
    { hub, sourceRef }: { hub: string; sourceRef: string },
  ): Promise<Entry> {
    await this.hubs.findToAddTo(caller, hub);
    const [, slug, item] =
      /^\/?(?:hubs\/)?([\w-]{1,100})\/(?:items\/)?([\w-]{1,100})$/.exec(sourceRef) ?? [];
    if (slug !== undefined && item !== undefined) {
      const { entry } = await this.hubs.findItem(caller, { slug, item });
      const files = await this.entries.filesOf(entry);
      return this.add(caller, { kind: "skill", hub, body: entry.body, files, sourceRef });
    }
    return this.imports.run(caller.workspaceId, async () => {
      const fetched = await this.fetcher.fetch(sourceRef);
      return this.add(caller, { kind: "skill", hub, ...fetched, sourceRef });
    });
  }

  /**
   * Returns a zip archive of a skill: its folder with `SKILL.md` and its files, as agents expect
   * it.
   */
  async exportSkill(entry: Entry): Promise<Uint8Array<ArrayBuffer>> {
    return zipOf(await this.skillFiles(entry, entry.slug ?? "skill"));
  }

  private async skillFiles(entry: Entry, folder: string): Promise<ArchiveFile[]> {
    const files = await this.entries.filesOf(entry);
    return [
      { path: `${folder}/SKILL.md`, data: entry.body },
      ...files.map(({ path, data }) => ({ path: `${folder}/${path}`, data })),
    ];
  }

  /**
   * Returns a zip archive of a hub: a folder for each kind, and one for each skill in it. Throws
   * `not_found`, and `conflict` where its skills' files are too large together.
   */
  async exportHub(caller: HubCaller, slug: string): Promise<Uint8Array<ArrayBuffer>> {
    const hub = await this.hubs.find(caller, slug);
    const scope = hub.workspaceId === caller.workspaceId ? "own" : "public";
    const { data } = await this.entries.list(caller, { scope, hubId: hub.id, limit: exportedMax });
    const bytes = data
      .flatMap(({ bundle }) => bundle?.files ?? [])
      .reduce((sum, file) => sum + file.bytes, 0);
    if (bytes > exportedBytesMax) {
      throw new GatewayError(
        "conflict",
        `The files of this hub's skills have more than ${exportedBytesMax} bytes. Export the skills one by one.`,
      );
    }
    const files: ArchiveFile[] = [];
    for (const entry of data) {
      const { kind, slug: name, body } = entry;
      if (kind === "skill")
        files.push(...(await this.skillFiles(entry, `${hub.slug}/skills/${name}`)));
      else {
        const folder = kind === "kb" ? "knowledge" : `${kind}s`;
        files.push({ path: `${hub.slug}/${folder}/${name}.md`, data: body });
      }
    }
    return zipOf(files);
  }
}

/** The most bytes of files beside documents in an archive of a hub. */
const exportedBytesMax = 25_000_000;

/** The most items in an archive of a hub, newest first; as many as a hub may contain. */
const exportedMax = 1_000;
