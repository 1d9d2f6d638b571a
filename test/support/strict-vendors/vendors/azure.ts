import type { VendorRule } from "../rule.ts";
import { openaiRules } from "./openai.ts";

/**
 * OpenAI's rules that Azure was seen to share; both serve the same models. Source:
 * learn.microsoft.com/azure/ai-foundry/openai/how-to/reasoning (2026-11).
 */
const shared = new Set([
  "functions-beside-reasoning",
  "responses-only",
  "max-tokens",
  "temperature",
  "top-p",
  "presence-penalty",
  "frequency-penalty",
  "logit-bias",
  "logprobs",
  "top-logprobs",
  "stop",
  "unknown-reasoning",
  "calls-without-results",
  "responses-temperature",
  "responses-small-cap",
  "responses-output-without-call",
]);

/** The rule about seals that another resource has made, as a balanced load meets it. */
const otherRegion = "responses-other-account";

/** What Azure refuses. */
export const azureRules: readonly VendorRule[] = openaiRules
  .filter(({ id }) => shared.has(id) || id === otherRegion)
  .map((rule) => ({
    ...rule,
    vendor: "azure",
    source:
      rule.id === otherRegion
        ? "github.com/openai/openai-agents-python/issues/2063, BerriAI/litellm/issues/18094 (2025-12-17)"
        : "learn.microsoft.com/azure/ai-foundry/openai/how-to/reasoning (2026-11)",
  }));
