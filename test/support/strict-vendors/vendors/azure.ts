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

/** What Azure refuses. */
export const azureRules: readonly VendorRule[] = openaiRules
  .filter(({ id }) => shared.has(id))
  .map((rule) => ({
    ...rule,
    vendor: "azure",
    source: "learn.microsoft.com/azure/ai-foundry/openai/how-to/reasoning (2026-11)",
  }));
