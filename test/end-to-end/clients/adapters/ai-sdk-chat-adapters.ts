import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createOpenRouter } from "@openrouter/ai-sdk-provider";
import { aiSdk } from "./ai-sdk-adapter.ts";

const knownUsage = "keeps only the fields of usage that it knows";

/** The AI SDK's OpenAI provider on chat completions. */
export const aiSdkChat = aiSdk(
  "@ai-sdk/openai, chat",
  ({ origin, apiKey }, id) => createOpenAI({ baseURL: `${origin}/v1`, apiKey }).chat(id),
  {
    "cost in streams": knownUsage,
    "cost of whole answers": knownUsage,
    reasoning: "knows no reasoning in chat",
    signatures: "knows no reasoning in chat",
  },
);

/** The AI SDK's provider for servers that speak like OpenAI. */
export const aiSdkCompatible = aiSdk(
  "@ai-sdk/openai-compatible",
  ({ origin, apiKey }, id) =>
    createOpenAICompatible({
      name: "gateway",
      baseURL: `${origin}/v1`,
      apiKey,
      includeUsage: true,
      supportsStructuredOutputs: true,
    })(id),
  { signatures: "sends reasoning_content back, and nothing beside it" },
);

/** OpenRouter's provider for the AI SDK. */
export const openrouterProvider = aiSdk(
  "@openrouter/ai-sdk-provider",
  ({ origin, apiKey }, id) => createOpenRouter({ baseURL: `${origin}/api/v1`, apiKey }).chat(id),
  {
    reasoning_content: "reads reasoning and reasoning_details",
  },
);
