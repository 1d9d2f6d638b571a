import { describe, expect, test } from "bun:test";
import { adaptIn, relayIn, routeIn } from "../../support/in-process.ts";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { wireEvents } from "../../support/upstream/upstream-wire.ts";
import { eventsOf, tales } from "./support/beats.ts";
import { isNightly } from "../../support/nightly.ts";
import { nameOf, allClients, allPairs, type Pair } from "./support/pairs.ts";
import { readStreamed } from "./support/reply.ts";

const lineEnds = ["\n", "\r\n", "\r"];

/**
 * The streams that are cut: one with a character of four bytes and every kind of line end, and one
 * with thoughts and a call.
 */
const streamsOf = ({ upstream }: Pair): [name: string, bytes: Buffer][] => [
  [
    "text",
    Buffer.concat(
      wireEvents(wireOf(upstream)).map(({ bytes }, index) =>
        withLineEnds(bytes, lineEnds[index % 3] ?? ""),
      ),
    ),
  ],
  ["thoughts, text and a call", Buffer.concat(eventsOf(tales[upstream]).map(({ bytes }) => bytes))],
];

const withLineEnds = (event: Uint8Array, lineEnd: string): Buffer =>
  Buffer.from(`: ping${lineEnd}${Buffer.from(event).toString("utf8").replaceAll("\n", lineEnd)}`);

/** By day each client's dialect meets the cuts that the others do not, so that none is left out. */
const cutsApart = isNightly ? 1 : allClients.length;

describe("R21, an upstream's stream is relayed identically at every byte split", () => {
  describe.each(allPairs.map((pair) => [nameOf(pair), pair] as const))("%s", (_, pair) => {
    const { client, upstream } = pair;
    const body = { model: "acme/large", ...client.ask("Hi"), stream: true };
    const adapter = adaptIn(client.name, { body, route: routeIn(upstream) });
    test.each(streamsOf(pair))("%s", async (_name, bytes) => {
      const { text, settled } = await relayIn(adapter, [bytes]);
      const { breaches, endings } = readStreamed(client, text);
      expect([settled, breaches, endings]).toEqual(["completed", [], 1]);
      const single = Array.from(bytes, (_byte, index) => bytes.subarray(index, index + 1));
      expect((await relayIn(adapter, single)).text).toBe(text);
      const first = isNightly ? 1 : 1 + allClients.indexOf(client);
      for (let cut = first; cut < bytes.length; cut += cutsApart) {
        const relayed = await relayIn(adapter, [bytes.subarray(0, cut), bytes.subarray(cut)]);
        if (relayed.text !== text) expect(`cut at ${cut}: ${relayed.text}`).toBe(text);
      }
    });
  });
});
