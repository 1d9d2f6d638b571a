import { isAbove } from "../reading.ts";
import { type Fields, rulesOf, type VendorRequest, type VendorRule } from "../rule.ts";

const openaiError = ({ message, param }: { message: string; param: string | null }): Fields => ({
  error: { message, type: "invalid_request_error", param, code: null },
});

const isNoText = ({ body }: VendorRequest): boolean => typeof body["prompt"] !== "string";
const hasOther =
  (known: readonly string[]) =>
  ({ body }: VendorRequest): boolean =>
    Object.keys(body).some((name) => !known.includes(name));

const deepseekSource = "api-docs.deepseek.com/guides/fim_completion (2026-06-29)";
const deepseekModel = "deepseek-v4-flash";
const mistralSource = "docs.rs/mistral-openapi-client, FimCompletionRequest (2026-11)";
const codestral = "codestral-latest";

/** What hosted vendors refuse of plain completions. */
export const hostedCompletionRules: readonly VendorRule[] = [
  ...rulesOf({ vendor: "openai", endpoint: "completions", status: 404, body: openaiError }, [
    {
      id: "chat-model",
      models: /^(?!gpt-3\.5-turbo-instruct|davinci-002|babbage-002)/,
      when: () => true,
      says: "This is a chat model and not supported in the v1/completions endpoint. Did you mean to use v1/chat/completions?",
      param: "model",
      source: "recalled",
      violates: { model: "gpt-5.5", body: { prompt: "Hi" } },
    },
  ]),
  ...rulesOf({ vendor: "deepseek", endpoint: "completions", body: openaiError }, [
    {
      id: "fim-length",
      when: isAbove("max_tokens", 4_096),
      says: "Invalid max_tokens value, the valid range of max_tokens is [1, 4096]",
      source: deepseekSource,
      violates: { model: deepseekModel, body: { prompt: "Hi", max_tokens: 5_000 } },
    },
    {
      id: "fim-one-text",
      when: isNoText,
      says: "prompt: invalid type: sequence, expected a string",
      source: deepseekSource,
      violates: { model: deepseekModel, body: { prompt: ["Hi"] } },
    },
    {
      id: "fim-reasoner",
      models: /reasoner/,
      when: () => true,
      says: "The model does not support this endpoint",
      source: deepseekSource,
      violates: { model: "deepseek-reasoner", body: { prompt: "Hi" } },
    },
  ]),
  ...rulesOf(
    {
      vendor: "mistral",
      endpoint: "completions",
      status: 422,
      body: ({ message }) => ({ object: "error", message, type: "invalid_request_error" }),
    },
    [
      {
        id: "fim-extra",
        when: hasOther([
          ...["model", "prompt", "suffix", "max_tokens", "min_tokens", "stop", "stream"],
          ...["temperature", "top_p", "random_seed", "metadata"],
        ]),
        says: "Extra inputs are not permitted",
        source: mistralSource,
        violates: { model: codestral, body: { prompt: "Hi", echo: true } },
      },
      {
        id: "fim-one-text",
        when: isNoText,
        says: "Input should be a valid string",
        source: mistralSource,
        violates: { model: codestral, body: { prompt: ["Hi"] } },
      },
      {
        id: "fim-model",
        models: /^(?!codestral)/,
        when: () => true,
        status: 400,
        says: "Invalid model for FIM completions",
        source: "recalled",
        violates: { model: "mistral-large-latest", body: { prompt: "Hi" } },
      },
    ],
  ),
  ...rulesOf({ vendor: "openrouter", endpoint: "completions", body: openaiError }, [
    {
      id: "one-text",
      when: isNoText,
      says: "prompt: Expected string",
      source: "docs.rs/openrouter_api, CompletionRequest (2026-11)",
      violates: { model: "meta-llama/llama-3.3-70b-instruct", body: { prompt: ["Hi"] } },
    },
  ]),
];
