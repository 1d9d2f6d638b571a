import { describe, expect, test } from "bun:test";
import type { RelayedStreamOptions } from "../../../src/inference/pipeline/stream/relayed-stream.ts";
import { readCassettes } from "../../support/cassettes.ts";
import { adaptIn, relayIn, routeIn } from "../../support/in-process.ts";
import { allPairs, nameOf, type Pair } from "./support/pairs.ts";
import { readStreamed } from "./support/reply.ts";

/**
 * Lets so many events pass, and as many as it takes to say something; then the hold cannot grow any
 * more.
 */
function bearing(events: number): NonNullable<RelayedStreamOptions["guard"]> & { ended: boolean } {
  let left = events;
  return {
    ended: false,
    next({ reader, relay, response }) {
      const event = reader.next();
      if (event === undefined) return undefined;
      left -= 1;
      if (left >= 0 || !relay.hasContent || relay.finished) return relay.accept(event);
      this.ended = true;
      response.abort();
      return relay.endAtCap();
    },
  };
}

const streamOf = ({ client, upstream }: Pair) =>
  adaptIn(client.name, {
    body: { model: "acme/large", ...client.ask("Talk"), stream: true },
    route: routeIn(upstream),
  });

describe.each(allPairs.map((pair) => [nameOf(pair), pair] as const))("%s", (_, pair) => {
  const whole = readCassettes(pair.upstream).filter(
    ({ parts }) => parts.at(-1)?.type === "response-end",
  );

  // Cut in texts, thoughts, citations and between and within calls: wherever an event can be the
  // last.
  test.each(whole.map((cassette) => [cassette.name, cassette.bytes] as const))(
    "%s ends with length after any of its events",
    async (_name, bytes) => {
      for (let events = 0; ; events += 1) {
        const allowance = bearing(events);
        const { text, settled, refused } = await relayIn(streamOf(pair), [bytes], allowance);
        if (!allowance.ended) break;
        const { errors, endings, breaches: found, finish } = readStreamed(pair.client, text);
        // Where both speak alike, the oddities of a recording are kept.
        const breaches = pair.client.name === pair.upstream ? [] : found;
        expect({ events, refused, settled, errors, endings, breaches, finish }).toEqual({
          events,
          refused: undefined,
          settled: "completed",
          errors: [],
          endings: 1,
          breaches: [],
          finish: "length",
        });
      }
    },
  );
});
