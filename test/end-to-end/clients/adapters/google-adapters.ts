import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { LanguageModel } from "ai";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ClientUnderTest } from "../support/client-under-test.ts";
import { testClientsFolder } from "../support/test-clients-folder.ts";
import { aiSdk } from "./ai-sdk-adapter.ts";
import { langchain } from "./langchain-adapter.ts";

const packageAt = (...names: string[]): string =>
  join(testClientsFolder, "google-adapters", "node_modules", ...names);

/** Returns whether the packages are installed. */
export const hasGoogleAdapters = (): boolean =>
  [packageAt("@langchain", "google-genai"), packageAt("@ai-sdk", "google")].every(existsSync);

/** Returns the AI SDK's Google provider, which wants the version in its base URL. */
async function aiSdkGoogle(): Promise<ClientUnderTest> {
  const path = packageAt("@ai-sdk", "google");
  const { createGoogleGenerativeAI } = (await import(Bun.resolveSync(path, path))) as {
    createGoogleGenerativeAI: (options: object) => (id: string) => LanguageModel;
  };
  return aiSdk(
    "@ai-sdk/google",
    ({ origin, apiKey }, id) =>
      createGoogleGenerativeAI({ baseURL: `${origin}/v1beta`, apiKey })(id),
    { reasoning: "asks Google for an effort, and not for thoughts" },
  );
}

const langchainError = "GoogleGenerativeAIFetchError";

/** Returns LangChain's model of Google, over Google's older package that it brings along. */
async function langchainGoogle(): Promise<ClientUnderTest> {
  const path = packageAt("@langchain", "google-genai");
  const { ChatGoogleGenerativeAI } = (await import(Bun.resolveSync(path, path))) as {
    ChatGoogleGenerativeAI: new (options: object) => BaseChatModel;
  };
  return langchain("@langchain/google-genai", {
    model: ({ origin, apiKey, retries }, { model, maxTokens, reasoning }) =>
      new ChatGoogleGenerativeAI({
        model,
        apiKey,
        baseUrl: origin,
        maxRetries: retries,
        ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
        ...(reasoning ? { thinkingConfig: { includeThoughts: true } } : {}),
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
    errorNames: {
      400: langchainError,
      401: langchainError,
      404: langchainError,
      429: langchainError,
      502: langchainError,
    },
    cannot: {
      "broken streams": "its package rejects a promise beside the stream, which ends programs",
      "cost in streams": "keeps only the fields of usage that it knows",
      "cost of whole answers": "keeps only the fields of usage that it knows",
      reasoning: "shows no thoughts",
    },
  });
}

/** Returns the clients of other makers that speak Google's dialect. */
export const googleAdapters = (): Promise<ClientUnderTest[]> =>
  Promise.all([aiSdkGoogle(), langchainGoogle()]);
