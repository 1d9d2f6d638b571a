import type { Clock } from "../../platform/kernel/clock.ts";
import { DistinctTime } from "../../platform/kernel/time/distinct-time.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { mayBeId, newId, type IdPrefix } from "../../platform/kernel/ids.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import {
  assertMayChange,
  pageOf,
  readCursor,
  slugFrom,
  type Entry,
  type EntryContent,
  type EntryKind,
  type FileBundle,
  type Hub,
  type HubCaller,
  type Page,
  type ReviewStatus,
  type SkillFile,
  type Visibility,
} from "./entry.ts";
import type { EntryQuery, EntryStore, EntryVersion } from "./entry-store.ts";
import { readSkill } from "./skill-document.ts";

/** The most bytes of files beside documents in a workspace. */
const workspaceFileBytesMax = 100_000_000;

/** The most entries of a workspace, and of a hub. */
const entriesMax = 5_000;
const hubItemsMax = 1_000;

const prefixes: Readonly<Record<EntryKind, IdPrefix>> = {
  prompt: "prm",
  skill: "skl",
  kb: "kbd",
  plugin: "plg",
};
const nouns: Readonly<Record<EntryKind, string>> = {
  prompt: "prompt",
  skill: "skill",
  kb: "knowledge document",
  plugin: "plugin",
};

/**
 * A new entry. Its slug is derived from its name where none is given; a prompt outside of hubs has
 * none.
 */
export interface NewEntry {
  kind: EntryKind;
  content: Omit<EntryContent, "bundle">;
  /** Files beside a skill's document. */
  files?: readonly SkillFile[] | undefined;
  visibility: Visibility;
  slug?: string | undefined;
  hub?: Pick<Hub, "id" | "slug"> | undefined;
  forkedFrom?: string | undefined;
  sourceRef?: string | undefined;
}

/** The fields of an entry that may be changed; absent ones stay as they are. */
export interface EntryChanges {
  content?: Partial<EntryContent>;
  visibility?: Visibility | undefined;
  slug?: string | undefined;
}

/** The query of a list. */
export type ListQuery = Omit<EntryQuery, "after"> & { cursor?: string | undefined };

const placeOf = ({ createdAtMs, id }: Entry): { atMs: number; id: string } => ({
  atMs: createdAtMs,
  id,
});

const noEntry = (kind: EntryKind | undefined): GatewayError =>
  new GatewayError(
    "not_found",
    `There is no ${kind === undefined ? "entry" : nouns[kind]} with this id.`,
  );

const duplicateSlug = (slug: string): GatewayError =>
  new GatewayError(
    "duplicate_slug",
    `There is ${JSON.stringify(slug)} here already. Choose another slug.`,
    { param: "slug" },
  );

function bundleOf(files: readonly SkillFile[], nowMs: number): FileBundle | null {
  if (files.length === 0) return null;
  return {
    id: newId("bnd", nowMs),
    files: files.map(({ path, data }) => ({ path, bytes: data.length })),
  };
}

/**
 * Returns the public state of an entry that has just been written: prompts become public once an
 * operator has approved them, everything else at once.
 */
function publicState(
  entry: Pick<Entry, "kind" | "visibility" | "version" | "publicVersion">,
): Pick<Entry, "status" | "publicVersion"> {
  if (entry.visibility !== "public") return { status: null, publicVersion: null };
  return entry.kind === "prompt"
    ? { status: "pending_review", publicVersion: entry.publicVersion }
    : { status: null, publicVersion: entry.version };
}

/** Creates, changes, stars, forks and reviews prompts, skills, knowledge documents and plugins. */
export class Entries {
  readonly store: EntryStore;
  private readonly clock: Clock;
  private readonly time: DistinctTime;
  private readonly mutex = new KeyedMutex();

  constructor(options: { store: EntryStore; clock: Clock }) {
    this.store = options.store;
    this.clock = options.clock;
    this.time = new DistinctTime(options.clock);
  }

  /**
   * Returns the entry with this id and kind. Throws `not_found`, also for entries that the caller
   * may not see.
   */
  async find(caller: HubCaller, id: string, kind?: EntryKind): Promise<Entry> {
    const entry = mayBeId(id) ? await this.store.find(caller, id) : undefined;
    if (entry === undefined || (kind !== undefined && entry.kind !== kind)) throw noEntry(kind);
    return entry;
  }

  /**
   * Returns entries that the caller sees, newest first. Throws `bad_request` for a malformed
   * cursor.
   */
  async list(caller: HubCaller, { cursor, ...query }: ListQuery): Promise<Page<Entry>> {
    const after = cursor === undefined ? undefined : readCursor(cursor);
    const found = await this.store.list(caller, { ...query, after, limit: query.limit + 1 });
    return pageOf(found, query.limit, placeOf);
  }

