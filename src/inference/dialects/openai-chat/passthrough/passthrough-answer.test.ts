import { describe, expect, test } from "bun:test";
import { adaptIn, relayIn, routeIn } from "../../../../../test/support/in-process.ts";
import type { ShownAnswer } from "../../shared/exchange.ts";
import { readCompletion } from "./passthrough-answer.ts";

const shownAnswer: ShownAnswer = {
  id: "chatcmpl-1",
  model: "acme/large",
  chargedNano: 5_000n,
  isByok: false,
  free: false,
  fallback: undefined,
  metered: { usage: { inputTokens: 1, outputTokens: 2 }, estimated: false, clamped: false },
  metadataText: () => "",
};
const usual = {
  id: "up-1",
  object: "chat.completion",
  created: 7,
  model: "large-v2",
  choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
};

const shape = {
  legacyFunctions: false,
  hidesReasoning: false,
  toolNames: () => [],
  callSeed: "seed",
};

const rendered = (changes: Record<string, unknown>): unknown => {
  const text = JSON.stringify({ ...usual, ...changes });
  const answer = readCompletion(text, JSON.parse(text) as Record<string, unknown>, {
    shape,
    providerId: "acme",
    nowSeconds: () => 1_000,
  });
  return JSON.parse(answer?.render(shownAnswer) ?? "null");
};

describe("the provider of a whole answer is its last member, where the upstream names none:", () => {
  test.each<[what: string, changes: Record<string, unknown>, provider: string]>([
    ["as usual", {}, "acme"],
    ["with a member to correct", { object: undefined }, "acme"],
    ["as null", { provider: null }, "acme"],
    ["named by an upstream gateway", { provider: "Azure" }, "Azure"],
  ])("%s", (_, changes, provider) => {
    expect(rendered(changes)).toMatchObject({ provider, model: "acme/large" });
  });

  test("also where text follows the answer", () => {
    const text = `${JSON.stringify({ ...usual, system_fingerprint: null })} \n`;
    const answer = readCompletion(text, JSON.parse(text) as Record<string, unknown>, {
      shape,
      providerId: "acme",
      nowSeconds: () => 1_000,
    });
    expect(answer?.render(shownAnswer)).toEndWith(',"provider":"acme"}');
  });
});

describe("object and created (contract: chat completions, response)", () => {
  const whole = {
    object: "chat.completion",
    created: 7,
    id: "chatcmpl-1",
    model: "acme/large",
    usage: { ...usual.usage, cost: 0.000005 },
  };

  test.each<[what: string, changes: Record<string, unknown>, created: number]>([
    ["are kept if valid", {}, 7],
    ["are added if missing", { object: undefined, created: undefined }, 1_000],
    ["are corrected if invalid", { object: "chat", created: "today" }, 1_000],
    ["are rounded down", { created: 7.9 }, 7],
  ])("%s", (_, changes, created) => {
    expect(rendered(changes)).toMatchObject({ ...whole, created });
  });
});

type Fields = Record<string, unknown>;

const call = { index: 0, id: "a", type: "function", function: { name: "f", arguments: "{}" } };
const text = { role: "assistant", content: "So." };
const calls = { role: "assistant", content: null, tool_calls: [call] };

/** What a provider wrote, what it said, and the reason that the client is to see. */
const ends: readonly [word: unknown, said: Fields, seen: string][] = [
  ...["stop", "length", "content_filter"].map(
    (word) => [word, text, word] as [string, Fields, string],
  ),
  ["tool_calls", calls, "tool_calls"],
  ["eos", text, "stop"],
  ["end_turn", text, "stop"],
  ["STOP", text, "stop"],
  ["max_tokens", text, "length"],
  ["MAX_TOKENS", text, "length"],
  ["", text, "stop"],
  [null, text, "stop"],
  [undefined, text, "stop"],
  ["unknown", text, "stop"],
  ["stop", calls, "tool_calls"],
  ["", calls, "tool_calls"],
  ["tool_calls", text, "stop"],
  ["tool_use", calls, "tool_calls"],
  ["refusal", text, "content_filter"],
];

const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
const body = { model: "acme/large", messages: [{ role: "user", content: "Hi" }] };
const shown: ShownAnswer = {
  id: "chatcmpl-1",
  model: "acme/large",
  chargedNano: 5_000n,
  fallback: undefined,
  metadataText: () => "{}",
  metered: { usage: { inputTokens: 1, outputTokens: 2 }, estimated: false, clamped: false },
};

