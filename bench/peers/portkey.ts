import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../process/ports.ts";
import { noWork, onceOpen, type Peer, type PeerContext, type RunningPeer } from "./peer.ts";

const directory = fileURLToPath(new URL(".", import.meta.url));
const packageDirectory = join(directory, "node_modules", "@portkey-ai", "gateway");
const installTimeoutMs = 120_000;

/**
 * Portkey's open gateway from npm, with nothing enabled: no keys, no limits, no charge, no record.
 */
export function portkey({ mayInstall }: { mayInstall: boolean }): Peer {
  const headers: Record<string, string> = {
    authorization: "Bearer x",
    "x-portkey-provider": "openai",
  };
  return {
    name: "portkey",
    path: "/v1/chat/completions",
    headers,
    modelPrefix: "",
    chargesRequests: false,
    work: noWork,
    prepare: async () => {
      if (Bun.which("node") === null) return { ready: false, reason: "node is not on the PATH" };
      const problem = existsSync(packageDirectory) ? undefined : install(mayInstall);
      return problem === undefined
        ? { ready: true, version: await version() }
        : { ready: false, reason: problem };
    },
    start: (context) => {
      headers["x-portkey-custom-host"] = `http://127.0.0.1:${context.mock.port}/v1`;
      return start(context);
    },
  };
}

/**
 * Installs the locked package beside this file; undefined when that worked, else the reason in
 * words.
 */
function install(mayInstall: boolean): string | undefined {
  if (!mayInstall) return "not installed; a full run installs it";
  console.error("bench: installing Portkey's gateway from npm (once)");
  const result = Bun.spawnSync(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], {
    cwd: directory,
    timeout: installTimeoutMs,
    stdout: "ignore",
    stderr: "pipe",
  });
  if (result.success) return undefined;
  const reason =
    result.stderr
      .toString()
      .split("\n")
      .find((line) => line.includes("npm error")) ?? "npm ci failed";
  return `cannot be installed: ${reason.trim()}`;
}

async function version(): Promise<string> {
  const manifest: unknown = await Bun.file(join(packageDirectory, "package.json")).json();
  const found =
    typeof manifest === "object" && manifest !== null && "version" in manifest
      ? manifest.version
      : "";
  return `@portkey-ai/gateway ${String(found)}`;
}

async function start({ children, cores }: PeerContext): Promise<RunningPeer> {
  const port = freePort();
  const child = children.spawn({
    name: "portkey",
    command: [
      "node",
      join(packageDirectory, "build", "start-server.js"),
      `--port=${port}`,
      "--headless",
    ],
    cores: cores.peer,
    environment: { NODE_ENV: "production" },
  });
  return onceOpen(child, { port });
}