  /**
   * Returns versions of an entry, newest first: all of them for its workspace, the published one
   * for others. Throws `not_found`.
   */
  async versions(caller: HubCaller, id: string, kind?: EntryKind): Promise<EntryVersion[]> {
    const entry = await this.find(caller, id, kind);
    const versions = await this.store.versions(id);
    return entry.workspaceId === caller.workspaceId
      ? versions
      : versions.filter(({ version }) => version === entry.version);
  }

  /** Stores a new entry. Throws `duplicate_slug`, and `conflict` where there are too many. */
  create(
    caller: HubCaller,
    { kind, content, files = [], visibility, slug, hub, ...origin }: NewEntry,
  ): Promise<Entry> {
    return this.mutex.run(caller.workspaceId, async () => {
      await this.assertRoom(caller, hub?.id);
      if (files.length > 0) await this.assertRoomForFiles(caller, files);
      const nowMs = this.time.nextMs();
      const hasSlug = hub !== undefined || kind === "skill";
      const entry: Entry = {
        ...content,
        id: newId(prefixes[kind], nowMs),
        bundle: bundleOf(files, nowMs),
        kind,
        workspaceId: caller.workspaceId,
        personId: caller.personId,
        hubId: hub?.id ?? null,
        hubSlug: hub?.slug ?? null,
        slug: null,
        visibility,
        version: 1,
        stars: 0,
        forks: 0,
        starred: false,
        ...publicState({ kind, visibility, version: 1, publicVersion: null }),
        forkedFrom: origin.forkedFrom ?? null,
        sourceRef: origin.sourceRef ?? null,
        reviewNote: null,
        reviewedBy: null,
        reviewedAtMs: null,
        createdAtMs: nowMs,
        updatedAtMs: nowMs,
      };
      return hasSlug ? this.insertWithSlug(entry, files, slug) : this.insertAs(entry, files, null);
    });
  }

  /**
   * Changes an entry; different content creates a new version. Throws `not_found`, `forbidden`,
   * `duplicate_slug` and `bad_request`.
   */
  change(
    caller: HubCaller,
    id: string,
    { content, visibility, slug, kind }: EntryChanges & { kind?: EntryKind },
  ): Promise<Entry> {
    return this.mutex.run(id, async () => {
      const entry = await this.find(caller, id, kind);
      assertMayChange(caller, entry);
      if (visibility !== undefined && entry.hubId !== null && visibility !== entry.visibility) {
        throw badField("visibility", "is that of its hub. Change the hub.");
      }
      const written: Entry = {
        ...entry,
        ...content,
        visibility: visibility ?? entry.visibility,
        slug: slug ?? entry.slug,
      };
      const newVersion = (Object.keys(content ?? {}) as (keyof EntryContent)[]).some(
        (field) => JSON.stringify(entry[field]) !== JSON.stringify(written[field]),
      );
      const shown = newVersion || written.visibility !== entry.visibility;
      const numbered = {
        ...written,
        version: entry.version + (newVersion ? 1 : 0),
        updatedAtMs: this.clock.nowMs(),
      };
      const changed: Entry = { ...numbered, ...(shown ? publicState(numbered) : {}) };
      await this.refusingDuplicates(changed.slug, () => this.store.update(changed, { newVersion }));
      return changed;
    });
  }

  /** Deletes an entry with its versions and stars. Throws `not_found` and `forbidden`. */
  async remove(caller: HubCaller, id: string, kind?: EntryKind): Promise<void> {
    const entry = await this.find(caller, id, kind);
    assertMayChange(caller, entry);
    await this.store.remove([id]);
  }

  /** Stars or unstars an entry. Throws `not_found`. */
  async setStar(
    caller: HubCaller,
    id: string,
    { starred, kind }: { starred: boolean; kind?: EntryKind },
  ): Promise<Entry> {
    await this.find(caller, id, kind);
    await this.store.setStar(caller, { id, starred, nowMs: this.clock.nowMs() });
    return this.find(caller, id, kind);
  }

  /** Copies an entry into the caller's workspace, by default as private. Throws `not_found`. */
  async fork(
    caller: HubCaller,
    id: string,
    {
      visibility = "private",
      kind,
      ...changes
    }: { visibility?: Visibility | undefined; kind: EntryKind } & Partial<EntryContent>,
  ): Promise<Entry> {
    const {
      title,
      description,
      category,
      tags,
      platforms,
      recommendedAgents,
      recommendedModel,
      body,
      bundle,
    } = await this.find(caller, id, kind);
    const content = {
      title,
      description,
      category,
      tags,
      platforms,
      recommendedAgents,
      recommendedModel,
      body,
      ...changes,
    };
    if (kind === "skill" && changes.body !== undefined)
      content.description = (await readSkill(content.body)).description;
    const files = await this.filesOf({ bundle });
    return this.create(caller, { kind, content, files, visibility, forkedFrom: id });
  }

