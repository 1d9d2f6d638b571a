import { at } from "../reading.ts";
import type { Fields, VendorRequest } from "../rule.ts";

/** Models that reason; those whose name contains `chat` do not. */
export const reasoningModels = /^(?:o\d|gpt-5(?!.*chat)|gpt-[6-9])/;
/** Models that do not reason. */
export const withoutReasoning = /^gpt-(?:3|4)/;

/** Models that take sampling parameters where reasoning is off. */
const canBeOff = /^gpt-(?:5\.[1-9]|[6-9])/;

/** Returns whether a request turns reasoning off at a model that allows it. */
export const isOff = ({ model, body }: VendorRequest): boolean =>
  canBeOff.test(model) &&
  (body["reasoning_effort"] === "none" || at(body, "reasoning.effort") === "none");

/** Where OpenAI says what reasoning models do not take. */
export const reasoningGuide = "developers.openai.com/api/docs/guides/reasoning (2026-11)";

/** Returns OpenAI's sentence about a parameter that a model does not take. */
export const unsupported = (field: string): string =>
  `Unsupported parameter: '${field}' is not supported with this model.`;

/** Returns OpenAI's body of a refused request. */
export const openaiError = ({
  message,
  param,
  code,
}: {
  message: string;
  param: string | null;
  code: string | null;
}): Fields => ({ error: { message, type: "invalid_request_error", param, code } });
