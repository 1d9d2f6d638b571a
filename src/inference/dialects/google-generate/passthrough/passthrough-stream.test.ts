import { describe, expect, test } from "bun:test";
import { readCassettes } from "../../../../../test/support/cassettes.ts";
import { adaptIn, routeIn } from "../../../../../test/support/in-process.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";
import type { JsonObject } from "../../../canonical/json.ts";
import { ResponseAssembler } from "../../../canonical/response-assembler.ts";
import { type FailureWithUsage, failureOf } from "../../../pipeline/attempt.ts";
import { SseDecoder, type SseEvent } from "../../../upstream/sse-decoder.ts";
import type { RelayOptions, StreamRelay } from "../../shared/stream/stream-relay.ts";
import { StreamFault } from "../../shared/stream/stream-fault.ts";
import { asObject, asString, objectsIn } from "../../shared/wire-fields.ts";
import { GenerateStreamDecoder } from "../decode-stream.ts";

const cassettes = readCassettes("google-generate");
const adapter = adaptIn("google-generate", {
  body: { model: "acme/large", contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
  route: routeIn("google-generate"),
});
const shown = { id: "gw", model: "google/gemini-3-flash" };

function relayFor(changes: Partial<RelayOptions> = {}): {
  relay: StreamRelay;
  settled: () => number;
} {
  let settlements = 0;
  const relay = adapter.createRelay({
    shown,
    inputTokens: 40,
    windowTokens: 200_000,
    fallback: undefined,
    settle: () => {
      settlements += 1;
      return Promise.resolve({ chargedNano: 5_000n });
    },
    metadataText: () => '{"timings":{"total":1}}',
    ...changes,
  });
  return { relay, settled: () => settlements };
}

async function relayed(relay: StreamRelay, events: readonly SseEvent[]): Promise<string> {
  let frames = "";
  for (const event of events) if (!relay.ended) frames += await relay.accept(event);
  return relay.ended ? frames : frames + (await relay.finish());
}

const eventsOf = (bytes: Uint8Array): SseEvent[] => {
  const sse = new SseDecoder();
  return [...sse.push(bytes), ...sse.end()];
};

const event = (fields: object): SseEvent => ({ data: JSON.stringify(fields) });

const says = (words: string, more: object = {}): SseEvent =>
  event({
    candidates: [{ content: { role: "model", parts: [{ text: words }] }, index: 0, ...more }],
  });

const chunksOf = (frames: string): JsonObject[] =>
  eventsOf(Buffer.from(frames)).map(({ data }) => JSON.parse(data) as JsonObject);

const partsOf = (chunks: readonly JsonObject[]): readonly JsonObject[] =>
  chunks.flatMap(({ candidates }) =>
    objectsIn(candidates)
      .filter(({ index = 0 }) => index === 0)
      .flatMap(({ content }) => objectsIn(asObject(content)?.parts)),
  );

const saidIn = (chunks: readonly JsonObject[]): string =>
  partsOf(chunks)
    .filter(({ thought }) => thought !== true)
    .map(({ text }) => asString(text) ?? "")
    .join("");

const faultOf = async (promise: Promise<unknown>): Promise<FailureWithUsage> => {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof StreamFault))
    throw new Error("no stream fault was thrown", { cause: error });
  return failureOf(error, 200);
};

const namesEnd = (bytes: Uint8Array): boolean => Buffer.from(bytes).includes("finishReason");

describe("a complete stream", () => {
  const rows = cassettes
    .filter(({ parts }) => parts.at(-1)?.type === "response-end")
    .map((cassette) => [cassette.name, cassette] as const);

  test.each(rows)("%s: says what it said, with one charge at its end", async (_, { bytes }) => {
    const { relay, settled } = relayFor();
    const events = eventsOf(bytes);
    const frames = await relayed(relay, events);
    const chunks = chunksOf(frames);
    const decoder = new GenerateStreamDecoder();
    const assembler = new ResponseAssembler();
    for (const each of events) for (const part of decoder.decode(each)) assembler.add(part);
    for (const part of decoder.end()) assembler.add(part);
    const [choice] = assembler.response().choices;
    const words = choice?.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
    expect(saidIn(chunks)).toBe(words ?? "");
    expect(partsOf(chunks).filter((part) => part.functionCall !== undefined)).toHaveLength(
      choice?.parts.filter(({ type }) => type === "tool-call").length ?? 0,
    );
    for (const chunk of chunks)
      expect([chunk.responseId, chunk.modelVersion]).toEqual([shown.id, shown.model]);
    expect([settled(), frames.split('"cost":').length - 1, relay.ended]).toEqual([1, 1, true]);
    expect(chunks.at(-1)).toMatchObject({
      usageMetadata: { cost: 0.000005 },
      service_metadata: { timings: { total: 1 } },
    });
  });

  test("has estimated usage if the provider reports none", async () => {
    const { relay } = relayFor();
    const chunks = chunksOf(await relayed(relay, [says("Hello", { finishReason: "STOP" })]));
    expect(relay.metered()).toMatchObject({ usage: { inputTokens: 40 }, estimated: true });
    expect(chunks.at(-1)).toMatchObject({ usageMetadata: { promptTokenCount: 40 } });
  });

  test("that ends at a cap says so and is settled", async () => {
    const { relay, settled } = relayFor();
    const chunks = chunksOf(`${await relay.accept(says("Hello"))}${await relay.endAtCap()}`);
    expect(chunks.at(-1)).toMatchObject({ candidates: [{ finishReason: "MAX_TOKENS" }] });
    expect([settled(), relay.ended]).toEqual([1, true]);
  });
});

describe("an interrupted stream", () => {
  const rows = cassettes
    // Google's own clients get its words for an answer that the model broke off.
    .filter(({ parts, bytes }) => parts.at(-1)?.type === "error" && !namesEnd(bytes))
    .map((cassette) => [cassette.name, cassette] as const);

  test.each(rows)("%s is a failure and never looks complete", async (_name, { bytes }) => {
    const { relay, settled } = relayFor();
    await faultOf(relayed(relay, eventsOf(bytes)));
    expect(settled()).toBe(0);
    const [first, bare] = relay.fail(new GatewayError("upstream_error", "It broke.")).split("\n\n");
    expect(first).toBe(`data: ${bare}`);
    expect(JSON.parse(bare ?? "null")).toMatchObject({ error: { message: "It broke." } });
    expect(relay.ended).toBe(true);
  });

  test("after content without a reason of its end is cut", async () => {
    const { relay } = relayFor();
    expect(await faultOf(relayed(relay, [says("Hello")]))).toMatchObject({ code: "bad_gateway" });
  });

  test("without content is an empty stream", async () => {
    const { relay } = relayFor();
    const empty = says("", { finishReason: "STOP" });
    expect(await faultOf(relayed(relay, [empty]))).toMatchObject({ code: "empty_stream" });
  });
});
