import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ScriptedDialect as DialectId } from "../../support/scripted-upstream/scripted-upstream.ts";
import { body, end, head, json, sse, type Script } from "../../support/upstream/steps.ts";
import { createKey } from "../scenarios/support/create-key.ts";
import { settledRow, type SettledRow } from "../scenarios/support/settled-rows.ts";
import { chat, gemini, message, response, said } from "./pairs/upstream-heads.ts";
import type { Fields } from "./support/json-value.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { allPairs, nameOf, type Pair } from "./support/pairs.ts";
import type { Reply } from "./support/reply.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix({ modelFields: { max_completion_tokens: 100_000 } });
});
afterAll(() => scene.end());

/** The output cap of every request. */
const cap = 200;

type Kind = "text" | "thought";

/** How each dialect streams: what comes before, one piece, and what ends it. */
interface Streaming {
  opening: readonly Fields[];
  piece(text: string, kind: Kind, reported: number | undefined): Fields;
  ending: readonly Fields[];
}

const chunk = (delta: Fields, more: Fields = {}): Fields => ({
  id: "c",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta, finish_reason: null }],
  ...more,
});

const streamings: Readonly<Record<DialectId, Streaming>> = {
  "openai-chat": {
    opening: [chunk({ role: "assistant", content: "" })],
    piece: (text, kind, reported) =>
      chunk(kind === "text" ? { content: text } : { reasoning_content: text }, {
        ...(reported !== undefined && {
          usage: { prompt_tokens: 5, completion_tokens: reported, total_tokens: 5 + reported },
        }),
      }),
    ending: [
      { ...chunk({}), choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
      { ...chunk({}), choices: [], usage: { prompt_tokens: 5, completion_tokens: cap } },
    ],
  },
  "anthropic-messages": {
    opening: [
      {
        type: "message_start",
        message: { ...message([], {}, {}), content: [], usage: { input_tokens: 5 } },
      },
    ],
    piece: (text, kind) => ({
      type: "content_block_delta",
      index: 0,
      delta:
        kind === "text" ? { type: "text_delta", text } : { type: "thinking_delta", thinking: text },
    }),
    ending: [
      { type: "content_block_stop", index: 0 },
      {
        type: "message_delta",
        delta: { stop_reason: "end_turn" },
        usage: { output_tokens: cap },
      },
      { type: "message_stop" },
    ],
  },
  "openai-responses": {
    opening: [{ type: "response.created", response: response([], { status: "in_progress" }, {}) }],
    piece: (delta, kind) => ({
      type: `response.${kind === "text" ? "output_text" : "reasoning_text"}.delta`,
      item_id: "item_1",
      output_index: 0,
      content_index: 0,
      delta,
    }),
    ending: [
      {
        type: "response.completed",
        response: response([said("So.")], {}, { input_tokens: 5, output_tokens: cap }),
      },
    ],
  },
  "google-generate": {
    opening: [],
    piece: (text, kind, reported) => ({
      ...gemini([kind === "text" ? { text } : { text, thought: true }], "", {}),
      candidates: [
        {
          index: 0,
          content: {
            role: "model",
            parts: [kind === "text" ? { text } : { text, thought: true }],
          },
        },
      ],
      usageMetadata:
        reported === undefined
          ? undefined
          : { promptTokenCount: 5, candidatesTokenCount: reported, totalTokenCount: 5 + reported },
    }),
    ending: [
      gemini([{ text: "" }], "STOP", {
        promptTokenCount: 5,
        candidatesTokenCount: cap,
        totalTokenCount: 5 + cap,
      }),
    ],
  },
};

/** The event that opens a block or an item, where the dialect has one. */
const openings: Partial<Record<DialectId, (kind: Kind) => Fields[]>> = {
  "anthropic-messages": (kind) => [
    {
      type: "content_block_start",
      index: 0,
      content_block:
        kind === "text" ? { type: "text", text: "" } : { type: "thinking", thinking: "" },
    },
  ],
  "openai-responses": (kind) => [
    {
      type: "response.output_item.added",
      output_index: 0,
      item:
        kind === "text"
          ? { ...said(""), id: "item_1", content: [] }
          : { type: "reasoning", id: "item_1", summary: [], content: [] },
    },
    {
      type: "response.content_part.added",
      item_id: "item_1",
      output_index: 0,
      content_index: 0,
      part:
        kind === "text"
          ? { type: "output_text", text: "", annotations: [] }
          : { type: "reasoning_text", text: "" },
    },
  ],
};

/** Streams pieces, `perWrite` at once, and then the end of a whole answer. */
function streamOf(
  dialect: DialectId,
  {
    pieces,
    kind = "text",
    reports,
    perWrite = 100,
  }: { pieces: readonly string[]; kind?: Kind; reports?: boolean; perWrite?: number },
): Script {
  const { opening, piece, ending } = streamings[dialect];
  const bytes = (fields: Fields): string =>
    Buffer.from(
      sse(fields, typeof fields["type"] === "string" ? { event: fields["type"] } : {}).bytes,
    ).toString();
  const events = pieces.map((text, index) =>
    bytes(piece(text, kind, reports === true ? index + 1 : undefined)),
  );
  const writes = Array.from({ length: Math.ceil(events.length / perWrite) }, (_, index) =>
    body(events.slice(perWrite * index, perWrite * (index + 1)).join("")),
  );
  const before = [...opening, ...(openings[dialect]?.(kind) ?? [])];
  return [
    head({}),
    ...before.map((fields) => body(bytes(fields))),
    ...writes,
    ...ending.map((fields) => body(bytes(fields))),
    ...(dialect === "openai-chat" ? [sse("[DONE]")] : []),
    end(),
  ];
}

const words = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `w${index % 10} `.padStart(5, "x"));

