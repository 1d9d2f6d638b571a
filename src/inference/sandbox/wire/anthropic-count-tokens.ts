import { completePrompt } from "../prompt.ts";
import { anthropicError } from "./anthropic-error.ts";
import { parseCountTokensPrompt } from "./anthropic-messages-request.ts";
import type { PlainSurface } from "./plain-surface.ts";

/** Anthropic's `POST /v1/messages/count_tokens`; counts as the usage of an answer does. */
export const anthropicCountTokens: PlainSurface = {
  read(body) {
    const prompt = completePrompt(parseCountTokensPrompt(body), { seed: "", createdAtSeconds: 0 });
    return { text: prompt.lastUserText, answer: () => ({ input_tokens: prompt.inputTokens }) };
  },
  refusal: anthropicError,
};
