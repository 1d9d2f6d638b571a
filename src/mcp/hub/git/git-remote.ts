import { guardedFetch } from "../../../platform/notify/public-address.ts";
import type { AddressGuard } from "../../../platform/notify/public-address.ts";
import { brand } from "../../../platform/kernel/brand.ts";
import { GitError, readPack, type GitObjects, type ObjectFormat } from "./packfile.ts";

/** Bounds on what a repository may send. */
const advertisementBytesMax = 64_000;
const refsBytesMax = 64_000;
const packBytesMax = 8_000_000;
const packLimits = { objects: 20_000, objectBytes: 2_000_000, bytes: 48_000_000 } as const;
const redirectsMax = 3;

const agent = `${brand.productName.toLowerCase()}-hub`;

/** The objects that are requested, without the contents of files where the server can omit them. */
interface Wanted {
  ids: readonly string[];
  /** Commits whose history is cut off. */
  shallow?: boolean;
  withoutBlobs?: boolean;
}

/** A server's description of itself. */
interface Server {
  /** The repository's address, after redirects. */
  url: string;
  format: ObjectFormat;
  filters: boolean;
}

/**
 * A public repository, read over smart HTTP in protocol version 2 (git, gitprotocol-v2). The guard
 * checks every address, and every answer is bounded. Throws `GitError`.
 */
export class GitRemote {
  private readonly guard: AddressGuard;
  private readonly signal: AbortSignal;
  private readonly server: Server;

  private constructor(server: Server, guard: AddressGuard, signal: AbortSignal) {
    this.server = server;
    this.guard = guard;
    this.signal = signal;
  }

  /** Whether the server can omit contents of files from an answer. */
  get filters(): boolean {
    return this.server.filters;
  }

  /** Requests a repository's capabilities. */
  static async open(url: string, guard: AddressGuard, signal: AbortSignal): Promise<GitRemote> {
    let address = `${url}/info/refs?service=git-upload-pack`;
    for (let redirects = 0; redirects <= redirectsMax; redirects += 1) {
      const response = await guardedFetch(address, { signal, headers, decompress: false }, guard);
      if (response.status >= 300 && response.status < 400) {
        await response.body?.cancel();
        address = redirected(address, response.headers.get("location"));
        continue;
      }
      if (!response.ok) {
        await response.body?.cancel();
        throw new GitError("is no public Git repository");
      }
      const lines = readLines(await readBytes(response, advertisementBytesMax));
      return new GitRemote(serverOf(address, lines), guard, signal);
    }
    throw new GitError(`redirects more than ${redirectsMax} times`);
  }

  /**
   * Returns the commit of a branch, a tag or a commit id; without a name, that of the default
   * branch.
   */
  async resolve(ref: string | undefined): Promise<string> {
    if (ref !== undefined && isObjectId(ref, this.server.format)) return ref;
    const names = ref === undefined ? ["HEAD"] : [`refs/heads/${ref}`, `refs/tags/${ref}`];
    const answer = await this.command("ls-refs", {
      args: ["peel", ...names.map((name) => `ref-prefix ${name}`)],
      bytesMax: refsBytesMax,
    });
    const ids = new Map<string, string>();
    for (const line of readLines(answer)) {
      const [id = "", name = "", ...attributes] = textOf(line).split(" ");
      const peeled = attributes.find((each) => each.startsWith("peeled:"))?.slice(7);
      if (isObjectId(peeled ?? id, this.server.format)) ids.set(name, peeled ?? id);
    }
    for (const name of names) {
      const id = ids.get(name);
      if (id !== undefined) return id;
    }
    throw new GitError(ref === undefined ? "has no commit" : "has no such branch or tag");
  }

  /** Fetches objects, including those that they consist of. */
  async fetch({ ids, shallow = false, withoutBlobs = false }: Wanted): Promise<GitObjects> {
    const { format, filters } = this.server;
    const answer = await this.command("fetch", {
      args: [
        "no-progress",
        "ofs-delta",
        ...(shallow ? ["deepen 1"] : []),
        ...(withoutBlobs && filters ? ["filter blob:none"] : []),
        ...ids.map((id) => `want ${id}`),
        "done",
      ],
      bytesMax: packBytesMax,
    });
    return readPack(packOf(readLines(answer)), format, packLimits);
  }