/** The whole answer that a client gets of a provider's. */
function whole(answer: Fields, asked: Fields = {}): Fields {
  const completion = {
    id: "c1",
    object: "chat.completion",
    created: 7,
    model: "m",
    system_fingerprint: "fp",
    usage,
    ...answer,
  };
  const read = adaptIn("openai-chat", {
    body: { ...body, ...asked },
    route: routeIn("openai-chat"),
  }).readWhole(JSON.stringify(completion), completion);
  return JSON.parse(read?.render(shown) ?? "null") as Fields;
}

/**
 * The chunks that a client gets of a provider's, without `[DONE]`; the last one has the metadata.
 */
async function streamed(chunks: readonly Fields[], asked: Fields = {}): Promise<Fields[]> {
  const adapter = adaptIn("openai-chat", {
    body: { ...body, stream: true, ...asked },
    route: routeIn("openai-chat"),
  });
  const envelope = { id: "c1", object: "chat.completion.chunk", created: 7, model: "m" };
  const events = [...chunks.map((chunk) => JSON.stringify({ ...envelope, ...chunk })), "[DONE]"];
  const relayed = await relayIn(
    adapter,
    events.map((event) => Buffer.from(`data: ${event}\n\n`)),
  );
  return relayed.text
    .split("\n\n")
    .filter((frame) => frame.startsWith("data: {"))
    .map((frame) => JSON.parse(frame.slice(6)) as Fields);
}

const entriesOf = (chunk: Fields): Fields[] => chunk.choices as Fields[];
const reasonsOf = (chunks: readonly Fields[]): unknown[] =>
  chunks
    .flatMap(entriesOf)
    .map(({ finish_reason: reason }) => reason)
    .filter((reason) => reason !== null);

describe("the finish reason is one of five values", () => {
  test.each(ends)("whole: %p", (word, said, seen) => {
    expect(whole({ choices: [{ index: 0, message: said, finish_reason: word }] }).choices).toEqual([
      expect.objectContaining({ finish_reason: seen }),
    ]);
  });

  test.each(ends)("streamed, once: %p", async (word, delta, seen) => {
    const apart = [
      { choices: [{ index: 0, delta }] },
      { choices: [{ index: 0, delta: {}, finish_reason: word }] },
    ];
    expect(reasonsOf(await streamed(apart))).toEqual([seen]);
    expect(
      reasonsOf(await streamed([{ choices: [{ index: 0, delta, finish_reason: word }] }])),
    ).toEqual([seen]);
  });

  test("streamed, once, if the provider sends it twice", async () => {
    const end = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
    expect(reasonsOf(await streamed([{ choices: [{ index: 0, delta: text }] }, end, end]))).toEqual(
      ["stop"],
    );
  });

  test("function_call for a legacy call", async () => {
    const said = {
      role: "assistant",
      content: null,
      function_call: { name: "f", arguments: "{}" },
    };
    const choice = { index: 0, finish_reason: "stop" };
    expect(whole({ choices: [{ ...choice, message: said }] }).choices).toEqual([
      expect.objectContaining({ finish_reason: "function_call" }),
    ]);
    for (const asked of [{ functions: [{ name: "f" }] }, {}]) {
      const chunks = await streamed([{ choices: [{ ...choice, delta: said }] }], asked);
      expect(reasonsOf(chunks)).toEqual(["function_call"]);
    }
  });

  test.each(["error", "abort", "insufficient_system_resource"])(
    "%s becomes an error, and interrupts a stream",
    async (word) => {
      const answer = whole({ choices: [{ index: 0, message: text, finish_reason: word }] });
      expect(answer).toMatchObject({
        choices: [{ finish_reason: "error" }],
        error: { code: "upstream_error" },
      });
      const chunks = await streamed([
        { choices: [{ index: 0, delta: text }] },
        { choices: [{ index: 0, delta: {}, finish_reason: word }] },
      ]);
      expect(chunks.at(-1)).toMatchObject({ error: { message: expect.any(String) as unknown } });
      expect(reasonsOf(chunks.filter((chunk) => "choices" in chunk))).not.toContain("stop");
    },
  );
});

