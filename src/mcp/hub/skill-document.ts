import { GatewayError } from "../../platform/kernel/errors.ts";

/** What the front matter of a skill names it by. */
export interface SkillHead {
  name: string;
  description: string;
}

/** A file of an archive: its path inside, with slashes, and what it holds. */
export interface ArchiveFile {
  path: string;
  data: string | Uint8Array;
}

const headBytesMax = 16 * 1024;
/** Agent Skills (agentskills.io/specification): at most so many characters. */
const nameCharactersMax = 64;
const descriptionCharactersMax = 1_024;
const namePattern = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

const wrong = (problem: string): GatewayError =>
  new GatewayError("bad_request", `body: ${problem}`, { param: "body" });

/**
 * The YAML between the two lines of dashes that a document begins with; undefined where it does
 * not.
 */
function frontMatterOf(body: string): string | undefined {
  const [, head] =
    /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(body.slice(0, headBytesMax)) ??
    [];
  return head;
}

/**
 * Members of a document's front matter; none where it has no front matter, or one that is no YAML
 * mapping.
 */
export async function frontMatterMembers(body: string): Promise<Readonly<Record<string, unknown>>> {
  const head = frontMatterOf(body);
  if (head === undefined) return {};
  const { parse } = await import("yaml");
  try {
    // Aliases are refused: a few of them in each other unfold to gigabytes.
    const members: unknown = parse(head, { maxAliasCount: 0, schema: "core", logLevel: "silent" });
    return typeof members === "object" && members !== null && !Array.isArray(members)
      ? { ...members }
      : {};
  } catch (error) {
    throw wrong(
      `its front matter is not valid YAML: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}`,
    );
  }
}

/**
 * The head of a `SKILL.md`, as Agent Skills have it. Throws `bad_request` where the document is no
 * skill.
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
 * A name out of a document that was given none: `name` or `title` of its front matter, or its first
 * heading.
 */
export async function titleIn(body: string): Promise<string | undefined> {
  const { name, title } = await frontMatterMembers(body);
  const heading = /^#{1,6}[ \t]+(.+?)[ \t#]*$/m.exec(body)?.[1];
  return [name, title, heading]
    .find((each): each is string => typeof each === "string" && each.trim() !== "")
    ?.trim()
    .slice(0, 200);
}

/** A zip archive of files, the same bytes for the same files. */
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