  private async command(
    name: string,
    { args, bytesMax }: { args: readonly string[]; bytesMax: number },
  ): Promise<Buffer> {
    const { url, format } = this.server;
    const lines = [`command=${name}`, `agent=${agent}`, `object-format=${format}`];
    const body = [
      ...lines.map(packet),
      delimiter,
      ...args.map((arg) => packet(`${arg}\n`)),
      flush,
    ].join("");
    const response = await guardedFetch(
      `${url}/git-upload-pack`,
      {
        method: "POST",
        body,
        signal: this.signal,
        decompress: false,
        headers: { ...headers, "content-type": "application/x-git-upload-pack-request" },
      },
      this.guard,
    );
    if (!response.ok) {
      await response.body?.cancel();
      throw new GitError(`refused to be read with status ${response.status}`);
    }
    return readBytes(response, bytesMax);
  }
}

const headers = {
  "git-protocol": "version=2",
  "accept-encoding": "identity",
  "user-agent": `git/2.0 ${agent}`,
} as const;

/** Returns the repository's address after a redirect of the first request. */
function redirected(from: string, location: string | null): string {
  const to = new URL(location ?? "", from);
  const suffix = "/info/refs";
  if (!to.pathname.endsWith(suffix)) throw new GitError("is no public Git repository");
  return `${to.origin}${to.pathname}?service=git-upload-pack`;
}

function serverOf(address: string, lines: readonly Line[]): Server {
  const words = lines.map(textOf);
  if (!words.includes("version 2"))
    throw new GitError("is no Git repository that speaks protocol version 2");
  const value = (name: string): string | undefined =>
    words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
  const format = value("object-format") ?? "sha1";
  if (format !== "sha1" && format !== "sha256")
    throw new GitError("names its objects by an unknown hash");
  return {
    url: address.slice(0, address.lastIndexOf("/info/refs")),
    format,
    filters: value("fetch")?.split(" ").includes("filter") ?? false,
  };
}

const isObjectId = (text: string, format: ObjectFormat): boolean =>
  (format === "sha1" ? /^[0-9a-f]{40}$/ : /^[0-9a-f]{64}$/).test(text);

const flush = "0000";
const delimiter = "0001";

/**
 * Returns a line of the protocol: its length including itself in four hexadecimal digits, then its
 * bytes.
 */
const packet = (text: string): string =>
  (Buffer.byteLength(text) + 4).toString(16).padStart(4, "0") + text;

type Line = Buffer;

const textOf = (line: Line): string => line.toString("utf8").replace(/\n$/, "");

/** Returns the lines of an answer, without separators. */
function readLines(bytes: Buffer): Line[] {
  const lines: Line[] = [];
  for (let at = 0; at < bytes.length; ) {
    const digits = bytes.toString("latin1", at, at + 4);
    if (!/^[0-9a-f]{4}$/.test(digits)) throw new GitError("is no Git repository");
    const length = Number.parseInt(digits, 16);
    if (length === 3 || at + length > bytes.length)
      throw new GitError("broke its answer off in the middle");
    if (length > 4) lines.push(bytes.subarray(at + 4, at + length));
    at += Math.max(length, 4);
  }
  return lines;
}

/**
 * Returns the packfile in the answer to `fetch`, from the lines of its section, whose first byte
 * says what they carry.
 */
function packOf(lines: readonly Line[]): Buffer {
  const start = lines.findIndex((line) => textOf(line) === "packfile");
  if (start < 0) throw new GitError("sent no packfile");
  const chunks: Buffer[] = [];
  for (const line of lines.slice(start + 1)) {
    if (line[0] === 1) chunks.push(line.subarray(1));
    else if (line[0] !== 2) throw new GitError("failed while it sent the packfile");
  }
  return Buffer.concat(chunks);
}

/** Reads the bytes of an answer. Throws `GitError` where there are more than allowed. */
async function readBytes(response: Response, bytesMax: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) throw new GitError("is too large to be read");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
