import { describe, expect, test } from "bun:test";
import { requestIn } from "../../../test/support/in-process.ts";
import type { DialectId } from "../canonical/dialect-id.ts";

const bodies = {
  "openai-chat": { model: "m", messages: [{ role: "user", content: "Hi" }] },
  "openai-responses": { model: "m", input: "Hi" },
  "anthropic-messages": { model: "m", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] },
} satisfies Partial<Record<DialectId, object>>;

const refusal = (param: string): unknown => expect.objectContaining({ status: 400, param });
const check = (dialect: keyof typeof bodies, changes: object) => () =>
  requestIn(dialect, { ...bodies[dialect], ...changes });

const shared: readonly [changes: object, param: string][] = [
  [{ store: 0 }, "store"],
  [{ modalities: 0 }, "modalities"],
  [{ modalities: [1] }, "modalities[0]"],
  [{ safety_identifier: 0 }, "safety_identifier"],
  [{ user: 0 }, "user"],
  [{ service_tier: 0 }, "service_tier"],
  [{ reasoning: { summary: "loud" } }, "reasoning.summary"],
  [{ reasoning: { exclude: 1 } }, "reasoning.exclude"],
];

describe("an invalid value is refused on every route that has the field", () => {
  test.each(shared)("%j", (changes, param) => {
    expect(check("openai-chat", changes)).toThrow(refusal(param) as Error);
    expect(check("openai-responses", changes)).toThrow(refusal(param) as Error);
  });

  test("in fields of one route", () => {
    expect(check("openai-chat", { verbosity: 0 })).toThrow(refusal("verbosity") as Error);
    expect(check("openai-responses", { text: { verbosity: 0 } })).toThrow(
      refusal("text.verbosity") as Error,
    );
    expect(check("openai-responses", { input: [] })).toThrow(refusal("input") as Error);
    expect(check("openai-responses", { input: [{ type: "zork" }] })).toThrow(
      refusal("input[0].type") as Error,
    );
    expect(check("anthropic-messages", { thinking: { type: "bogus" } })).toThrow(
      refusal("thinking.type") as Error,
    );
  });

  test("but valid values are accepted", () => {
    expect(
      check("openai-chat", {
        store: true,
        modalities: ["text"],
        verbosity: "low",
        reasoning: { summary: "auto" },
      }),
    ).not.toThrow();
    expect(
      check("openai-responses", {
        input: [{ type: "web_search_call" }, { type: "function_call_output", call_id: "a" }],
      }),
    ).not.toThrow();
    for (const type of ["enabled", "disabled", "adaptive"])
      expect(check("anthropic-messages", { thinking: { type } })).not.toThrow();
  });
});
