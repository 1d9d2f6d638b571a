import type { NamedModel, RefusedParameters } from "./provider-definition.ts";

/** Wire names of OpenAI's models that reason, of any version to come. */
export const openaiReasoningNames = /^(?:o\d|gpt-(?:[5-9]|\d\d)(?!.*chat))/;

/**
 * Wire names of OpenAI's models that take functions on chat only with effort `none`. Source:
 * BerriAI/litellm#34569 (2026-07).
 */
export const openaiUnreasonedFunctions = /^gpt-(?:5\.(?:[4-9]|\d\d)|[6-9]|\d\d)(?!.*chat)/;

/**
 * Wire names of OpenAI's models that take functions on Responses alone: they cannot stop reasoning.
 * Sources: genkit-ai/genkit-dart#423, bolna-ai/bolna#1019 (2026-09).
 */
export const openaiToolsAlone = /^gpt-6(?:\.\d+)?-astra/;

/**
 * Wire names of OpenAI's models that take the effort `max` on Responses alone. Sources:
 * mnfst/modelparams.dev#236 (2026-08), BerriAI/litellm-docs#1173 (2026-09).
 */
export const openaiMaxElsewhere = /^gpt-(?:5\.(?:[6-9]|\d\d)|[6-9]|\d\d)(?!.*chat)/;

/** Parameters of other servers, which OpenAI answers with 400 "Unrecognized request argument". */
export const openaiUnknownFields = ["top_k", "min_p", "top_a", "repetition_penalty"];

/**
 * Wire names of OpenAI's models that cannot stop reasoning: they answer 400 to the effort `none`,
 * and to what others take beside it.
 */
const openaiThinkers = /^(?:o\d|gpt-5(?![.\d])|gpt-6(?:\.\d+)?-astra)/;

/** What models refuse while they reason. */
const sampling = [
  "temperature",
  "top_p",
  "presence_penalty",
  "frequency_penalty",
  "logit_bias",
  "logprobs",
  "top_logprobs",
];

/**
 * Returns the parameters that a model refuses. Source: developers.openai.com, "Reasoning models",
 * and the reference of `stop` (2026-11).
 */
export const openaiRefusals = ({ name, reasons, takesEffort }: NamedModel): RefusedParameters =>
  !reasons || name.includes("chat")
    ? { always: takesEffort ? [] : ["reasoning_effort"], whileReasoning: [] }
    : openaiThinkers.test(name)
      ? { always: ["stop", ...sampling], whileReasoning: [] }
      : { always: ["stop"], whileReasoning: sampling };
