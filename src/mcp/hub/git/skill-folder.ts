import type { AddressGuard } from "../../../platform/notify/public-address.ts";
import type { SkillFile } from "../entry.ts";
import { GitError, type GitObject, type GitObjects } from "./packfile.ts";
import { GitRemote } from "./git-remote.ts";

/** A folder of a repository at one of its commits. */
export interface GitSource {
  /** The address of the repository, as `git clone` accepts it. */
  repository: string;
  /** A branch, tag or commit; absent means the default branch. */
  ref?: string;
  /** The path of the folder; empty for the repository itself. */
  folder: string;
}

/** A skill in a folder. */
export interface SkillFolder {
  document: Buffer;
  files: readonly SkillFile[];
}

/** The most files beside the document, and the most bytes of one and of all of them. */
const skillFilesMax = 100;
const skillFileBytesMax = 512_000;
const skillBytesMax = 2_000_000;

const documentName = "SKILL.md";
/**
 * The folders of a skill that are imported with all they contain (agentskills.io/specification).
 */
const foldersTaken = ["scripts", "references", "assets"];
const depthMax = 8;
const entriesMax = 5_000;

/** Hosts whose pages of a repository are at `/<owner>/<repository>/<page>/<ref>/<path>`. */
const shortPages = ["github.com", "codeberg.org", "bitbucket.org"];

/**
 * Returns the folder of a repository that an address names: `https://host/path.git#ref:folder`,
 * with `git+` before it also without `.git`; or a page of a forge that shows a folder or its
 * SKILL.md. Undefined for any other address.
 */
export function gitSource(address: string): GitSource | undefined {
  const isNamed = address.startsWith("git+");
  const text = isNamed ? address.slice(4) : address;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) return undefined;
  const path = url.pathname.replace(/\/+$/, "");
  if (isNamed || path.endsWith(".git")) {
    const [ref = "", folder = ""] = decoded(url.hash.slice(1)).split(/:(.*)/s);
    return source(`${url.origin}${path}`, ref, folder);
  }
  const page = pageOf(url.hostname, path);
  return page && source(`${url.origin}${page.repository}.git`, page.ref, decoded(page.folder));
}

/** Returns the parts of a page's path: GitLab's, Gitea's, and those of known hosts. */
function pageOf(
  host: string,
  path: string,
): { repository: string; ref: string; folder: string } | undefined {
  const [, repository, ref = "", folder = ""] =
    /^(\/.+?)\/(?:-\/(?:tree|blob|raw)|src\/(?:branch|tag|commit))\/([^/]+)(?:\/(.*))?$/.exec(
      path,
    ) ?? [];
  if (repository !== undefined) return { repository, ref, folder };
  if (!shortPages.includes(host) && host !== "gitlab.com") return undefined;
  const [, known, knownRef = "", knownFolder = ""] =
    /^(\/[\w.-]+\/[\w.-]+)(?:\/(?:tree|blob|src|raw)\/([^/]+)(?:\/(.*))?)?$/.exec(path) ?? [];
  return known === undefined
    ? undefined
    : { repository: known, ref: knownRef, folder: knownFolder };
}

