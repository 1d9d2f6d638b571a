import { ChatOpenAI } from "@langchain/openai";
import type { ClientUnderTest } from "../support/client-under-test.ts";
import { langchain } from "./langchain-adapter.ts";
import { openaiErrorNames, openaiFailure } from "./openai-failure.ts";

const langchainOpenai = (
  name: string,
  useResponsesApi: boolean,
  cannot: ClientUnderTest["cannot"] = {},
): ClientUnderTest =>
  langchain(name, {
    model: ({ origin, apiKey, retries }, { model, maxTokens, reasoning }) =>
      new ChatOpenAI({
        model,
        apiKey,
        useResponsesApi,
        maxRetries: retries,
        ...(reasoning ? { reasoning: { effort: "high" } } : {}),
        configuration: { baseURL: `${origin}/v1` },
        ...(maxTokens === undefined ? {} : { maxTokens }),
      }),
    failureOf: openaiFailure,
    errorNames: openaiErrorNames,
    cannot,
  });

/** LangChain's model of OpenAI on chat completions. */
export const langchainChat = langchainOpenai("@langchain/openai, chat", false, {
  reasoning: "knows no reasoning in chat",
  signatures: "knows no reasoning in chat",
});

/** LangChain's model of OpenAI on Responses. */
export const langchainResponses = langchainOpenai("@langchain/openai, responses", true, {
  "cost of whole answers": "keeps only the fields of usage that it knows",
});
