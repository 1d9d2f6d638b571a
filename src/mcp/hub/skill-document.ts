import { badField, type GatewayError } from "../../platform/kernel/errors.ts";
import { fieldsOf } from "../../platform/kernel/json/json-members.ts";

/** The members of a skill's front matter that name it. */
interface SkillHead {
  name: string;
  description: string;
}

/** A file of an archive: its path inside, with slashes, and its content. */
export interface ArchiveFile {
  path: string;
  data: string | Uint8Array;
}

const headBytesMax = 16 * 1024;
/** The most characters of a name (agentskills.io/specification). */
const nameCharactersMax = 64;
const descriptionCharactersMax = 1_024;
const namePattern = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

const wrong = (problem: string): GatewayError => badField("body", problem);

/**
 * Returns the YAML between the two lines of dashes at the beginning of a document; undefined where
 * there is none.
 */
function frontMatterOf(body: string): string | undefined {
  const [, head] =
    /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(body.slice(0, headBytesMax)) ??
    [];
  return head;
}

/**
 * Returns the members of a document's front matter; none where it has no front matter, or one that
 * is not a YAML mapping.
 */
export async function frontMatterMembers(body: string): Promise<Readonly<Record<string, unknown>>> {
  const head = frontMatterOf(body);
  if (head === undefined) return {};
  const { parse } = await import("yaml");
  try {
    // Aliases are refused: a few nested ones expand to gigabytes.
    const members: unknown = parse(head, { maxAliasCount: 0, schema: "core", logLevel: "silent" });
    return fieldsOf(members);
  } catch (error) {
    throw wrong(
      `its front matter is not valid YAML: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}`,
    );
  }
}

/**
 * Parses the head of a `SKILL.md`, as Agent Skills define it. Throws `bad_request` where the
 * document is no skill.
 */
export async function readSkill(body: string): Promise<SkillHead> {
  if (frontMatterOf(body) === undefined) {
    throw wrong(
      "must be a SKILL.md: it begins with front matter that has name and description, between two lines of ---.",
    );
  }
  const { name, description } = await frontMatterMembers(body);
  if (typeof name !== "string" || name.length > nameCharactersMax || !namePattern.test(name)) {
    throw wrong(
      `name in its front matter must have at most ${nameCharactersMax} lower-case letters, digits and single dashes.`,
    );
  }
  if (
    typeof description !== "string" ||
    description.trim() === "" ||
    description.length > descriptionCharactersMax
  ) {
    throw wrong(
      `description in its front matter must have 1 to ${descriptionCharactersMax} characters.`,
    );
  }
  return { name, description: description.trim() };
}

/**
 * Returns a name from a document that was given none: `name` or `title` of its front matter, or its
 * first heading.
 */
export async function titleIn(body: string): Promise<string | undefined> {
  const { name, title } = await frontMatterMembers(body);
  const heading = /^#{1,6}[ \t]+(.+?)[ \t#]*$/m.exec(body)?.[1];
  return [name, title, heading]
    .find((each): each is string => typeof each === "string" && each.trim() !== "")
    ?.trim()
    .slice(0, 200);
}

/** Returns a zip archive of files; the same bytes for the same files. */
export async function zipOf(files: readonly ArchiveFile[]): Promise<Uint8Array<ArrayBuffer>> {
  const { strToU8, zipSync } = await import("fflate");
  const mtime = new Date(1980, 0, 1);
  return zipSync(
    Object.fromEntries(
      files.map(({ path, data }) => [
        path,
        [typeof data === "string" ? strToU8(data) : data, { mtime }],
      ]),
    ),
  );
}

/** The error for a source that cannot be imported. */
export const refused = (problem: string): GatewayError => badField("source_ref", problem);

/**
 * Known forges, and where each serves a raw file of a repository, at its default branch unless a
 * ref is named.
 */
const forges: Readonly<
  Record<string, (repository: string, file: { ref: string; path: string }) => string>
> = {
  "github.com": (repository, { ref, path }) =>
    `https://raw.githubusercontent.com/${repository}/${ref}/${path}`,
  "gitlab.com": (repository, { ref, path }) =>
    `https://gitlab.com/${repository}/-/raw/${ref}/${path}`,
  "bitbucket.org": (repository, { ref, path }) =>
    `https://bitbucket.org/${repository}/raw/${ref}/${path}`,
  "codeberg.org": (repository, { ref, path }) =>
    `https://codeberg.org/${repository}/raw/${ref}/${path}`,
};

const documentName = "SKILL.md";

/** Returns the file inside a repository that the path of a folder or file means. */
const skillFile = (path: string): string =>
  /\.(md|markdown)$/i.test(path) ? path : [path, documentName].filter(Boolean).join("/");

/**
 * Returns the address of the document that a source names. A page of a repository at a known forge
 * becomes the raw file; any other address is used as it is. Throws `bad_request`.
 */
export function documentUrl(source: string): string {
  const url = URL.canParse(source) ? new URL(source) : undefined;
  if (url === undefined)
    throw refused(
      "must be the https URL of a SKILL.md or a public Git repository, or <hub>/<item> of this service.",
    );
  const raw = forges[url.hostname];
  if (raw === undefined) return url.href;
  const [, repository = "", , ref, path = ""] =
    /^\/([\w.-]+\/[\w.-]+?)(?:\.git)?(\/(?:-\/)?(?:tree|blob|src|raw)\/(?:branch\/)?([\w.-]+)\/?(.*?))?\/?$/.exec(
      url.pathname,
    ) ?? [];
  if (repository === "")
    throw refused(
      "names no repository. Write https://github.com/<owner>/<repository>/tree/<ref>/<folder>.",
    );
  return raw(repository, { ref: ref ?? "HEAD", path: skillFile(path) });
}
