import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { leastMicroseconds } from "../../../../test/support/least-microseconds.ts";
import { totalInputTokens, totalOutputTokens, type Usage } from "../../../platform/kernel/usage.ts";
import { estimateUsage } from "../../canonical/response.ts";
import { readChatUsage, readUsageOf } from "./usage.ts";

const details = (prompt: object, completion: object = {}): object => ({
  prompt_tokens_details: prompt,
  completion_tokens_details: completion,
});

describe("readChatUsage returns disjoint counts:", () => {
  const rows: [what: string, wire: object, usage: Usage][] = [
    [
      "plain",
      { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
      { inputTokens: 10, outputTokens: 5 },
    ],
    [
      "zeros are kept",
      {
        prompt_tokens: 0,
        completion_tokens: 0,
        ...details({ cached_tokens: 0 }, { reasoning_tokens: 0 }),
      },
      { inputTokens: 0, cacheReadTokens: 0, outputTokens: 0, reasoningTokens: 0 },
    ],
    [
      "null is ignored",
      {
        prompt_tokens: 3,
        completion_tokens: 1,
        prompt_tokens_details: null,
        completion_tokens_details: { reasoning_tokens: null },
      },
      { inputTokens: 3, outputTokens: 1 },
    ],
    [
      "cache reads and writes",
      {
        prompt_tokens: 130,
        completion_tokens: 7,
        ...details({ cached_tokens: 100, cache_write_tokens: 20 }),
      },
      { inputTokens: 10, cacheReadTokens: 100, cacheWriteTokens: 20, outputTokens: 7 },
    ],
    [
      "modalities",
      {
        prompt_tokens: 100,
        completion_tokens: 90,
        ...details(
          { audio_tokens: 20, image_tokens: 30, text_tokens: 50 },
          { reasoning_tokens: 40, audio_tokens: 30, image_tokens: 5, text_tokens: 15 },
        ),
      },
      {
        inputTokens: 50,
        inputAudioTokens: 20,
        inputImageTokens: 30,
        outputTokens: 15,
        reasoningTokens: 40,
        outputAudioTokens: 30,
        outputImageTokens: 5,
      },
    ],
    [
      "cached audio is counted once, as cached",
      {
        prompt_tokens: 100,
        completion_tokens: 1,
        ...details({ cached_tokens: 80, audio_tokens: 50 }),
      },
      { inputTokens: 0, cacheReadTokens: 80, inputAudioTokens: 20, outputTokens: 1 },
    ],
    [
      "DeepSeek",
      {
        prompt_tokens: 50,
        prompt_cache_hit_tokens: 30,
        prompt_cache_miss_tokens: 20,
        completion_tokens: 4,
      },
      { inputTokens: 20, cacheReadTokens: 30, outputTokens: 4 },
    ],
    [
      "Moonshot",
      { prompt_tokens: 50, cached_tokens: 30, completion_tokens: 4 },
      { inputTokens: 20, cacheReadTokens: 30, outputTokens: 4 },
    ],
    [
      "Anthropic names beside prompt_tokens",
      {
        prompt_tokens: 130,
        completion_tokens: 4,
        cache_read_input_tokens: 100,
        cache_creation_input_tokens: 20,
        cache_creation: { ephemeral_5m_input_tokens: 15, ephemeral_1h_input_tokens: 5 },
      },
      {
        inputTokens: 10,
        cacheReadTokens: 100,
        cacheWriteTokens: 15,
        cacheWriteOneHourTokens: 5,
        outputTokens: 4,
      },
    ],
    [
      "Anthropic's own shape excludes the cache",
      {
        input_tokens: 10,
        output_tokens: 4,
        cache_read_input_tokens: 100,
        cache_creation_input_tokens: 20,
      },
      { inputTokens: 10, cacheReadTokens: 100, cacheWriteTokens: 20, outputTokens: 4 },
    ],
    [
      "the Responses shape includes it",
      {
        input_tokens: 130,
        output_tokens: 4,
        input_tokens_details: { cached_tokens: 100 },
        output_tokens_details: { reasoning_tokens: 3 },
      },
      { inputTokens: 30, cacheReadTokens: 100, outputTokens: 1, reasoningTokens: 3 },
    ],
    [
      "reasoning within completion",
      {
        prompt_tokens: 5,
        completion_tokens: 10,
        total_tokens: 15,
        ...details({}, { reasoning_tokens: 8 }),
      },
      { inputTokens: 5, outputTokens: 2, reasoningTokens: 8 },
    ],
    [
      "reasoning beside completion",
      {
        prompt_tokens: 5,
        completion_tokens: 10,
        total_tokens: 323,
        ...details({}, { reasoning_tokens: 308 }),
      },
      { inputTokens: 5, outputTokens: 10, reasoningTokens: 308 },
    ],
    [
      "Groq's wrapper",
      { x_groq: { id: "r", usage: { prompt_tokens: 2, completion_tokens: 1, queue_time: 0.1 } } },
      { inputTokens: 2, outputTokens: 1 },
    ],
    ["only input", { prompt_tokens: 9, total_tokens: 9 }, { inputTokens: 9 }],
  ];
  test.each(rows)("%s", (_what, wire, usage) => {
    expect(readChatUsage(wire)).toStrictEqual({ usage, estimated: false, clamped: false });
  });
});

describe("readChatUsage clamps and flags", () => {
  const rows: [what: string, wire: object, usage: Usage][] = [
    ["negative", { prompt_tokens: -5, completion_tokens: -1 }, { inputTokens: 0, outputTokens: 0 }],
    [
      "a fraction",
      { prompt_tokens: 5.4, completion_tokens: 1 },
      { inputTokens: 5, outputTokens: 1 },
    ],
    [
      "absurd",
      { prompt_tokens: 5e12, completion_tokens: 1e300 },
      { inputTokens: 1e9, outputTokens: 1e9 },
    ],
    ["not a number", { prompt_tokens: "many", completion_tokens: 1 }, { outputTokens: 1 }],
    [
      "more cached tokens than input",
      { prompt_tokens: 10, completion_tokens: 1, ...details({ cached_tokens: 90 }) },
      { inputTokens: 0, cacheReadTokens: 10, outputTokens: 1 },
    ],
    [
      "more cache writes than remaining input",
      {
        prompt_tokens: 10,
        completion_tokens: 1,
        ...details({ cached_tokens: 8, cache_write_tokens: 5 }),
      },
      { inputTokens: 0, cacheReadTokens: 8, cacheWriteTokens: 2, outputTokens: 1 },
    ],
    [
      "more reasoning than output",
      {
        prompt_tokens: 10,
        completion_tokens: 3,
        total_tokens: 13,
        ...details({}, { reasoning_tokens: 9 }),
      },
      { inputTokens: 10, outputTokens: 0, reasoningTokens: 3 },
    ],
    [
      "more audio than input",
      { prompt_tokens: 10, completion_tokens: 3, ...details({ audio_tokens: 11 }) },
      { inputTokens: 0, inputAudioTokens: 10, outputTokens: 3 },
    ],
  ];
  test.each(rows)("%s", (_what, wire, usage) => {
    expect(readChatUsage(wire)).toStrictEqual({ usage, estimated: false, clamped: true });
  });

  test("readChatUsage returns plausible counts that add up, for any input", () => {
    const number = fc.oneof(
      fc.nat(500),
      fc.double(),
      fc.integer(),
      fc.constant(null),
      fc.constant(undefined),
      fc.string(),
    );
    const wire = fc.record(
      {
        prompt_tokens: number,
        completion_tokens: number,
        total_tokens: number,
        prompt_cache_hit_tokens: number,
        cache_creation_input_tokens: number,
        cache_creation: fc.record({ ephemeral_1h_input_tokens: number }),
        prompt_tokens_details: fc.option(
          fc.record({
            cached_tokens: number,
            cache_write_tokens: number,
            audio_tokens: number,
            image_tokens: number,
          }),
        ),
        completion_tokens_details: fc.option(
          fc.record({ reasoning_tokens: number, audio_tokens: number, image_tokens: number }),
        ),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(wire, (value) => {
        const metered = readChatUsage(value);
        if (metered === undefined) return;
        for (const count of Object.values(metered.usage)) {
          expect(Number.isInteger(count) && count >= 0 && count <= 1e9).toBe(true);
        }
        if (metered.clamped) return;
        // JSON can say a negative zero, which counts as zero.
        const [prompt, completion] = [value.prompt_tokens, value.completion_tokens].map((told) =>
          told === 0 ? 0 : told,
        );
        if (typeof prompt === "number") expect(totalInputTokens(metered.usage)).toBe(prompt);
        const reasoning = metered.usage.reasoningTokens ?? 0;
        if (typeof completion === "number")
          expect([completion, completion + reasoning]).toContain(totalOutputTokens(metered.usage));
      }),
      { numRuns: 1000 },
    );
  });
});

describe("readChatUsage reads the provider's cost", () => {
  const plain = { prompt_tokens: 1, completion_tokens: 1 };
  const rows: [wire: object, cost: number | undefined][] = [
    [{ cost: 0.0012 }, 0.0012],
    [{ cost: 0 }, 0],
    [{ cost: 0, cost_details: { upstream_inference_cost: 0.5 } }, 0.5],
    [{ cost_details: { upstream_inference_cost: 0.5 } }, 0.5],
    [{ cost: { total_cost: 0.006 } }, 0.006],
    [{ cost: null, cost_details: { upstream_inference_cost: null } }, undefined],
    [{ cost: -1 }, undefined],
    [{}, undefined],
  ];
  test.each(rows)("%j as %p", (wire, cost) => {
    expect(readChatUsage({ ...plain, ...wire })?.providerCostUsd).toBe(cost as number);
  });
});

test("readChatUsage returns undefined without usage", () => {
  for (const value of [
    undefined,
    null,
    0,
    "",
    "x",
    [],
    {},
    { total_tokens: 4 },
    { x_groq: { id: "r" } },
  ]) {
    expect(readChatUsage(value)).toBeUndefined();
  }
});

test("readUsageOf finds usage in any place of a chunk", () => {
  const usage = { prompt_tokens: 2, completion_tokens: 1 };
  for (const body of [
    { usage },
    { usage: null, x_groq: { usage } },
    { choices: [{ index: 0, usage }] },
  ]) {
    expect(readUsageOf(body)?.usage).toEqual({ inputTokens: 2, outputTokens: 1 });
  }
  for (const body of [{}, null, "x", { usage: null, choices: [] }])
    expect(readUsageOf(body)).toBeUndefined();
});

test("estimateUsage flags its result, and counts at least one token for any text", () => {
  expect(estimateUsage({ inputCharacters: 1, outputCharacters: 0 })).toEqual({
    usage: { inputTokens: 1, outputTokens: 0 },
    estimated: true,
    clamped: false,
  });
  expect(estimateUsage({ inputCharacters: 401, outputCharacters: 8 }).usage).toEqual({
    inputTokens: 101,
    outputTokens: 2,
  });
});

test("readChatUsage takes less than 5 µs for plain usage", () => {
  const wire = {
    prompt_tokens: 10,
    completion_tokens: 5,
    total_tokens: 15,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  };
  const eachMicroseconds = leastMicroseconds(() => readChatUsage(wire), { calls: 1_000 });
  console.log(`readChatUsage: ${eachMicroseconds.toFixed(3)} µs`);
  expect(eachMicroseconds).toBeLessThan(5);
});
