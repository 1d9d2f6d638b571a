import { createOpenAI } from "@ai-sdk/openai";
import { aiSdk } from "./ai-sdk-adapter.ts";

/** The AI SDK's OpenAI provider as it is by default: on Responses. */
export const aiSdkResponses = aiSdk("@ai-sdk/openai, responses", ({ origin, apiKey }, id) =>
  createOpenAI({ baseURL: `${origin}/v1`, apiKey })(id),
);
