import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import {
  amazonConverseWire as converse,
  converseEvent,
  converseHead,
} from "../../support/upstream/amazon-converse-wire.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { json, sse, stream, type BodyStep, type Script } from "../../support/upstream/steps.ts";
import { expectSoundBooks } from "../scenarios/support/expect-sound-books.ts";
import { eventsOfWhole } from "./pairs/streamed-answer.ts";
import { chat, gemini, response, said } from "./pairs/upstream-heads.ts";
import { fieldsOf, listOf, type Fields } from "./support/json-value.ts";
import { routed } from "./support/matrix-scene.ts";
import { clients } from "./support/pairs.ts";
import { readReply, type Reply } from "./support/reply.ts";

/** An upstream whose reasoning, or its seal, comes after the text of its answer. */
interface LateUpstream {
  name: string;
  provider: Fields;
  whole: Fields;
  streamed: Script;
  /** Finds the seal in the next request, at its own place. */
  sealIn(request: Fields): unknown;
}

const seal = "c2Vh";
const thought = { text: "Hm.", signature: seal };
const sealedDetail = { type: "reasoning.encrypted", data: seal, index: 0, id: "rs_1" };
const chatChunk = (delta: Fields, more: Fields = {}): BodyStep =>
  sse({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "large-v2",
    choices: [{ index: 0, delta, finish_reason: null, ...more }],
  });
const gemini3 = gemini([{ text: "Done.", thoughtSignature: seal }], "STOP");
const item = { id: "rs_1", type: "reasoning", summary: [], encrypted_content: seal };
const spoken = response([said("Done."), item]);

const upstreams: readonly LateUpstream[] = [
  {
    name: "openrouter",
    provider: { id: "openrouter" },
    whole: chat({
      message: { role: "assistant", content: "Done.", reasoning_details: [sealedDetail] },
      finish_reason: "stop",
    }),
    streamed: stream([
      chatChunk({ role: "assistant", content: "" }),
      chatChunk({ content: "Done." }),
      chatChunk({ reasoning_details: [sealedDetail] }),
      chatChunk({}, { finish_reason: "stop" }),
      sse("[DONE]"),
    ]),
    sealIn: ({ messages }) =>
      listOf(fieldsOf(listOf(messages)[1]).reasoning_details).map(({ data }) => data)[0],
  },
  {
    name: "openai-responses",
    provider: { id: "sealing-responses", dialect: "openai-responses" },
    whole: spoken,
    streamed: stream(eventsOfWhole("openai-responses", spoken)),
    sealIn: ({ input }) =>
      listOf(input).find(({ type }) => type === "reasoning")?.encrypted_content,
  },
  {
    name: "google-generate",
    provider: { id: "sealing-gemini", dialect: "google-generate" },
    whole: gemini3,
    streamed: stream([
      sse({ ...gemini3, candidates: [{ content: { role: "model", parts: [{ text: "Done." }] } }] }),
      sse({
        ...gemini3,
        candidates: [
          {
            content: { role: "model", parts: [{ text: "", thoughtSignature: seal }] },
            finishReason: "STOP",
          },
        ],
      }),
    ]),
    sealIn: ({ contents }) => listOf(fieldsOf(listOf(contents)[1]).parts)[0]?.thoughtSignature,
  },
  {
    name: "amazon-converse",
    provider: { id: "sealing-converse", dialect: "amazon-converse" },
    whole: {
      ...fieldsOf(converse.whole),
      output: {
        message: {
          role: "assistant",
          content: [{ text: "Done." }, { reasoningContent: { reasoningText: thought } }],
        },
      },
    },
    streamed: stream(
      [
        ...converse.opening,
        converseEvent("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "Done." } }),
        converseEvent("contentBlockStop", { contentBlockIndex: 0 }),
        ...[{ text: "Hm." }, { signature: seal }].map((reasoningContent) =>
          converseEvent("contentBlockDelta", { contentBlockIndex: 1, delta: { reasoningContent } }),
        ),
        converseEvent("contentBlockStop", { contentBlockIndex: 1 }),
        converseEvent("messageStop", { stopReason: "end_turn" }),
        ...converse.terminator,
      ],
      { headers: converseHead },
    ),
    sealIn: ({ messages }) =>
      listOf(fieldsOf(listOf(messages)[1]).content)
        .map(({ reasoningContent }) => fieldsOf(fieldsOf(reasoningContent).reasoningText).signature)
        .find((signature) => signature !== undefined),
  },
];

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  const models = [
    {
      id: "acme/large",
      upstream_model: "gemini-3-pro",
      context_length: 131_072,
      max_completion_tokens: 8_192,
      pricing: { prompt: "0.50", completion: "1.50" },
    },
  ];
  gateway = await startGateway({
    providers: upstreams.map(({ provider: fields }) =>
      provider({ base_url: upstream.baseUrl, api_key: "upstream-secret", models, ...fields }),
    ),
    plans: { enterprise: { perMinute: 1_000_000 } },
  });
});
afterAll(async () => {
  try {
    await expectSoundBooks(gateway);
  } finally {
    await gateway.stop();
    upstream.stop();
  }
});

