import { adaptIn, relayIn, routeIn } from "../test/support/in-process.ts";
import {
  answerFrames,
  requestOf,
  wholeAnswer,
  type ClientName,
  type UpstreamName,
} from "./translation-work.ts";

/** CPU time of one request, in microseconds. */
export interface CodecCost {
  whole: number;
  stream: number;
}

/**
 * What it costs to read a client's request, to write the upstream's, to read its answer and to
 * write the client's, without sockets; given as a measurement that can be taken again.
 */
export function codecCostOf(client: ClientName, upstream: UpstreamName): () => Promise<CodecCost> {
  const route = routeIn(upstream);
  const request = (stream: boolean): string =>
    JSON.stringify(requestOf(client, { model: "acme/large", stream }));
  const requests = { whole: request(false), stream: request(true) };
  const answer = wholeAnswer(upstream);
  const chunks = answerFrames(upstream).map((text) => Buffer.from(text));
  const shown = {
    id: "answer_1",
    model: "acme/large",
    chargedNano: 16_000n,
    fallback: undefined,
    metadataText: () => '{"timings":{}}',
    metered: { usage: { inputTokens: 120, outputTokens: 90 }, estimated: false, clamped: false },
  };
  const whole = (): void => {
    const adapter = adaptIn(client, {
      body: JSON.parse(requests.whole) as Record<string, unknown>,
      route,
    });
    const read = adapter.readWhole(answer, JSON.parse(answer) as object);
    if (read === undefined || read.render(shown).length < 100)
      throw new Error(`${client} has no answer from ${upstream}`);
  };
  const stream = async (): Promise<void> => {
    const adapter = adaptIn(client, {
      body: JSON.parse(requests.stream) as Record<string, unknown>,
      route,
    });
    const { settled } = await relayIn(adapter, chunks);
    if (settled !== "completed") throw new Error(`${client} has no stream from ${upstream}`);
  };
  return async () => ({ whole: await cpuUsOf(whole, 3_000), stream: await cpuUsOf(stream, 150) });
}

async function cpuUsOf(work: () => void | Promise<void>, times: number): Promise<number> {
  // What was left over by another pair is not to be collected at the cost of this one.
  Bun.gc(true);
  const before = process.cpuUsage();
  for (let count = 0; count < times; count += 1) await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / times;
}
