import { describe, expect, test } from "bun:test";
import type { ShownAnswer } from "../interpretation.ts";
import { readCompletion } from "./read-completion.ts";

const shown: ShownAnswer = {
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

const shape = { legacyFunctions: false, hidesReasoning: false };

const rendered = (changes: Record<string, unknown>): unknown => {
  const text = JSON.stringify({ ...usual, ...changes });
  const answer = readCompletion(text, JSON.parse(text) as Record<string, unknown>, {
    shape,
    nowSeconds: () => 1_000,
  });
  return JSON.parse(answer?.render(shown) ?? "null");
};

describe("what every completion has (contract: chat completions, response)", () => {
  const whole = {
    object: "chat.completion",
    created: 7,
    id: "chatcmpl-1",
    model: "acme/large",
    usage: { ...usual.usage, cost: 0.000005 },
  };

  test.each<[what: string, changes: Record<string, unknown>, created: number]>([
    ["stays as it came", {}, 7],
    ["is added where a provider leaves it out", { object: undefined, created: undefined }, 1_000],
    ["is put right where it is something else", { object: "chat", created: "today" }, 1_000],
    ["is an integer", { created: 7.9 }, 7],
  ])("%s", (_, changes, created) => {
    expect(rendered(changes)).toMatchObject({ ...whole, created });
  });
});