const messages = clients.find(({ name }) => name === "anthropic-messages") ?? clients[0]!;

async function ask(fields: Fields, { provider: { id } }: LateUpstream): Promise<Reply> {
  const sent = routed({ ...messages.ask("Go"), ...fields }, [String(id)]);
  return readReply(messages, await gateway.post(messages.path, sent));
}

/** Asks again with the turn as the client was sent it; gives what the provider was sent. */
async function askNext(content: unknown, row: LateUpstream, first: string): Promise<Fields> {
  upstream.script(json(row.whole));
  const turns = [
    { role: "user", content: first },
    { role: "assistant", content },
    { role: "user", content: "More" },
  ];
  await ask({ messages: turns }, row);
  return fieldsOf(upstream.requests.at(-1)?.json());
}

const rows = upstreams.flatMap((row) =>
  [false, true].map(
    (streamed) => [`${row.name}, ${streamed ? "streamed" : "whole"}`, { row, streamed }] as const,
  ),
);

describe("text stays the last block of a message, and a seal after it returns to its provider", () => {
  test.each(rows)("%s", async (name, { row, streamed }) => {
    upstream.script(streamed ? row.streamed : json(row.whole));
    const first = `Go: ${name}`;
    const reply = await ask(
      { messages: [{ role: "user", content: first }], stream: streamed },
      row,
    );
    expect([reply.status, reply.breaches, reply.said]).toEqual([200, [], "Done."]);
    const content = listOf(reply.body.content);
    expect(content.at(-1)).toMatchObject({ type: "text", text: "Done." });
    const thoughts = content.filter(({ type }) => type !== "text");
    expect(
      thoughts.filter(({ thinking, signature, data }) => !thinking && !signature && !data),
    ).toEqual([]);
    expect(row.sealIn(await askNext(content, row, first))).toBe(seal);
  });
});

test("a seal after the text is kept for its own conversation", async () => {
  const row = upstreams[0]!;
  upstream.script(row.streamed);
  const reply = await ask({ messages: [{ role: "user", content: "Mine" }], stream: true }, row);
  const content = reply.body.content;
  expect(row.sealIn(await askNext(content, row, "Another's"))).toBeUndefined();
  expect(row.sealIn(await askNext(content, row, "Mine"))).toBe(seal);
});

test("reasoning between a text and a call keeps its place in a stream", async () => {
  const row = upstreams[0]!;
  const call = {
    index: 0,
    id: "call_1",
    type: "function",
    function: { name: "look", arguments: "{}" },
  };
  upstream.script(
    stream([
      chatChunk({ role: "assistant", content: "I look." }),
      chatChunk({
        reasoning: "Hm.",
        reasoning_details: [{ type: "reasoning.text", text: "Hm.", index: 0 }],
      }),
      chatChunk({ reasoning_details: [sealedDetail] }),
      chatChunk({ tool_calls: [call] }),
      chatChunk({}, { finish_reason: "tool_calls" }),
      sse("[DONE]"),
    ]),
  );
  const reply = await ask(
    { stream: true, tools: [{ name: "look", input_schema: { type: "object" } }] },
    row,
  );
  expect(reply.breaches).toEqual([]);
  expect(listOf(reply.body.content).map(({ type }) => type)).toEqual([
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
  ]);
});
