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

/** Fireworks names the member that it does not know. Source: its package for Python, 1.2. */
const fireworksMembers: readonly string[] = [
  ...["model", "prompt", "context_length_exceeded_behavior", "echo", "echo_last", "ignore_eos"],
  ...["frequency_penalty", "images", "logit_bias", "logprobs", "max_completion_tokens"],
  ...["max_tokens", "metadata", "min_p", "mirostat_lr", "mirostat_target", "n", "prediction"],
  ...["perf_metrics_in_response", "presence_penalty", "prompt_cache_isolation_key", "raw_output"],
  ...["prompt_cache_key", "reasoning_effort", "reasoning_history", "repetition_penalty"],
  ...["response_format", "return_token_ids", "seed", "service_tier", "speculation", "stop"],
  ...["stream", "stream_options", "temperature", "thinking", "top_k", "top_logprobs", "top_p"],
  ...["typical_p", "user"],
];

const fireworksModel = "accounts/fireworks/models/deepseek-v4-flash";
const togetherSource = "togethercomputer/openapi, openapi.yaml, CompletionRequest (2026-04-28)";
const togetherModel = "meta-llama/Llama-3.3-70B-Instruct-Turbo";

/** What hosted vendors refuse of plain completions. */
export const hostedCompletionRules: readonly VendorRule[] = [
  ...rulesOf({ vendor: "openai", endpoint: "completions", status: 404, body: openaiError }, [
    {
      id: "chat-model",
      models: /^(?!gpt-3\.5-turbo-instruct|davinci-002|babbage-002)/,
      when: () => true,
      says: "This is a chat model and not supported in the v1/completions endpoint. Did you mean to use v1/chat/completions?",
      param: "model",
      source: "github.com/hegelai/prompttools/issues/115 (2023-12-13)",
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
        source: "mistralai/client-python, docs/sdks/fim/README.md: codestral alone (2026-11)",
        violates: { model: "mistral-large-latest", body: { prompt: "Hi" } },
      },
    ],
  ),
  ...rulesOf({ vendor: "fireworks", endpoint: "completions", body: openaiError }, [
    {
      id: "completions-extra",
      when: hasOther(fireworksMembers),
      says: ({ body }) => {
        const field = Object.keys(body).find((name) => !fireworksMembers.includes(name));
        return `Extra inputs are not permitted, field: '${field}', value: ${JSON.stringify(body[String(field)])}`;
      },
      source: "github.com/vercel/ai/pull/18306 (2026-08-01)",
      violates: { model: fireworksModel, body: { prompt: "Hi", suffix: "there" } },
    },
  ]),
  ...rulesOf({ vendor: "together", endpoint: "completions", body: openaiError }, [
    {
      id: "completions-one-text",
      when: isNoText,
      says: "prompt: expected a string",
      param: "prompt",
      source: togetherSource,
      violates: { model: togetherModel, body: { prompt: ["Hi"] } },
    },
    {
      id: "completions-stop",
      when: ({ body }) => body["stop"] !== undefined && !Array.isArray(body["stop"]),
      says: "stop: expected a list of strings",
      param: "stop",
      source: togetherSource,
      violates: { model: togetherModel, body: { prompt: "Hi", stop: "." } },
    },
  ]),
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