const longStreams = new Map<string, Script>();

/** Returns a stream of 20,000 words, which is the same for all clients. */
function longStream(dialect: DialectId, kind: Kind = "text"): Script {
  const name = `${dialect} ${kind}`;
  const known = longStreams.get(name) ?? streamOf(dialect, { pieces: words(20_000), kind });
  longStreams.set(name, known);
  return known;
}

async function ask(
  { client, upstream }: Pair,
  options: { script: Script; stream?: boolean; secret?: string; fields?: Fields },
): Promise<{ reply: Reply; row: SettledRow | undefined }> {
  scene.upstreams[upstream].script(options.script);
  const reply = await scene.ask(
    client,
    {
      ...client.ask("Talk"),
      ...client.capped(cap),
      stream: options.stream ?? true,
      ...options.fields,
    },
    {
      providers: [providerId(upstream)],
      headers: options.secret === undefined ? {} : { authorization: `Bearer ${options.secret}` },
    },
  );
  const row = await settledRow(scene.gateway, reply.headers.get("x-service-trace-id"));
  return { reply, row };
}

describe.each(allPairs.map((pair) => [nameOf(pair), pair] as const))("%s", (_, pair) => {
  const aborts = async (): Promise<void> => {
    await scene.upstreams[pair.upstream].requests.at(-1)?.aborted;
  };

  test("a stream that passes its cap ends with length, and its provider is aborted", async () => {
    const script = longStream(pair.upstream);
    const { reply, row } = await ask(pair, { script });
    await aborts();
    expect([reply.status, reply.finish, reply.errors, reply.endings]).toEqual([
      200,
      "length",
      [],
      1,
    ]);
    expect(row?.status).toBe("completed");
    expect(row?.completionTokens).toBeWithin(cap, 3 * cap);
    expect(row?.detail.tokensPastCap).toBe((row?.completionTokens ?? 0) - cap);
  });

  test("a small balance is passed by less than its own amount", async () => {
    const secret = await createKey(scene.gateway, { limit: 0.001 });
    const script = longStream(pair.upstream);
    const fields = pair.client.capped(50_000);
    const { reply, row } = await ask(pair, { script, secret, fields });
    await aborts();
    expect(reply.finish).toBe("length");
    expect(Number(row?.costNano)).toBeLessThanOrEqual(1_000_000);
    expect(Number(row?.detail.uncollectedNanoUsd ?? 0)).toBeLessThan(1_000_000);
  });

  test("reasoning past the cap is cut alike", async () => {
    const script = longStream(pair.upstream, "thought");
    const { row } = await ask(pair, { script });
    await aborts();
    expect([row?.status, (row?.completionTokens ?? Infinity) < 3 * cap]).toEqual([
      "completed",
      true,
    ]);
  });

  test("a whole answer past its cap is delivered, and its provider is named", async () => {
    const { reply, row } = await ask(pair, {
      script: json(wholeOf(900)[pair.upstream]),
      stream: false,
    });
    expect([reply.status, row?.completionTokens, row?.detail.tokensPastCap]).toEqual([
      200, 900, 700,
    ]);
  });

  test.each([
    ["long words", Array.from({ length: cap }, () => ` ${"Donaudampfschifffahrt".slice(0, 18)}x`)],
    ["white space", Array.from({ length: cap }, () => " ".repeat(100))],
    ["lines", Array.from({ length: cap }, () => "=".repeat(100))],
    [
      "pieces of a character",
      Array.from({ length: cap * 5 }, (_each, index) => "token "[index % 6] ?? ""),
    ],
    ["Chinese", Array.from({ length: cap }, () => "机器学习")],
  ])("a provider that keeps its cap is not cut: %s", async (_name, pieces) => {
    const { reply, row } = await ask(pair, {
      script: streamOf(pair.upstream, { pieces: ["word ", ...pieces] }),
    });
    expect([reply.finish, row?.status]).toEqual(["stop", "completed"]);
    expect(row?.detail.tokensPastCap).toBeUndefined();
  });
});

