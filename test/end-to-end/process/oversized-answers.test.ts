import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { endProcesses, startProcess, type GatewayProcess } from "../../support/process.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { body, head, raw, stall, type Script } from "../../support/upstream/steps.ts";
import { at } from "../api/at.ts";
import { acmeYaml } from "./support/acme-yaml.ts";
import { postChat } from "./support/ask.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";

let upstream: FaultUpstream;
let gateway: GatewayProcess;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startProcess({
    yaml: acmeYaml(upstream.baseUrl),
    environment: bootstrapVariables,
    isMemoryMeasured: true,
  });
});
afterAll(async () => {
  await endProcesses();
  upstream.stop();
});

const MiB = 1024 * 1024;
/**
 * What a flood may add to the process at most, in bytes: its own bounds, and what the collector has
 * not freed yet.
 */
const grownBytesMax = 100 * MiB;
const floodBytes = 512 * MiB;

const repeated = (text: string, bytes: number): Script => {
  const block = text.repeat(Math.ceil(MiB / text.length));
  return Array.from({ length: Math.ceil(bytes / MiB) }, () => raw(block));
};

/** A gzip body of a text that repeats, of which a thousandth is sent. */
const gzipStream = (text: string): Script => [
  head({ headers: { "content-encoding": "gzip" } }),
  body(Bun.gzipSync(Buffer.alloc(256 * MiB, text))),
  stall(),
];

const floods: Readonly<Record<string, () => Script>> = {
  "endless interim responses": () =>
    repeated("HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n", floodBytes),
  "an endless compressed line": () => gzipStream("data: x"),
  "endless compressed comments": () => gzipStream(": keep waiting\n\n"),
  "endless compressed events without content": () => gzipStream('data: {"choices":[]}\n\n'),
  "an endless trailer": () => [head(), raw("0\r\n"), ...repeated("name: value\r\n", floodBytes)],
};

/** The most memory that a process has had since its mark was set back, in bytes. */
function peakBytes(pid: number): number {
  const kibibytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kibibytes) * 1024;
}

describe.skipIf(process.platform !== "linux")(
  "a provider that floods the gateway is aborted, with little memory used by",
  () => {
    test.each(Object.keys(floods))("%s", async (name) => {
      upstream.script(healthyChat);
      await (await postChat(gateway)).text();
      // 5 sets the highest mark back to what is in use (proc(5), clear_refs).
      writeFileSync(`/proc/${gateway.child.pid}/clear_refs`, "5");
      const before = peakBytes(gateway.child.pid);
      const wasRead = upstream.gate();
      upstream.script([...(floods[name]?.() ?? []), wasRead]);
      const asked = upstream.waitForRequest(upstream.requests.length + 1);
      const response = await postChat(gateway, { stream: true });
      expect([
        response.status,
        at(JSON.parse(await response.text()), "error.metadata.fault"),
      ]).toEqual([502, "upstream"]);
      expect(peakBytes(gateway.child.pid) - before).toBeLessThan(grownBytesMax);
      const ends = [(await asked).aborted.then(() => "cut"), wasRead.reached.then(() => "read")];
      expect(await Promise.race(ends)).toBe("cut");
    });
  },
);
