import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { waitForLine } from "../process/children.ts";
import type { Durability } from "./gateway.ts";
import { noWork, startTimeoutMs, type Peer } from "./peer.ts";

const program = fileURLToPath(new URL("./floor/proxy.ts", import.meta.url));

/** A proxy that appends two durable rows a request and does nothing else: what is left to be won. */
export const floor = (durability: Durability): Peer => ({
  name: `floor ${durability}`,
  path: "/v1/chat/completions",
  headers: { authorization: "Bearer x" },
  modelPrefix: "",
  chargesRequests: false,
  work: { ...noWork, record: "two rows, durable before the answer" },
  prepare: async () => ({ ready: true, version: `bun ${Bun.version}` }),
  start: async ({ children, cores, directory, mock }) => {
    const child = children.spawn({
      name: `floor-${durability}`,
      command: [
        process.execPath,
        program,
        durability === "power" ? "FULL" : "NORMAL",
        `http://127.0.0.1:${mock.port}/v1/chat/completions`,
        join(directory, `floor-${Date.now()}.db`),
      ],
      cores: cores.peer,
      environment: { BUN_CONFIG_MAX_HTTP_REQUESTS: "16384" },
    });
    const pattern = /^ready http:\/\/\S+:(\d+)/;
    const [, port] = await waitForLine(child, { pattern, timeoutMs: startTimeoutMs });
    const readyMs = performance.now() - child.startedAtMs;
    return { port: Number(port), pid: child.pid, readyMs, stop: () => child.stop() };
  },
});