test.each(
  allPairs
    .filter(({ upstream }) => upstream === "anthropic-messages")
    .map((pair) => [nameOf(pair), pair] as const),
)("%s: a small cap holds within what arrives at once", async (_, pair) => {
  const script = streamOf(pair.upstream, { pieces: words(5_000), perWrite: 5_000 });
  const { reply, row } = await ask(pair, { script, fields: pair.client.capped(10) });
  expect(reply.finish).toBe("length");
  expect(row?.completionTokens).toBeWithin(10, 100);
});

/** Some providers count reasoning beside the cap. */
test("reasoning that was asked for may pass the cap where the balance pays for it", async () => {
  const pair = allPairs[0];
  if (pair === undefined) throw new Error("there are no pairs");
  const fields = { reasoning_effort: "high" };
  const thoughts = streamOf(pair.upstream, { pieces: words(5_000), kind: "thought" });
  const thinking = await ask(pair, { script: thoughts, fields });
  expect([thinking.reply.finish, thinking.row?.detail.tokensPastCap]).toEqual(["stop", undefined]);
  const texts = streamOf(pair.upstream, { pieces: words(5_000) });
  const speaking = await ask(pair, { script: texts, fields });
  expect(speaking.reply.finish).toBe("length");
});

const told = allPairs.filter(({ upstream }) =>
  ["openai-chat", "google-generate"].includes(upstream),
);

test.each(told.map((pair) => [nameOf(pair), pair] as const))(
  "%s: the count that a provider streams is taken, whatever its text",
  async (_, pair) => {
    const pieces = Array.from({ length: 5_000 }, () => "x");
    const { reply, row } = await ask(pair, {
      script: streamOf(pair.upstream, { pieces, reports: true }),
    });
    expect([reply.finish, (row?.completionTokens ?? Infinity) < 2 * cap]).toEqual(["length", true]);
  },
);

test("the providers are listed in the overview, with what was past their caps", async () => {
  const { service } = scene.gateway.app.insights;
  const sums = await service.passedCaps({ fromDay: 0, toDay: 1_000_000 });
  expect(new Set(sums.map(({ provider }) => provider))).toEqual(
    new Set(allPairs.map(({ upstream }) => providerId(upstream))),
  );
  for (const { tokens, costNanoUsd } of sums) expect(costNanoUsd).toBe(BigInt(tokens) * 1_500n);
});

const wholeOf = (used: number): Readonly<Record<DialectId, Fields>> => ({
  "openai-chat": chat(
    { message: { role: "assistant", content: "So." }, finish_reason: "stop" },
    { prompt_tokens: 11, completion_tokens: used },
  ),
  "anthropic-messages": message(
    [{ type: "text", text: "So." }],
    { stop_reason: "end_turn" },
    { input_tokens: 11, output_tokens: used },
  ),
  "openai-responses": response(
    [said("So.")],
    {},
    { input_tokens: 11, output_tokens: used, total_tokens: 11 + used },
  ),
  "google-generate": gemini([{ text: "So." }], "STOP", {
    promptTokenCount: 11,
    candidatesTokenCount: used,
    totalTokenCount: 11 + used,
  }),
});
