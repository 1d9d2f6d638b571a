import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { adaptIn, relayIn, routeIn } from "../../support/in-process.ts";
import { parsed } from "../matrix/support/json-value.ts";
import { allPairs, nameOf } from "../matrix/support/pairs.ts";
import { readStreamed } from "../matrix/support/reply.ts";
import { mutated, mutation, type Mutation } from "./support/mutations.ts";
import { fuzzRuns, fuzzSeed, fuzzTimeoutMs } from "./support/runs.ts";
import { goodStreams } from "./support/seeds.ts";

/** What becomes of one event of a good stream. */
type EventChange =
  | { at: number; kind: "drop" | "repeat" | "first" | "cut" }
  | { at: number; kind: "data"; mutation: Mutation }
  | { at: number; kind: "insert"; text: string };

const oddEvents = [
  "data: [DONE]\n\n",
  "data: {}\n\n",
  "data: null\n\n",
  "data: [\n\n",
  'data: {"error":{"message":"x"}}\n\n',
  "event: error\ndata: x\n\n",
  ": ping\n\n",
  "\n\n\n",
  "data:\n\n",
  'event: ping\ndata: {"type":"ping"}\n\n',
  "id: 1\nretry: 2\n\n",
  "\u0000\n\n",
  'data: {"type":"__proto__"}\n\n',
  'data: {"type":"constructor"}\n\n',
  'data: {"choices":[{}]}\n\n',
  'data: {"type":"response.output_text.delta","delta":5}\n\n',
  'data: {"type":"content_block_delta","index":-1,"delta":{}}\n\n',
  'data: {"candidates":[{"content":{"parts":[null]}}]}\n\n',
  'data: {"error":{"code":{"toString":1},"type":{"toString":1},"message":{},"status":[]}}\n\n',
  'event: error\ndata: {"type":"error","error":{"type":{"toString":1},"code":{"valueOf":1}}}\n\n',
  'event: response.failed\ndata: {"type":"response.failed","response":{"error":{"code":{"toString":1}}}}\n\n',
];

const eventChange: fc.Arbitrary<EventChange> = fc.oneof(
  fc.record({ at: fc.nat(40), kind: fc.constantFrom("drop", "repeat", "first", "cut") }),
  fc.record({ at: fc.nat(40), kind: fc.constant("data" as const), mutation }),
  fc.record({ at: fc.nat(40), kind: fc.constant("data" as const), mutation }),
  fc.record({
    at: fc.nat(40),
    kind: fc.constant("insert" as const),
    text: fc.oneof(fc.constantFrom(...oddEvents), fc.string()),
  }),
);

function changed(events: readonly string[], change: EventChange): string[] {
  const at = change.at % Math.max(events.length, 1);
  const event = events[at] ?? "";
  const before = events.slice(0, at);
  const after = events.slice(at + 1);
  switch (change.kind) {
    case "drop":
      return [...before, ...after];
    case "repeat":
      return [...before, event, event, ...after];
    case "first":
      return [event, ...before, ...after];
    case "cut":
      return [...before, event.slice(0, event.length >> 1)];
    case "insert":
      return [...before, change.text, event, ...after];
    case "data":
      return [...before, withData(event, change.mutation), ...after];
  }
}

function withData(event: string, change: Mutation): string {
  const start = event.indexOf("data: ") + "data: ".length;
  const data = parsed(event.slice(start));
  return data === undefined
    ? event
    : `${event.slice(0, start)}${JSON.stringify(mutated(data, change))}\n\n`;
}

/**
 * The grammar that an upstream breaks itself goes through where its bytes are kept; all others get
 * what they can read.
 */
describe("any upstream stream ends once for the client, whole or with one error", () => {
  test.each(allPairs.map((pair) => [nameOf(pair), pair] as const))(
    "%s",
    async (_, { client, upstream }) => {
      const seeds = goodStreams(upstream);
      const body = { model: "acme/large", ...client.ask("Hi"), stream: true };
      const adapter = adaptIn(client.name, { body, route: routeIn(upstream) });
      const keepsBytes = client.name === upstream;
      const outcomes = { refused: 0, completed: 0, cut: 0, cancelled: 0 };
      await fc.assert(
        fc.asyncProperty(
          fc.nat(seeds.length - 1),
          fc.array(eventChange, { maxLength: 5 }),
          async (seed, changes) => {
            const bytes = Buffer.from(changes.reduce(changed, seeds[seed] ?? []).join(""));
            const { text, settled, refused } = await relayIn(adapter, [bytes]);
            if (refused !== undefined) {
              expect([text, settled]).toEqual(["", undefined]);
              outcomes.refused += 1;
              return;
            }
            const { endings, errors, breaches } = readStreamed(client, text);
            outcomes[settled ?? "cancelled"] += 1;
            expect([settled, errors.length]).toEqual(
              errors.length === 0 ? ["completed", 0] : [settled, 1],
            );
            if (!keepsBytes)
              expect([endings, breaches]).toEqual([settled === "completed" ? 1 : 0, []]);
          },
        ),
        { seed: fuzzSeed, numRuns: fuzzRuns(1_900) },
      );
      expect(outcomes.cancelled).toBe(0);
      expect(Math.min(outcomes.refused, outcomes.completed, outcomes.cut)).toBeGreaterThan(0);
    },
    fuzzTimeoutMs,
  );
});
