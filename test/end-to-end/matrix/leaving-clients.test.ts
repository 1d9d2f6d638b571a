import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Gate } from "../../support/upstream/gate.ts";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { body, end, head, type Script } from "../../support/upstream/steps.ts";
import type { UpstreamWire } from "../../support/upstream/upstream-wire.ts";
import { eventually } from "../scenarios/support/eventually.ts";
import { settledRows } from "../scenarios/support/settled-rows.ts";
import { startLeavingClient } from "./support/leaving-client.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { nameOf, allPairs, type Pair } from "./support/pairs.ts";

/**
 * When the client leaves: the upstream's script around that moment, and what the client has seen by
 * then.
 */
interface Departure {
  when: string;
  stream: boolean;
  script(wire: UpstreamWire, gate: Gate): Script;
  seen?: string;
  /**
   * The charge under `abort`, least and most in nano-USD; 11 tokens in and 7 out would be 16,000,
   * but what was cut is estimated.
   */
  charged: readonly [least: number, most: number];
}

const wholeHead = (text: string) =>
  head({
    headers: { "content-type": "application/json" },
    framing: { contentLength: Buffer.byteLength(text) },
  });

const departures: readonly Departure[] = [
  {
    when: "before headers",
    stream: true,
    script: (wire, gate) => [
      gate,
      head(),
      ...wire.opening,
      ...wire.content,
      ...wire.finish,
      ...wire.terminator,
      end(),
    ],
    charged: [0, 0],
  },
  {
    when: "before the first token",
    stream: true,
    script: (wire, gate) => [
      head(),
      ...wire.opening,
      gate,
      ...wire.content,
      ...wire.finish,
      ...wire.terminator,
      end(),
    ],
    charged: [1, 45_000],
  },
  {
    when: "mid-stream",
    stream: true,
    seen: "Hel",
    script: ({ opening, content, finish, terminator }, gate) => [
      head(),
      ...opening,
      ...content.slice(0, 1),
      gate,
      ...content.slice(1),
      ...finish,
      ...terminator,
      end(),
    ],
    charged: [1, 45_000],
  },
  {
    when: "before headers, whole",
    stream: false,
    script: ({ whole }, gate) => [
      gate,
      wholeHead(JSON.stringify(whole)),
      body(JSON.stringify(whole)),
    ],
    charged: [0, 0],
  },
  {
    when: "mid-body, whole",
    stream: false,
    script({ whole }, gate) {
      const text = JSON.stringify(whole);
      return [wholeHead(text), body(text.slice(0, 99)), gate, body(text.slice(99))];
    },
    charged: [1, 45_000],
  },
];

/**
 * The gate stays closed, so that nothing but the departure can end the request: the bound has room
 * for a busy machine, and `client-disconnects` has the narrow one.
 */
const abortedWithinMs = 25_000;

/** The provider that would be asked next, were the client still there. */
const nextProvider = ({ upstream }: Pair): string =>
  providerId(upstream === "openai-chat" ? "anthropic-messages" : "openai-chat");

for (const policy of ["abort", "drain"] as const) {
  describe(`R1, policy ${policy}: a client that leaves is settled once, and no other provider is asked`, () => {
    let scene: MatrixScene;
    beforeAll(async () => {
      scene = await startMatrix({ settings: { disconnect: policy } });
    });
    afterAll(() => scene.end());

    describe.each(allPairs.map((pair) => [nameOf(pair), pair] as const))("%s", (_, pair) => {
      test.each(departures.map((departure) => [departure.when, departure] as const))(
        "%s",
        async (_when, departure) => {
          const { gateway, upstreams } = scene;
          const upstream = upstreams[pair.upstream];
          const before = (await settledRows(gateway)).length;
          const asked = Object.values(upstreams).reduce(
            (sum, { requests }) => sum + requests.length,
            0,
          );
          const { gate, leftMs } = await depart(scene, { pair, departure });
          const request = upstream.requests.at(-1);
          if (policy === "abort") {
            expect(((await request?.aborted) ?? Infinity) - leftMs).toBeLessThan(abortedWithinMs);
          } else {
            gate.open();
            await request?.answered;
          }
          await eventually(
            "the request is settled",
            async () => (await settledRows(gateway)).length > before,
          );
          const [row, ...more] = (await settledRows(gateway)).slice(before);
          // The gateway does not look for the client of a whole answer that comes soon enough.
          const statuses =
            policy === "drain" && !departure.stream ? ["cancelled", "completed"] : ["cancelled"];
          expect([more, statuses.includes(row?.status ?? "")]).toEqual([[], true]);
          const [least, most] = policy === "abort" ? departure.charged : [16_000, 16_000];
          expect(Number(row?.costNano)).toBeWithin(least, most + 1);
          expect(
            Object.values(upstreams).reduce((sum, { requests }) => sum + requests.length, 0),
          ).toBe(asked + 1);
          expect(gateway.app.ledger.openHoldCount).toBe(0);
        },
      );
    });
  });
}

/** Lets a client leave at that moment; the gate stays closed. */
async function depart(
  scene: MatrixScene,
  { pair, departure: { stream, script, seen } }: { pair: Pair; departure: Departure },
): Promise<{ gate: Gate; leftMs: number }> {
  const upstream = scene.upstreams[pair.upstream];
  const gate = upstream.gate();
  upstream.script(script(wireOf(pair.upstream), gate));
  const client = startLeavingClient(scene.gateway, {
    client: pair.client,
    body: { ...pair.client.ask("Hello"), stream },
    providers: [providerId(pair.upstream), nextProvider(pair)],
  });
  await gate.reached;
  if (seen !== undefined) await client.hasSeen(seen);
  const leftMs = client.leave();
  await client.over;
  // The answer to a later request comes after the gateway has seen the earlier connection close.
  await scene.gateway.get("/models/count");
  return { gate, leftMs };
}
