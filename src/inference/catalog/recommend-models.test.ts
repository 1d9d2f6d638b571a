import { describe, expect, test } from "bun:test";
import {
  recommendModels,
  understandTask,
  type JudgedModel,
  type ModelCondition,
  type Recommendation,
  type UnderstoodTask,
} from "./recommend-models.ts";

const model = (id: string, changes: Partial<JudgedModel> = {}): JudgedModel => ({
  id,
  category: "text",
  context_length: 128_000,
  capabilities: ["chat", "function-calling"],
  pricing: { input_per_1m: 1, output_per_1m: 1 },
  ...changes,
});
const priced = (usd: number): Pick<JudgedModel, "pricing"> => ({
  pricing: { input_per_1m: usd, output_per_1m: usd },
});
const healthy: ModelCondition = { status: "healthy", errorRate: 0, firstTokenMs: 400 };

/** Ids in their order. */
function order(
  task: string,
  candidates: readonly (JudgedModel | [JudgedModel, Partial<ModelCondition>])[],
  wanted: Partial<Recommendation> = {},
): string[] {
  const from = candidates.map((each) =>
    Array.isArray(each)
      ? { model: each[0], condition: { ...healthy, ...each[1] } }
      : { model: each, condition: healthy },
  );
  return recommendModels(from, { task, freeOnly: false, ...wanted }).ranked.map(
    (ranked) => ranked.model.id,
  );
}

test.each<[text: string, task: UnderstoodTask]>([
  ["coding", "coding"],
  [" Vision ", "vision"],
  ["Refactor a TypeScript service", "coding"],
  ["translate a contract to French", "translation"],
  ["read screenshots and write code", "vision"],
  ["prove a theorem with logic", "reasoning"],
  ["classify tickets in bulk", "cheap"],
  ["write a poem", "general"],
  ["decode", "general"],
  ["", "general"],
])("understandTask(%j) returns %s", (text, task) => {
  expect(understandTask(text)).toBe(task);
});

describe("of two models that differ in one property, the better one is first", () => {
  test.each<
    [
      what: string,
      task: string,
      better: JudgedModel | [JudgedModel, Partial<ModelCondition>],
      Partial<ModelCondition>?,
    ]
  >([
    ["costs less", "translation", model("z", priced(0.1))],
    ["costs nothing", "cheap", model("z", priced(0))],
    ["has more context", "coding", model("z", { context_length: 1_000_000 })],
    ["can reason", "coding", model("z", { reasoning: { levels: ["low"] } })],
    [
      "calls functions",
      "reasoning",
      model("z", { capabilities: ["chat", "function-calling", "reasoning"] }),
    ],
    ["is faster", "translation", [model("z"), { firstTokenMs: 210 }]],
  ])("the one that %s, for %s", (what, task, better) => {
    const plain = model(
      "a",
      what === "calls functions" ? { capabilities: ["chat", "reasoning"] } : {},
    );
    expect(order(task, [plain, better])).toEqual(["z", "a"]);
  });

  test.each([["no_signal"], ["degraded"]] as const)("healthy before %s", (status) => {
    expect(order("coding", [[model("a"), { status }], model("z")])).toEqual(["z", "a"]);
  });

  test("an unmeasured latency ranks between a low and a high one", () => {
    const candidates: [JudgedModel, Partial<ModelCondition>][] = [
      [model("slow"), { firstTokenMs: 5_000 }],
      [model("unknown"), { firstTokenMs: null }],
      [model("quick"), { firstTokenMs: 200 }],
    ];
    expect(order("translation", candidates)).toEqual(["quick", "unknown", "slow"]);
  });

  test("equal models are sorted by id", () => {
    expect(order("coding", [model("c"), model("a"), model("b")])).toEqual(["a", "b", "c"]);
  });

  test("an unknown price ranks above all others, and a BYOK price does not count as free", () => {
    const unknown = model("unknown", {
      pricing: { input_per_1m: 0, output_per_1m: 0, billing: "byok" },
    });
    expect(order("translation", [unknown, model("dear", priced(19))])).toEqual(["dear", "unknown"]);
    expect(order("translation", [unknown], { freeOnly: true })).toEqual([]);
  });
});

test.each<
  [
    why: string,
    wanted: Partial<Recommendation>,
    candidate: JudgedModel | [JudgedModel, Partial<ModelCondition>],
    task: string,
  ]
>([
  ["task", {}, model("x", { capabilities: ["chat"] }), "coding"],
  ["task", {}, model("x", { context_length: 8_000 }), "coding"],
  ["task", {}, model("x"), "vision"],
  ["task", {}, model("x", { category: "image" }), "translation"],
  ["price", { freeOnly: true }, model("x"), "coding"],
  ["price", { maxInputPer1m: 0.5 }, model("x"), "coding"],
  ["context", { minContext: 128_001 }, model("x"), "coding"],
  ["down", {}, [model("x"), { status: "down" }], "coding"],
])("excluded because of %s: %j", (why, wanted, candidate, task) => {
  const [found, condition] = Array.isArray(candidate) ? candidate : [candidate, {}];
  const from = [{ model: found, condition: { ...healthy, ...condition } }];
  const { ranked, leftOut } = recommendModels(from, { task, freeOnly: false, ...wanted });
  expect(ranked).toEqual([]);
  expect(leftOut).toEqual({ task: 0, price: 0, context: 0, down: 0, [why]: 1 });
});

test("the score is the weighted sum of parts from 0 to 1, with reasons for each part", () => {
  const extremes = [
    model("free", {
      ...priced(0),
      context_length: 10_000_000,
      capabilities: ["function-calling", "reasoning", "vision"],
    }),
    model("dear", { ...priced(500), context_length: 10, capabilities: [] }),
  ];
  const from = extremes.map((each) => ({
    model: each,
    condition: { status: "degraded" as const, errorRate: 0.125, firstTokenMs: 1 },
  }));
  const { ranked } = recommendModels(from, { task: "anything", freeOnly: false });
  expect(ranked.map(({ scores }) => scores)).toEqual([
    { capability: 1, price: 1, context: 1, health: 0.3, latency: 1 },
    { capability: 0, price: 0, context: 0, health: 0.3, latency: 1 },
  ]);
  expect(ranked.map(({ score }) => Number(score.toFixed(6)))).toEqual([0.86, 0.21]);
  expect(ranked[0]?.reasons).toEqual([
    "for general: calls functions, reasons, reads pictures",
    "costs nothing",
    "10000000 tokens of context",
    "degraded, 12.5 % of requests failed lately",
    "first token after 1 ms (median of the last five minutes)",
  ]);
});