  /** Returns the files beside a skill's document. */
  async filesOf({ bundle }: Pick<Entry, "bundle">): Promise<SkillFile[]> {
    return bundle === null ? [] : await this.store.files.read(bundle);
  }

  /** Returns prompts that await a review, or that had one, the longest waiting first. */
  async reviewList(query: {
    status: ReviewStatus;
    cursor?: string | undefined;
    offset?: number | undefined;
    limit: number;
  }): Promise<Page<Entry>> {
    const after = query.cursor === undefined ? undefined : readCursor(query.cursor);
    return pageOf(
      await this.store.reviewList({ ...query, after, limit: query.limit + 1 }),
      query.limit,
      placeOf,
    );
  }

  /**
   * Approves or rejects the newest version of a public prompt; a rejection also withdraws an
   * approved version. Throws `not_found`, and `conflict` where the prompt is not public or has
   * another version by now.
   */
  review(
    id: string,
    {
      approve,
      note,
      version,
      by,
    }: { approve: boolean; note: string | null; version?: number | undefined; by: string },
  ): Promise<Entry> {
    return this.mutex.run(id, async () => {
      const entry = mayBeId(id) ? await this.store.findForReview(id) : undefined;
      if (entry?.kind !== "prompt") throw noEntry("prompt");
      if (entry.status === null)
        throw new GatewayError(
          "conflict",
          "This prompt is not public, so there is nothing to review.",
        );
      if (version !== undefined && version !== entry.version) {
        throw new GatewayError(
          "conflict",
          `The prompt has version ${entry.version} by now. Read it again.`,
          { param: "version" },
        );
      }
      const withdrawn = entry.publicVersion === entry.version ? null : entry.publicVersion;
      const reviewed: Entry = {
        ...entry,
        status: approve ? "approved" : "rejected",
        publicVersion: approve ? entry.version : withdrawn,
        reviewNote: note,
        reviewedBy: by,
        reviewedAtMs: this.clock.nowMs(),
      };
      await this.store.update(reviewed, { newVersion: false });
      return reviewed;
    });
  }

  private async assertRoom({ workspaceId }: HubCaller, hubId: string | undefined): Promise<void> {
    if ((await this.store.countOf({ workspaceId })) >= entriesMax) {
      throw new GatewayError(
        "conflict",
        `The workspace has ${entriesMax} prompts, skills and documents. Delete some.`,
      );
    }
    if (hubId !== undefined && (await this.store.countOf({ hubId })) >= hubItemsMax) {
      throw new GatewayError(
        "conflict",
        `The hub has ${hubItemsMax} items. Delete some, or make another hub.`,
      );
    }
  }

  private async assertRoomForFiles(
    { workspaceId }: HubCaller,
    files: readonly SkillFile[],
  ): Promise<void> {
    const bytes = files.reduce((sum, { data }) => sum + data.length, 0);
    if ((await this.store.files.bytesOf(workspaceId)) + bytes <= workspaceFileBytesMax) return;
    throw new GatewayError(
      "conflict",
      `The workspace's skills have ${workspaceFileBytesMax} bytes of files. Delete some.`,
    );
  }

  private async insertAs(
    entry: Entry,
    files: readonly SkillFile[],
    slug: string | null,
  ): Promise<Entry> {
    await this.store.insert({ ...entry, slug }, files);
    return { ...entry, slug };
  }

  /** Inserts an entry with the requested slug, or the first free one. */
  private async insertWithSlug(
    entry: Entry,
    files: readonly SkillFile[],
    wanted: string | undefined,
  ): Promise<Entry> {
    if (wanted !== undefined)
      return this.refusingDuplicates(wanted, () => this.insertAs(entry, files, wanted));
    const base = slugFrom(entry.title) || entry.kind;
    for (const slug of [base, ...[2, 3, 4, 5].map((number) => `${base}-${number}`)]) {
      try {
        return await this.insertAs(entry, files, slug);
      } catch (error) {
        if (!isUniqueViolation(error)) throw error;
      }
    }
    return this.insertAs(entry, files, `${base}-${entry.id.slice(-8)}`);
  }

  private async refusingDuplicates<Result>(
    slug: string | null,
    work: () => Promise<Result>,
  ): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      throw isUniqueViolation(error) ? duplicateSlug(slug ?? "this") : error;
    }
  }
}
