import { createAnthropic } from "@ai-sdk/anthropic";
import { aiSdk } from "./ai-sdk-adapter.ts";

/** The AI SDK's Anthropic provider, which wants the version in its base URL. */
export const aiSdkAnthropic = aiSdk("@ai-sdk/anthropic", ({ origin, apiKey }, id) =>
  createAnthropic({ baseURL: `${origin}/v1`, apiKey })(id),
);
