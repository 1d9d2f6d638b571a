import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { chatBody } from "./load/chat-request.ts";
import type { Peer, RunningPeer } from "./peers/peer.ts";

/** How wrk is run against a peer. */
export interface WrkOptions {
  peer: Peer;
  running: RunningPeer;
  /** Its request script is written here. */
  directory: string;
  durationMs: number;
  connections: number;
  cores: string | undefined;
}

/**
 * Requests a second as wrk counts them, a witness beside our own load generator; undefined where
 * wrk is missing.
 */
export async function wrkRequestsPerSecond(options: WrkOptions): Promise<number | undefined> {
  const { peer, running, directory, durationMs, connections, cores } = options;
  if (Bun.which("wrk") === null) return undefined;
  const scriptPath = join(directory, "request.lua");
  await writeFile(scriptPath, script(peer));
  const pin = cores === undefined ? [] : ["taskset", "-c", cores];
  const child = Bun.spawn(
    [
      ...pin,
      "wrk",
      "-t1",
      `-c${connections}`,
      `-d${Math.max(1, Math.round(durationMs / 1000))}s`,
      "-s",
      scriptPath,
      `http://127.0.0.1:${running.port}${peer.path}`,
    ],
    { stdout: "pipe", stderr: "ignore", timeout: durationMs + 10_000 },
  );
  const text = await new Response(child.stdout).text();
  const figure = /Requests\/sec:\s+([\d.]+)/.exec(text)?.[1];
  const refused = /Non-2xx or 3xx responses: \d+/.test(text);
  return figure === undefined || refused ? undefined : Number(figure);
}

function script(peer: Peer): string {
  const headers = Object.entries({ "content-type": "application/json", ...peer.headers }).map(
    ([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`,
  );
  const body = chatBody({ model: `${peer.modelPrefix}large`, stream: false, bodyBytes: 1_000 });
  return ['wrk.method = "POST"', ...headers, `wrk.body = [==[${body}]==]`, ""].join("\n");
}
