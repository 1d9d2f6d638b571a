import { expect, test } from "bun:test";
import { completePrompt, type OfferedTool, type ReadPrompt } from "./prompt.ts";
import { choiceTokens, type SimulatedChoice, type SimulatedReply } from "./dialect.ts";
import { simulate, exampleOfSchema } from "./simulate.ts";
import { z } from "zod";

const weather: OfferedTool = {
  name: "get_weather",
  kind: "function",
  schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const clock: OfferedTool = { name: "get_time", kind: "function", schema: undefined };

function replyTo(text: string, more: Partial<ReadPrompt> = {}): SimulatedReply {
  const read: ReadPrompt = { model: "m", turns: [{ role: "user", text, mediaCount: 0 }], ...more };
  return simulate(completePrompt(read, { seed: "0123456789abcdef", createdAtSeconds: 7 }));
}

function firstChoice({ choices }: SimulatedReply): SimulatedChoice {
  const [choice] = choices;
  if (choice === undefined) throw new Error("a reply has at least one choice");
  return choice;
}

const answerTo = (text: string, more: Partial<ReadPrompt> = {}): SimulatedChoice =>
  firstChoice(replyTo(text, more));
const textOf = (choice: SimulatedChoice): string => choice.text.join("");

test("starts with the simulation notice and repeats the prompt", () => {
  expect(textOf(answerTo("Why is the sky blue?"))).toStartWith(
    '[simulated by the Switchyard sandbox] You wrote: "Why is the sky blue?".',
  );
});

test("gives the same response to the same prompt, and different ones to different prompts", () => {
  expect(replyTo("one")).toEqual(replyTo("one"));
  expect(replyTo("one")).not.toEqual(replyTo("two"));
});

test("calls the first tool with arguments that match its schema", () => {
  const choice = answerTo("Weather?", { tools: [weather, clock] });
  expect(choice.finish).toBe("tool_calls");
  expect(choice.calls.map((call) => [call.name, call.argumentTokens.join("")])).toEqual([
    ["get_weather", '{"city":"simulated city"}'],
  ]);
});

test("calls the named tool", () => {
  const named = {
    tools: [weather, clock],
    toolChoice: { mode: "named", name: "get_time" },
  } as const;
  expect(
    answerTo("x", { ...named, tools: [weather, clock] }).calls.map((call) => call.name),
  ).toEqual(["get_time"]);
});

test("calls as many tools as requested, or one without parallel calls", () => {
  const offer = { tools: [weather, clock] };
  const names = (choice: SimulatedChoice): string[] => choice.calls.map((call) => call.name);
  const three = answerTo("sandbox:calls=3", offer);
  expect(names(three)).toEqual(["get_weather", "get_time", "get_weather"]);
  expect(new Set(three.calls.map((call) => call.id)).size).toBe(3);
  expect(names(answerTo("sandbox:calls=3", { ...offer, parallelCalls: false }))).toEqual([
    "get_weather",
  ]);
  expect(names(answerTo("sandbox:calls=0", offer))).toEqual([]);
  expect(names(answerTo("x", { ...offer, toolChoice: { mode: "none" } }))).toEqual([]);
});

test("responds with text after tool results", () => {
  const turns: ReadPrompt["turns"] = [
    { role: "user", text: "Weather?", mediaCount: 0 },
    { role: "assistant", text: "{}", mediaCount: 0 },
    { role: "tool", text: "sunny", mediaCount: 0 },
  ];
  const choice = answerTo("", { turns, tools: [weather] });
  expect(choice.calls).toEqual([]);
  expect(textOf(choice)).toContain('The tool returned: "sunny".');
});

test("stops before the earliest stop sequence", () => {
  const choice = answerTo("hello", { stop: ["hello", "wrote", ""] });
  expect(textOf(choice)).toBe("[simulated by the Switchyard sandbox] You ");
  expect(choice).toMatchObject({ finish: "stop", stopSequence: "wrote" });
});

test("ends at the token limit, including reasoning", () => {
  const choice = answerTo("hello", { maxTokens: 20, effort: "low" });
  expect(choice.finish).toBe("length");
  expect(choiceTokens(choice)).toHaveLength(20);
  expect(choice.reasoning.length).toBeGreaterThan(5);
  expect(answerTo("hello", { maxTokens: 0 })).toMatchObject({ text: [], finish: "length" });
});

test("has the requested length, up to the token limit", () => {
  expect(answerTo("sandbox:tokens=100").text).toHaveLength(100);
  expect(answerTo("sandbox:tokens=3").text).toHaveLength(3);
  expect(answerTo("sandbox:tokens=20000").text).toHaveLength(20_000);
  expect(answerTo("sandbox:tokens=100", { maxTokens: 10 }).text).toHaveLength(10);
});

test("reasons longer with more effort, and not at all without", () => {
  const lengths = (["low", "medium", "high"] as const).map(
    (effort) => answerTo("x", { effort }).reasoning.length,
  );
  expect(lengths).toEqual([...lengths].sort((one, other) => one - other));
  expect(new Set(lengths).size).toBe(3);
  expect(answerTo("x").reasoning).toEqual([]);
});

test("responds with JSON if requested", () => {
  expect(JSON.parse(textOf(answerTo("hi", { format: { kind: "json" } })))).toEqual({
    simulated: true,
    by: "Switchyard sandbox",
    prompt: "hi",
  });
  const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
  expect(JSON.parse(textOf(answerTo("hi", { format: { kind: "schema", schema } })))).toEqual({
    n: 1,
  });
});

test("counts the usage of all choices in consistent parts", () => {
  const reply = replyTo("sandbox:cached_tokens=4 sandbox:cache_write_tokens=999", {
    choiceCount: 2,
    effort: "low",
  });
  const { usage } = reply;
  expect(usage).toMatchObject({ inputTokens: 14, cachedTokens: 4, cacheWriteTokens: 10 });
  expect(usage?.outputTokens).toBe(reply.choices.flatMap(choiceTokens).length);
  expect(usage?.reasoningTokens).toBe(reply.choices.flatMap((choice) => choice.reasoning).length);
  expect(reply.choices.map(textOf)[0]).not.toBe(reply.choices.map(textOf)[1]);
});

test("omits content or usage if the prompt requests it", () => {
  expect(replyTo("sandbox:no_usage").usage).toBeUndefined();
  const empty = replyTo("sandbox:empty", { effort: "high", tools: [weather] });
  expect(choiceTokens(firstChoice(empty))).toEqual([]);
  expect(empty.usage?.outputTokens).toBe(0);
});

test("counts media and tools as input", () => {
  const text = replyTo("abcd").usage?.inputTokens;
  const media = replyTo("", { turns: [{ role: "user", text: "abcd", mediaCount: 2 }] }).usage
    ?.inputTokens;
  expect([text, media]).toEqual([1, 513]);
  expect(replyTo("abcd", { tools: [weather] }).usage?.inputTokens).toBeGreaterThan(20);
});

const tree: z.ZodType = z.object({
  value: z.int(),
  get children() {
    return z.array(tree);
  },
});
const list: z.ZodType = z.object({
  head: z.string(),
  get tail() {
    return list.nullable();
  },
});

const cases: Record<string, z.ZodType> = {
  scalars: z.object({ a: z.string(), b: z.number(), c: z.int(), d: z.boolean(), e: z.null() }),
  formats: z.object({
    a: z.email(),
    b: z.uuid(),
    c: z.url(),
    d: z.iso.datetime(),
    e: z.iso.date(),
    f: z.ipv4(),
  }),
  bounds: z.object({
    a: z.int().min(7).max(9),
    b: z.number().gt(0).lt(1),
    c: z.number().multipleOf(5).min(11),
    d: z.string().min(30),
    e: z.string().max(3),
    f: z.int().max(-2),
    g: z.array(z.int()).min(3),
  }),
  pattern: z.object({ a: z.string().regex(/^[A-Z]{3}-\d$/), b: z.string().regex(/^\d{5}$/) }),
  choice: z.object({ a: z.enum(["x", "y"]), b: z.literal(5), c: z.union([z.string(), z.int()]) }),
  "nullable and optional": z.object({ a: z.string().nullable(), b: z.string().optional() }),
  nested: z.object({ a: z.array(z.object({ b: z.tuple([z.string(), z.int()]) })) }),
  "discriminated union": z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("one"), a: z.int() }),
    z.object({ kind: z.literal("two"), b: z.string() }),
  ]),
  intersection: z.intersection(z.object({ a: z.int() }), z.object({ b: z.string() })),
  "recursive array": tree,
  "recursive through null": list,
};

for (const [name, schema] of Object.entries(cases)) {
  test(`exampleOfSchema returns a valid example: ${name}`, () => {
    const example = exampleOfSchema(z.toJSONSchema(schema));
    expect(() => schema.parse(example)).not.toThrow();
    expect(exampleOfSchema(z.toJSONSchema(schema))).toEqual(example);
  });
}

test("exampleOfSchema reads Gemini's upper-case type names", () => {
  const schema = { type: "OBJECT", properties: { n: { type: "INTEGER" } }, required: ["n"] };
  expect(exampleOfSchema(schema)).toEqual({ n: 1 });
});

test("exampleOfSchema terminates for schemas without a valid value", () => {
  const endless = { type: "object", properties: { self: { $ref: "#" } }, required: ["self"] };
  expect(exampleOfSchema(endless)).toHaveProperty("self");
  expect(exampleOfSchema({ allOf: [{ $ref: "#" }] })).toBeString();
  expect(exampleOfSchema({ $ref: "#/nowhere" })).toBe("simulated value");
});