/** Returns a source; undefined where the path names a file other than the document. */
function source(repository: string, ref: string, path: string): GitSource | undefined {
  const parts = path.split("/").filter(Boolean);
  if (parts.at(-1) === documentName) parts.pop();
  else if (/\.(md|markdown)$/i.test(parts.at(-1) ?? "")) return undefined;
  return { repository, folder: parts.join("/"), ...(ref === "" ? {} : { ref }) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Reads a skill from a repository: its document, the files beside it, and those of the folders of a
 * skill. Throws `GitError`.
 */
export async function readSkillFolder(
  { repository, ref, folder }: GitSource,
  { guard, signal }: { guard: AddressGuard; signal: AbortSignal },
): Promise<SkillFolder> {
  const remote = await GitRemote.open(repository, guard, signal);
  const commit = await remote.resolve(ref);
  const objects = await remote.fetch({ ids: [commit], shallow: true, withoutBlobs: true });
  const entries = new FolderReader(objects).entries(commit, folder);
  if (remote.filters) {
    const ids = [...new Set(entries.map(({ id }) => id))].filter((id) => !objects.has(id));
    if (ids.length > 0)
      for (const [id, object] of await remote.fetch({ ids })) objects.set(id, object);
  }
  return folderOf(entries, objects);
}

/** A file in a tree, by its path inside the folder that is read. */
interface FileEntry {
  path: string;
  id: string;
}

interface TreeEntry {
  mode: string;
  name: string;
  id: string;
}

const modes = { folder: "40000", link: "120000", repository: "160000" } as const;

class FolderReader {
  private seen = 0;

  constructor(private readonly objects: GitObjects) {}

  /** Returns the files of a skill's folder at a commit. */
  entries(commit: string, folder: string): FileEntry[] {
    const text = this.object(commit, "commit").data.toString("latin1");
    let tree = /^tree ([0-9a-f]+)\n/.exec(text)?.[1];
    for (const name of folder.split("/").filter(Boolean)) {
      tree = this.tree(tree ?? "").find((each) => each.name === name && isFolder(each))?.id;
      if (tree === undefined) throw new GitError("has no such folder");
    }
    const top = this.tree(tree ?? "");
    const files = top.filter((entry) => !isFolder(entry) && isShown(entry));
    const folders = top.filter((entry) => isFolder(entry) && foldersTaken.includes(entry.name));
    return bounded([
      ...files.map((entry) => fileOf(entry, "")),
      ...folders.flatMap(({ id, name }) => this.below(id, `${name}/`, 1)),
    ]);
  }

  private below(id: string, path: string, depth: number): FileEntry[] {
    if (depth > depthMax) throw new GitError("has a skill whose folders are too deep");
    return this.tree(id)
      .filter(isShown)
      .flatMap((entry) =>
        isFolder(entry)
          ? this.below(entry.id, `${path}${soundName(entry.name)}/`, depth + 1)
          : [fileOf(entry, path)],
      );
  }

  private tree(id: string): TreeEntry[] {
    const entries = treeEntries(this.object(id, "tree").data, id.length / 2);
    this.seen += entries.length;
    if (this.seen > entriesMax) throw new GitError("has a skill of too many files");
    return entries;
  }

  private object(id: string, type: GitObject["type"]): GitObject {
    const object = this.objects.get(id);
    if (object?.type !== type) throw new GitError("did not send what its commit consists of");
    return object;
  }
}

const isFolder = ({ mode }: TreeEntry): boolean => mode === modes.folder;
const isShown = ({ name }: TreeEntry): boolean => !name.startsWith(".");

/**
 * Parses the entries of a tree: mode, a space, the name, a zero byte and the id's bytes, one after
 * another.
 */
function treeEntries(data: Buffer, idLength: number): TreeEntry[] {
  const entries: TreeEntry[] = [];
  for (let at = 0; at < data.length; ) {
    const space = data.indexOf(0x20, at);
    const zero = data.indexOf(0, space);
    const end = zero + 1 + idLength;
    if (space < 0 || zero < 0 || end > data.length) throw new GitError("sent a damaged tree");
    entries.push({
      mode: data.toString("latin1", at, space).replace(/^0+/, ""),
      name: data.toString("utf8", space + 1, zero),
      id: data.toString("hex", zero + 1, end),
    });
    at = end;
  }
  return entries;
}

/** Returns a name that means the same file wherever an archive with it is unpacked, or throws. */
function soundName(name: string): string {
  const isSound =
    name.length > 0 &&
    name.length <= 200 &&
    name.isWellFormed() &&
    !/[\p{Cc}\p{Cf}\ufffd\\/:*?"<>|]/u.test(name) &&
    !/^\.{1,2}$|[. ]$/.test(name);
  if (!isSound) throw new GitError("has a skill with a file name that is not allowed");
  return name;
}

function fileOf({ mode, name, id }: TreeEntry, path: string): FileEntry {
  if (mode === modes.link) throw new GitError("has a skill with a symbolic link");
  if (mode === modes.repository) throw new GitError("has a skill with a submodule");
  if (!mode.startsWith("100")) throw new GitError("sent a damaged tree");
  return { path: `${path}${soundName(name)}`, id };
}

/**
 * Returns the files, after checking that they are few enough and that no two would be unpacked to
 * the same place.
 */
function bounded(entries: FileEntry[]): FileEntry[] {
  if (entries.length > skillFilesMax + 1)
    throw new GitError(`has a skill of more than ${skillFilesMax} files beside SKILL.md`);
  const places = new Set(entries.map(({ path }) => path.normalize("NFC").toLowerCase()));
  if (places.size !== entries.length) throw new GitError("has a skill with one file name twice");
  if (!entries.some(({ path }) => path === documentName))
    throw new GitError("has no SKILL.md in this folder");
  return entries.sort((left, right) => (left.path < right.path ? -1 : 1));
}

function folderOf(entries: readonly FileEntry[], objects: GitObjects): SkillFolder {
  const files = entries.map(({ path, id }): SkillFile => {
    const object = objects.get(id);
    if (object?.type !== "blob") throw new GitError("did not send what its commit consists of");
    if (object.data.length > skillFileBytesMax)
      throw new GitError(`has a skill with a file of more than ${skillFileBytesMax} bytes`);
    return { path, data: object.data };
  });
  const bytes = files.reduce((sum, { data }) => sum + data.length, 0);
  if (bytes > skillBytesMax) throw new GitError(`has a skill of more than ${skillBytesMax} bytes`);
  const document = files.find(({ path }) => path === documentName)?.data;
  if (document === undefined) throw new GitError("has no SKILL.md in this folder");
  return { document, files: files.filter(({ path }) => path !== documentName) };
}
