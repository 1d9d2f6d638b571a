import { all, at, fieldsOf, isLonger, isSet } from "../reading.ts";
import { type Fields, rulesOf, type VendorRule } from "../rule.ts";
import { ask } from "../samples.ts";

const envelope = ({ message }: { message: string }): Fields => ({
  error: { message, code: 400 },
  user_id: "user_strict",
});

const model = "anthropic/claude-sonnet-4.5";
const types = "@openrouter/sdk 1.3.19, models/chatrequest (2026-11-21)";

/** What OpenRouter refuses. */
export const openrouterRules: readonly VendorRule[] = rulesOf(
  { vendor: "openrouter", endpoint: "chat", body: envelope },
  [
    {
      id: "long-user",
      when: isLonger("user", 128),
      says: "user: Too big: expected string to have <=128 characters",
      source: "github.com/ujisati/claude-code-provider-proxy/pull/11 (2025-07-21)",
      violates: { model, body: ask({ user: "u".repeat(129) }) },
    },
    {
      id: "long-session",
      when: isLonger("session_id", 256),
      says: "session_id: Too big: expected string to have <=256 characters",
      source: types,
      violates: { model, body: ask({ session_id: "s".repeat(257) }) },
    },
    {
      id: "effort-and-budget",
      when: all(isSet("reasoning.effort"), isSet("reasoning.max_tokens")),
      says: 'Only one of "reasoning.effort" and "reasoning.max_tokens" can be specified',
      source: "openrouter.ai/docs/use-cases/reasoning-tokens (2026-11)",
      violates: { model, body: ask({ reasoning: { effort: "high", max_tokens: 2_000 } }) },
    },
    {
      id: "two-efforts",
      when: ({ body }) =>
        body["reasoning_effort"] !== undefined &&
        at(body, "reasoning.effort") !== undefined &&
        body["reasoning_effort"] !== at(body, "reasoning.effort"),
      says: 'Only one of "reasoning" and "reasoning_effort" may be provided',
      source: "openrouter.ai/docs/use-cases/reasoning-tokens (2026-11)",
      violates: {
        model,
        body: ask({ reasoning_effort: "low", reasoning: { effort: "high" } }),
      },
    },
    {
      id: "too-many-models",
      when: ({ body }) => Array.isArray(body["models"]) && body["models"].length > 3,
      says: "'models' array must have 3 items or fewer.",
      source: "openrouter.ai/docs/features/model-routing (2026-11)",
      violates: { model, body: ask({ models: ["a/a", "b/b", "c/c", "d/d"] }) },
    },
    {
      id: "small-cap-at-openai",
      models: /^openai\/(?:gpt-[4-9]|o\d)/,
      when: ({ body }) => {
        const cap = body["max_completion_tokens"] ?? body["max_tokens"];
        return typeof cap === "number" && cap < 16;
      },
      says: "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 5 instead.",
      source:
        "github.com/musistudio/claude-code-router/issues/994 (2025-11-13), " +
        "vllm-project/guidellm/issues/370 (2025-09-25)",
      violates: { model: "openai/gpt-5", body: ask({ max_tokens: 5 }) },
    },
    {
      id: "large-metadata",
      when: ({ body }) => Object.keys(fieldsOf(body["metadata"])).length > 16,
      says: "metadata: Too many properties: expected at most 16",
      source: types,
      violates: {
        model,
        body: ask({
          metadata: Object.fromEntries(
            Array.from({ length: 17 }, (_, index) => [`k${index}`, "v"]),
          ),
        }),
      },
    },
  ],
);