describe("a response is corrected:", () => {
  const choices = [{ index: 0, message: text, finish_reason: "stop" }];

  test("not if it is valid", () => {
    expect(whole({ choices })).toMatchObject({ created: 7, system_fingerprint: "fp", choices });
  });

  test.each([
    [0, 1_763_700_000],
    [7.9, 7],
    [1_763_700_000_123, 1_763_700_000],
    ["today", 1_763_700_000],
    [undefined, 1_763_700_000],
  ])("created %p becomes %p", async (created, seen) => {
    expect(whole({ created, choices }).created).toBe(seen);
    const end = { created, choices: [{ delta: {}, finish_reason: "stop" }] };
    const chunks = await streamed([{ created, choices: [{ index: 0, delta: text }] }, end]);
    expect(new Set(chunks.map((chunk) => chunk.created))).toEqual(new Set([seen]));
  });

  test("created is the first valid one, in every chunk", async () => {
    const saying = (created: number, content: string): Fields => ({
      created,
      choices: [{ index: 0, delta: { content }, finish_reason: null }],
    });
    const said = [saying(0, "So"), saying(7, " be"), saying(8, " it"), saying(9, ".")];
    const stamps = async (chunks: readonly Fields[]): Promise<unknown[]> => [
      ...new Set((await streamed(chunks)).map(({ created }) => created)),
    ];
    expect(await stamps(said.slice(1))).toEqual([7]);
    expect(await stamps(said)).toEqual([1_763_700_000]);
  });

  test("whole: role, content, index, object and system_fingerprint", () => {
    const answer = whole({
      object: undefined,
      system_fingerprint: undefined,
      choices: [{ message: { content: "So." } }],
    });
    expect(answer).toMatchObject({ object: "chat.completion", system_fingerprint: null, choices });
    expect(
      whole({
        choices: [{ index: 0, message: { tool_calls: [call] }, finish_reason: "tool_calls" }],
      }).choices,
    ).toMatchObject([{ message: { role: "assistant", content: null } }]);
  });

  test("streamed: object, one role, a finish_reason in each choice, and no null text", async () => {
    const bare = (delta: Fields): Fields => ({
      object: undefined,
      system_fingerprint: null,
      usage: null,
      choices: [{ index: 0, delta }],
    });
    const deltas = [
      { content: "So" },
      { role: null, content: " be" },
      { content: " it" },
      { content: "." },
    ];
    const chunks = await streamed(deltas.map(bare));
    expect(chunks.every(({ object }) => object === "chat.completion.chunk")).toBe(true);
    expect(chunks.flatMap(entriesOf).map((entry) => (entry.delta as Fields).role)).toEqual([
      "assistant",
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(chunks.flatMap(entriesOf).every((entry) => "finish_reason" in entry)).toBe(true);
    expect(
      chunks.filter((chunk) => chunk.system_fingerprint === null || chunk.usage === null),
    ).toEqual([]);
    expect(
      chunks
        .flatMap(entriesOf)
        .map((entry) => (entry.delta as Fields).content ?? "")
        .join(""),
    ).toBe("So be it.");
  });

  test.each([
    ["a wrong total", { prompt_tokens: 1, completion_tokens: 2, total_tokens: 9 }],
    ["no total", { prompt_tokens: 1, completion_tokens: 2 }],
    ["a total of 0", { prompt_tokens: 1, completion_tokens: 2, total_tokens: 0 }],
  ])("the total of usage: %s", async (_, told) => {
    expect(whole({ choices, usage: told }).usage).toMatchObject(usage);
    const chunks = await streamed([
      { choices: [{ index: 0, delta: text, finish_reason: "stop" }] },
      { choices: [], usage: told },
    ]);
    expect(chunks.at(-1)?.usage).toMatchObject(usage);
  });
});

describe("tool calls are valid for strict clients", () => {
  const called = (id: string | undefined, said: Fields, place: Fields = {}): Fields => ({
    ...place,
    ...(id !== undefined && { id, type: "function" }),
    function: said,
  });
  const delta = (...calls: Fields[]): Fields => ({
    choices: [{ index: 0, delta: { tool_calls: calls }, finish_reason: null }],
  });
  /** Returns the name and arguments of each index, concatenated as a client does. */
  const addedUp = (chunks: readonly Fields[]): [unknown, string, string][] => {
    const seen = new Map<unknown, [string, string]>();
    for (const entry of chunks.flatMap(entriesOf)) {
      for (const each of ((entry.delta as Fields).tool_calls ?? []) as Fields[]) {
        const { name = "", arguments: said = "" } = each.function as Record<string, string>;
        const [names, text] = seen.get(each.index) ?? ["", ""];
        seen.set(each.index, [names + name, text + said]);
      }
    }
    return [...seen].map(([place, [name, text]]) => [place, name, text]);
  };
  const both: [unknown, string, string][] = [
    [0, "f", '{"a":1}'],
    [1, "g", "{}"],
  ];

  test.each<[what: string, deltas: Fields[]]>([
    [
      "missing",
      [
        delta(called("a", { name: "f", arguments: '{"a"' })),
        delta(called(undefined, { arguments: ":1}" })),
        delta(called("b", { name: "g", arguments: "{}" })),
      ],
    ],
    [
      "all equal",
      [
        delta(called("a", { name: "f", arguments: '{"a":1}' }, { index: 0 })),
        delta(called("b", { name: "g", arguments: "{}" }, { index: 0 })),
      ],
    ],
    [
      "counted from 1",
      [
        delta(called("a", { name: "f", arguments: "" }, { index: 1 })),
        delta(called("b", { name: "g", arguments: "" }, { index: 2 })),
        delta(called(undefined, { arguments: '{"a":1}' }, { index: 1 })),
        delta(called(undefined, { arguments: "{}" }, { index: 2 })),
      ],
    ],
    [
      "missing, with arguments as objects",
      [
        delta(
          called("a", { name: "f", arguments: { a: 1 } }),
          called("b", { name: "g", arguments: {} }),
        ),
      ],
    ],
  ])("with indexes that are %s", async (_, deltas) => {
    const chunks = await streamed([
      ...deltas,
      { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
    ]);
    expect(addedUp(chunks)).toEqual(both);
    expect(reasonsOf(chunks)).toEqual(["tool_calls"]);
  });

  test("without ids get ids, sent once, in streams and whole", async () => {
    const nameless = called(undefined, { name: "f", arguments: '{"a":1}' });
    const other = called(undefined, { name: "g", arguments: "{}" });
    const chunks = await streamed([
      delta({ ...nameless, id: "", index: 0 }),
      delta({ ...called("late", { arguments: "" }), index: 0 }),
      delta({ ...other, index: 1 }),
      { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
    ]);
    const pieces = chunks
      .flatMap(entriesOf)
      .flatMap((entry) => ((entry.delta as Fields).tool_calls ?? []) as Fields[]);
    const ids = ["call_c1_0", "call_c1_1"];
    expect(pieces.flatMap(({ id }) => (id === undefined ? [] : [id]))).toEqual(ids);
    expect(
      pieces.flatMap(({ index, id, type }) => (id === undefined ? [] : [[index, type]])),
    ).toEqual([
      [0, "function"],
      [1, "function"],
    ]);
    expect(addedUp(chunks)).toEqual(both);
    const message = {
      role: "assistant",
      content: null,
      tool_calls: [{ ...nameless, id: "" }, other],
    };
    expect(
      whole({ choices: [{ index: 0, message, finish_reason: "tool_calls" }] }).choices,
    ).toMatchObject([{ message: { tool_calls: ids.map((id) => ({ id, type: "function" })) } }]);
  });

  test("without ids and indexes are separated by their names", async () => {
    const chunks = await streamed([
      delta(
        called(undefined, { name: "f", arguments: '{"a":1}' }),
        called(undefined, { name: "g", arguments: "{}" }),
      ),
    ]);
    expect(addedUp(chunks)).toEqual(both);
  });

  test("with valid indexes are forwarded unchanged", async () => {
    const sent = delta(called("a", { name: "f", arguments: "{}" }, { index: 0, x: 1 }));
    const [first] = await streamed([sent]);
    expect(first?.choices).toEqual([
      {
        index: 0,
        delta: { role: "assistant", ...(entriesOf(sent)[0]?.delta as Fields) },
        finish_reason: null,
      },
    ]);
  });

  test.each<[unknown, string]>([
    ["", "{}"],
    [" ", "{}"],
    [null, "{}"],
    [undefined, "{}"],
    [{ a: 1 }, '{"a":1}'],
    ['{"a": 1}', '{"a": 1}'],
    ["{broken", "{broken"],
  ])("with the arguments %p have %p in a whole response", (came, seen) => {
    const message = {
      role: "assistant",
      content: null,
      tool_calls: [called("a", { name: "f", arguments: came })],
    };
    expect(
      whole({ choices: [{ index: 0, message, finish_reason: "tool_calls" }] }).choices,
    ).toMatchObject([
      { message: { tool_calls: [{ id: "a", function: { name: "f", arguments: seen } }] } },
    ]);
    const older = {
      role: "assistant",
      content: null,
      function_call: { name: "f", arguments: came },
    };
    expect(
      whole({ choices: [{ index: 0, message: older, finish_reason: "function_call" }] }).choices,
    ).toMatchObject([{ message: { function_call: { name: "f", arguments: seen } } }]);
  });
});

describe("reasoning.exclude removes reasoning", () => {
  const thoughts = {
    reasoning_content: "Hm.",
    reasoning: "Hm.",
    reasoning_details: [{ type: "reasoning.text", text: "Hm." }],
  };
  const asked = { reasoning: { exclude: true } };

  test("from every field of a whole response", () => {
    const answer = whole(
      { choices: [{ index: 0, message: { ...text, ...thoughts }, finish_reason: "stop" }] },
      asked,
    );
    expect(answer.choices).toEqual([{ index: 0, message: text, finish_reason: "stop" }]);
    const parts = {
      role: "assistant",
      content: [
        { type: "thinking", thinking: [] },
        { type: "text", text: "So." },
      ],
    };
    expect(
      whole({ choices: [{ index: 0, message: parts, finish_reason: "stop" }] }, asked).choices,
    ).toEqual([
      { index: 0, message: { role: "assistant", content: "So." }, finish_reason: "stop" },
    ]);
  });

  test.each<[asked: Fields, isHidden: boolean]>([
    [{ include_reasoning: false }, true],
    [{ include_reasoning: true }, false],
    [{ include_reasoning: false, reasoning: { exclude: false } }, false],
    [{ include_reasoning: false, reasoning: { effort: "low" } }, true],
  ])("as %j asks", (fields, isHidden) => {
    const answer = whole(
      { choices: [{ index: 0, message: { ...text, ...thoughts }, finish_reason: "stop" }] },
      fields,
    );
    expect(JSON.stringify(answer.choices).includes("Hm.")).toBe(!isHidden);
  });

  test("from every event of a stream", async () => {
    const thinking = (word: string): Fields => ({
      choices: [{ index: 0, delta: { reasoning_content: word }, finish_reason: null }],
    });
    const end = { choices: [{ index: 0, delta: text, finish_reason: "stop" }] };
    const sent = [...["One", "Two", "Three", "Four"].map(thinking), end];
    const hidden = await streamed(sent, asked);
    expect(JSON.stringify(hidden)).not.toMatch(/reasoning|One|Two|Three|Four/);
    expect(hidden).toHaveLength(sent.length + 1);
    expect(JSON.stringify(await streamed(sent))).toContain("Three");
  });
});

test("a list of thoughts and texts is read as text beside its thoughts, whole and streamed", async () => {
  const thought = { type: "thinking", thinking: [{ type: "text", text: "Hm." }] };
  const said = { type: "text", text: "So." };
  const thoughts = { reasoning_content: "Hm.", reasoning: "Hm." };
  const answered = (content: unknown) =>
    whole({ choices: [{ index: 0, message: { content }, finish_reason: "stop" }] }).choices;
  expect(answered([thought, said, said])).toMatchObject([
    { message: { role: "assistant", content: "So.So.", ...thoughts } },
  ]);
  expect(answered([thought])).toMatchObject([{ message: { content: null, ...thoughts } }]);
  const other = [said, { type: "reference", reference_ids: [1] }];
  expect(answered(other)).toMatchObject([{ message: { content: other } }]);
  const chunk = (content: unknown, end: string | null = null): Fields => ({
    choices: [{ index: 0, delta: { content }, finish_reason: end }],
  });
  const chunks = await streamed([chunk([thought]), chunk([said]), chunk(" Yes.", "stop")]);
  expect(chunks.slice(0, 3)).toMatchObject([
    { choices: [{ delta: { role: "assistant", ...thoughts } }] },
    { choices: [{ delta: { content: "So." } }] },
    { choices: [{ delta: { content: " Yes." }, finish_reason: "stop" }] },
  ]);
});
