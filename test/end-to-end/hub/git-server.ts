import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Files of a commit, by path. */
type Files = Readonly<Record<string, string | Uint8Array>>;

/** Git's own server over HTTP on loopback, and the repositories that it serves. */
export interface GitServer {
  /** Requests that came, as method and path. */
  readonly asked: string[];
  url(path: string): string;
  /** Makes a repository with one commit and gives the commit's id. */
  create(name: string, files: Files, options?: { format?: string }): Promise<string>;
  /** Runs git in a repository; gives what it printed. */
  git(name: string, args: readonly string[], input?: string | Uint8Array): Promise<string>;
  stop(): Promise<void>;
}

const author = {
  GIT_AUTHOR_NAME: "Ada",
  GIT_AUTHOR_EMAIL: "ada@example.com",
  GIT_COMMITTER_NAME: "Ada",
  GIT_COMMITTER_EMAIL: "ada@example.com",
  GIT_CONFIG_NOSYSTEM: "1",
};

/** Splits the answer of a CGI program into its head and its body. */
function cgiResponse(output: Uint8Array): Response {
  const bytes = Buffer.from(output);
  const end = bytes.indexOf("\r\n\r\n");
  const lines = bytes.toString("latin1", 0, Math.max(end, 0)).split("\r\n");
  const headers = new Headers();
  let status = 200;
  for (const line of lines) {
    const [name = "", value = ""] = line.split(/: (.*)/s);
    if (name === "Status") status = Number.parseInt(value, 10);
    else if (name !== "") headers.append(name, value);
  }
  return new Response(bytes.subarray(end + 4), { status, headers });
}

/** Starts it. */
export async function startGitServer(): Promise<GitServer> {
  const root = await mkdtemp(join(tmpdir(), "git-server-"));
  const asked: string[] = [];
  const env = { ...process.env, ...author };
  const run = async (
    args: readonly string[],
    { cwd = root, input }: { cwd?: string; input?: string | Uint8Array | undefined } = {},
  ): Promise<string> => {
    const child = Bun.spawn(["git", ...args], {
      cwd,
      env,
      stdin: input === undefined ? "ignore" : Buffer.from(input),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [printed, problem, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (code !== 0) throw new Error(`git ${args.join(" ")}: ${problem}`);
    return printed.trim();
  };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const url = new URL(request.url);
      asked.push(`${request.method} ${url.pathname}`);
      const child = Bun.spawn(["git", "http-backend"], {
        env: {
          ...env,
          GIT_PROJECT_ROOT: root,
          GIT_HTTP_EXPORT_ALL: "1",
          PATH_INFO: url.pathname,
          QUERY_STRING: url.search.slice(1),
          REQUEST_METHOD: request.method,
          CONTENT_TYPE: request.headers.get("content-type") ?? "",
          GIT_PROTOCOL: request.headers.get("git-protocol") ?? "",
        },
        stdin: new Uint8Array(await request.arrayBuffer()),
        stdout: "pipe",
        stderr: "ignore",
      });
      return cgiResponse(await new Response(child.stdout).bytes());
    },
  });
  const git: GitServer["git"] = (name, args, input) =>
    run(args, { cwd: join(root, `${name}.git`), input });
  return {
    asked,
    url: (path) => `http://127.0.0.1:${server.port}/${path}`,
    git,
    async create(name, files, { format = "sha1" } = {}) {
      const bare = join(root, `${name}.git`);
      const work = join(root, `${name}-work`);
      await run(["init", "-q", "-b", "main", `--object-format=${format}`, work]);
      for (const [path, text] of Object.entries(files)) await Bun.write(join(work, path), text);
      await run(["add", "-A"], { cwd: work });
      await run(["commit", "-q", "-m", "Begin"], { cwd: work });
      await run(["clone", "-q", "--bare", work, bare]);
      await run(["config", "uploadpack.allowFilter", "true"], { cwd: bare });
      return run(["rev-parse", "HEAD"], { cwd: bare });
    },
    async stop() {
      await server.stop(true);
      await rm(root, { recursive: true, force: true });
    },
  };
}
