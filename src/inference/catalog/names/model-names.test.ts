import { describe, expect, test } from "bun:test";
import { providerDefinitions } from "../../providers/index.ts";
import { readModelName } from "./model-names.ts";

const read = (provider: string, upstreamModel: string) => {
  const definition = providerDefinitions.find(({ id }) => id === provider);
  if (definition === undefined) throw new Error(`no provider ${provider}`);
  return readModelName(definition, upstreamModel);
};

describe("one model of many providers has one id", () => {
  test.each([
    // Provider, wire name, catalog id.
    ["anthropic", "claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"],
    ["openrouter", "anthropic/claude-sonnet-4.5", "anthropic/claude-sonnet-4-5"],
    ["google-vertex-anthropic", "claude-sonnet-4-6@default", "anthropic/claude-sonnet-4-6"],
    [
      "google-vertex-anthropic",
      "claude-sonnet-4-5@20250929",
      "anthropic/claude-sonnet-4-5-20250929",
    ],
    ["amazon-bedrock", "eu.anthropic.claude-opus-4-6-v1", "anthropic/claude-opus-4-6"],
    [
      "amazon-bedrock",
      "global.anthropic.claude-haiku-4-5-20251001-v1:0",
      "anthropic/claude-haiku-4-5-20251001",
    ],
    ["databricks", "databricks-claude-opus-4-1", "anthropic/claude-opus-4-1"],
    ["anthropic", "claude-opus-4-0", "anthropic/claude-opus-4"],
    ["openai", "gpt-5-chat-latest", "openai/gpt-5-chat"],
    ["venice", "openai-gpt-54-mini", "openai/gpt-5.4-mini"],
    ["databricks", "databricks-gpt-5-4-nano", "openai/gpt-5.4-nano"],
    ["ollama-cloud", "gpt-oss:120b", "openai/gpt-oss-120b"],
    ["amazon-bedrock", "openai.gpt-oss-120b-1:0", "openai/gpt-oss-120b"],
    ["google-vertex", "openai/gpt-oss-20b-maas", "openai/gpt-oss-20b"],
    ["openrouter", "openai/gpt-oss-120b:free", "openai/gpt-oss-120b:free"],
    ["groq", "llama-3.3-70b-versatile", "meta-llama/llama-3.3-70b-instruct"],
    ["ovhcloud", "meta-llama-3_3-70b-instruct", "meta-llama/llama-3.3-70b-instruct"],
    ["vercel", "meta/llama-3.2-11b", "meta-llama/llama-3.2-11b-vision-instruct"],
    ["github-models", "meta/llama-4-maverick-17b-128e-instruct-fp8", "meta-llama/llama-4-maverick"],
    ["together", "deepseek-ai/DeepSeek-V3-1", "deepseek/deepseek-v3.1"],
    ["amazon-bedrock", "deepseek.v3.2", "deepseek/deepseek-v3.2"],
    ["openrouter", "deepseek/deepseek-chat", "deepseek/deepseek-v3"],
    ["deepseek", "deepseek-chat", "deepseek/deepseek-chat"],
    ["fireworks", "accounts/fireworks/models/kimi-k2p6", "moonshotai/kimi-k2.6"],
    ["fireworks", "accounts/fireworks/routers/kimi-k2p6-turbo", "moonshotai/kimi-k2.6-turbo"],
    ["huggingface", "zai-org/GLM-4.7", "z-ai/glm-4.7"],
    ["cerebras", "zai-glm-4.7", "z-ai/glm-4.7"],
    ["chutes", "zai-org/GLM-5-TEE", "z-ai/glm-5"],
    ["venice", "qwen3-5-397b-a17b", "qwen/qwen3.5-397b-a17b"],
    ["openrouter", "qwen/qwen3-coder", "qwen/qwen3-coder-480b-a35b-instruct"],
    ["openrouter", "qwen/qwen3-coder:free", "qwen/qwen3-coder-480b-a35b-instruct:free"],
    ["cloudflare", "@cf/nvidia/nemotron-3-120b-a12b", "nvidia/nemotron-3-super-120b-a12b"],
    ["mistral", "open-mistral-nemo", "mistralai/mistral-nemo"],
    ["xai", "grok-4.3", "x-ai/grok-4.3"],
    ["azure", "cohere-command-a", "cohere/command-a"],
  ])("%s %s -> %s", (provider, upstreamModel, catalogId) => {
    expect(read(provider, upstreamModel).catalogId).toBe(catalogId);
  });
});

describe("different models keep different ids", () => {
  test.each([
    [
      "cloudflare",
      "@cf/deepseek-ai/deepseek-r1-distill-qwen-32b",
      "deepseek/deepseek-r1-distill-qwen-32b",
    ],
    ["venice", "claude-opus-4-7-fast", "anthropic/claude-opus-4-7-fast"],
    ["friendli", "Qwen/Qwen3-235B-A22B-Instruct-2507", "qwen/qwen3-235b-a22b-instruct-2507"],
    ["alibaba", "qwen3-235b-a22b", "qwen/qwen3-235b-a22b"],
    ["wandb", "OpenPipe/Qwen3-14B-Instruct", "openpipe/qwen3-14b-instruct"],
    ["venice", "gemma-4-uncensored", "venice/gemma-4-uncensored"],
    ["together", "pearl-ai/gemma-4-31b-it", "pearl-ai/gemma-4-31b-it"],
  ])("%s %s -> %s", (provider, upstreamModel, catalogId) => {
    expect(read(provider, upstreamModel).catalogId).toBe(catalogId);
  });
});

test.each([
  ["together", "meta-llama/Llama-3.3-70B-Instruct-Turbo", "fp8"],
  ["together", "meta-llama/Meta-Llama-3-8B-Instruct-Lite", "int4"],
  ["wandb", "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", "fp8"],
  ["groq", "llama-3.3-70b-versatile", undefined],
])("%s %s is quantized as %s", (provider, upstreamModel, quantization) => {
  expect(read(provider, upstreamModel).quantization).toBe(quantization as string);
});
