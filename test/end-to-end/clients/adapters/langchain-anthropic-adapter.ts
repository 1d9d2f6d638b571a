import { ChatAnthropic } from "@langchain/anthropic";
import { anthropicErrorNames } from "./anthropic-error-names.ts";
import { langchain } from "./langchain-adapter.ts";

/** LangChain's model of Anthropic, over the package's older major that it brings along. */
export const langchainAnthropic = langchain("@langchain/anthropic", {
  model: ({ origin, apiKey, retries }, { model, maxTokens, reasoning }) =>
    new ChatAnthropic({
      model,
      apiKey,
      anthropicApiUrl: origin,
      maxTokens: maxTokens ?? 4096,
      ...(reasoning ? { thinking: { type: "enabled", budget_tokens: 2048 } } : {}),
      maxRetries: retries,
    }),
  failureOf(error) {
    if (!(error instanceof Error)) throw error;
    const status: unknown = Reflect.get(error, "status");
    return {
      status: typeof status === "number" ? status : undefined,
      name: error.constructor.name,
      message: error.message,
    };
  },
  errorNames: anthropicErrorNames,
  cannot: {
    "counts in streams": "takes the input's from the start, where other dialects have an estimate",
  },
});
