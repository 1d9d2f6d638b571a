import { afterEach, describe, expect, test } from "bun:test";
import type { Gate } from "../../support/upstream/gate.ts";
import { openaiChatWire as wire } from "../../support/upstream/openai-chat-wire.ts";
import { body, end, head, type Script } from "../../support/upstream/steps.ts";
import { eventually } from "./support/eventually.ts";
import { startLeavingClient } from "./support/leaving-client.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";
import { settledRows } from "./support/settled-rows.ts";

let scene: Scene;
afterEach(() => scene.end());

const wholeText = JSON.stringify(wire.whole);
const jsonHead = head({
  headers: { "content-type": "application/json" },
  framing: { contentLength: Buffer.byteLength(wholeText) },
});
const streamEnd = [...wire.finish, ...wire.terminator, end()];

/**
 * When the client leaves: the upstream's script around that moment, and what the client has seen by
 * then.
 */
interface Departure {
  when: string;
  stream: boolean;
  script(gate: Gate): Script;
  seen?: string;
  /**
   * The charge under `abort`: nothing, the input, what was delivered, or the provider's own count.
   */
  charged: "nothing" | "input" | "delivered" | "reported";
}

const departures: readonly Departure[] = [
  {
    when: "before headers",
    stream: true,
    script: (gate) => [gate, head(), ...wire.opening, ...wire.content, ...streamEnd],
    charged: "nothing",
  },
  {
    when: "before the first token",
    stream: true,
    script: (gate) => [head(), ...wire.opening, gate, ...wire.content, ...streamEnd],
    charged: "input",
  },
  {
    when: "mid-stream",
    stream: true,
    seen: "Hel",
    charged: "delivered",
    script: (gate) => [
      head(),
      ...wire.opening,
      ...wire.content.slice(0, 1),
      gate,
      ...wire.content.slice(1),
      ...streamEnd,
    ],
  },
  {
    when: "after usage",
    stream: true,
    seen: "cost",
    charged: "reported",
    script: (gate) => [
      head(),
      ...wire.opening,
      ...wire.content,
      ...wire.finish,
      gate,
      ...wire.terminator,
      end(),
    ],
  },
  {
    when: "before headers, whole",
    stream: false,
    script: (gate) => [gate, jsonHead, body(wholeText)],
    charged: "nothing",
  },
  {
    when: "mid-body, whole",
    stream: false,
    script: (gate) => [jsonHead, body(wholeText.slice(0, 99)), gate, body(wholeText.slice(99))],
    charged: "input",
  },
];

const costs = {
  nothing: [0, 0],
  input: [1, 16_000 - 1],
  delivered: [1, 40_000],
  reported: [16_000, 16_000],
} as const;

/** Lets a client leave at that moment; the gate stays closed. */
async function depart({
  stream,
  script,
  seen,
}: Departure): Promise<{ gate: Gate; leftMs: number }> {
  const gate = scene.acme.gate();
  scene.acme.script(script(gate));
  const client = startLeavingClient(scene.gateway, chatRequest({ stream }));
  await gate.reached;
  if (seen !== undefined) await client.hasSeen(seen);
  const leftMs = client.leave();
  await client.over;
  // The answer to a later request comes after the gateway has seen the earlier connection close.
  await scene.gateway.get("/models/count");
  return { gate, leftMs };
}

describe("policy abort: the upstream request is aborted, and what was consumed is charged once", () => {
  for (const departure of departures) {
    test(departure.when, async () => {
      scene = await startScene({ withBackup: true });
      const { leftMs } = await depart(departure);
      const abortedMs = await scene.acme.requests[0]?.aborted;
      // Narrow enough to tell it from every timeout; how soon it is has a test of its own.
      expect((abortedMs ?? Infinity) - leftMs).toBeLessThan(25_000);
      await eventually(
        "the request is settled",
        async () => (await settledRows(scene.gateway)).length > 0,
      );
      const [row, ...more] = await settledRows(scene.gateway);
      const [least, most] = costs[departure.charged];
      expect(more).toEqual([]);
      expect(row?.status).toBe(departure.charged === "reported" ? "completed" : "cancelled");
      expect(Number(row?.costNano)).toBeWithin(least, most + 1);
      expect(scene.backup.requests.length).toBe(0);
      await eventually(
        "the upstream's connection is closed",
        () => scene.acme.openConnectionCount === 0,
      );
    });
  }
});

/** Departures that are timed at most, while each of them takes longer. */
const timedMax = 40;
const promisedMs = 250;

test("the upstream is stopped within 250 ms of the departure", async () => {
  scene = await startScene({ withBackup: true });
  const [departure] = departures;
  if (departure === undefined) throw new Error("there is no departure");
  const tookMs: number[] = [];
  do {
    const { leftMs } = await depart(departure);
    tookMs.push(((await scene.acme.requests[tookMs.length]?.aborted) ?? Infinity) - leftMs);
  } while (Math.min(...tookMs) >= promisedMs && tookMs.length < timedMax);
  // The fastest of them: what else the machine does makes none of them faster.
  expect(Math.min(...tookMs)).toBeLessThan(promisedMs);
});

describe("policy drain: the upstream response is read to its end, and its reported usage is charged", () => {
  for (const departure of departures) {
    test(departure.when, async () => {
      scene = await startScene({ withBackup: true, settings: { disconnect: "drain" } });
      const { gate } = await depart(departure);
      gate.open();
      await scene.acme.requests[0]?.answered;
      await eventually(
        "the request is settled",
        async () => (await settledRows(scene.gateway)).length > 0,
      );
      const [row, ...more] = await settledRows(scene.gateway);
      expect(more).toEqual([]);
      expect(row).toMatchObject({
        status: departure.charged === "reported" ? "completed" : "cancelled",
        costNano: 16_000n,
        finishReason: "stop",
      });
      expect(row?.detail.usageEstimated).toBeUndefined();
      expect(scene.backup.requests.length).toBe(0);
    });
  }
});
