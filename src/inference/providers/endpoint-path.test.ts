import { describe, expect, test } from "bun:test";
import { endpointPath, sendableDialects } from "./endpoint-path.ts";
import { providerDefinitions } from "./index.ts";
import type { ProviderQuirks, UpstreamDialect } from "./provider-definition.ts";

const quirksOf = (id: string): ProviderQuirks =>
  providerDefinitions.find((definition) => definition.id === id)?.quirks ?? {};

describe("where requests go", () => {
  const rows: [
    provider: string,
    dialect: UpstreamDialect,
    model: string,
    whole: string,
    streamed: string,
  ][] = [
    ["openai", "openai-chat", "gpt-5.4", "/chat/completions", "/chat/completions"],
    ["openai", "openai-responses", "gpt-5.4-pro", "/responses", "/responses"],
    ["anthropic", "anthropic-messages", "claude-opus-5", "/messages", "/messages"],
    ["azure", "anthropic-messages", "claude-opus-5", "/messages", "/messages"],
    [
      "google",
      "google-generate",
      "gemini-3.5-flash",
      "/models/gemini-3.5-flash:generateContent",
      "/models/gemini-3.5-flash:streamGenerateContent?alt=sse",
    ],
    [
      "google",
      "google-generate",
      "tunedModels/mine",
      "/tunedModels/mine:generateContent",
      "/tunedModels/mine:streamGenerateContent?alt=sse",
    ],
    [
      "google-vertex",
      "openai-chat",
      "zai-org/glm-5-maas",
      "/chat/completions",
      "/chat/completions",
    ],
    [
      "google-vertex-anthropic",
      "anthropic-messages",
      "claude-opus-5@20260901",
      "/claude-opus-5@20260901:rawPredict",
      "/claude-opus-5@20260901:streamRawPredict",
    ],
    [
      "amazon-bedrock",
      "openai-chat",
      "openai.gpt-oss-120b-1:0",
      "/chat/completions",
      "/chat/completions",
    ],
    [
      "amazon-bedrock",
      "anthropic-messages",
      "eu.anthropic.claude-opus-5-v1:0",
      "/model/eu.anthropic.claude-opus-5-v1%3A0/invoke",
      "/model/eu.anthropic.claude-opus-5-v1%3A0/invoke-with-response-stream",
    ],
    [
      "amazon-bedrock",
      "anthropic-messages",
      "arn:aws:bedrock:eu-west-1:1:application-inference-profile/x",
      "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Aapplication-inference-profile%2Fx/invoke",
      "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Aapplication-inference-profile%2Fx/invoke-with-response-stream",
    ],
  ];
  test.each(rows)("%s %s %s", (provider, dialect, upstreamModel, whole, streamed) => {
    const quirks = quirksOf(provider);
    expect(endpointPath(dialect, { upstreamModel, stream: false, quirks })).toBe(whole);
    expect(endpointPath(dialect, { upstreamModel, stream: true, quirks })).toBe(streamed);
  });

  test.each<[UpstreamDialect, string]>([
    ["openai-embeddings", "/embeddings"],
    ["cohere-embed", "/embed"],
    ["voyage-embeddings", "/embeddings"],
    ["jina-embeddings", "/embeddings"],
    ["google-embed", "/models/m:batchEmbedContents"],
    ["cohere-rerank", "/rerank"],
    ["jina-rerank", "/rerank"],
    ["voyage-rerank", "/rerank"],
    ["openai-moderations", "/moderations"],
    ["guard-chat", "/chat/completions"],
    ["decisions", "/decisions"],
    ["chat-logprobs", "/chat/completions"],
  ])("%s, which has no streams", (dialect, path) => {
    expect(endpointPath(dialect, { upstreamModel: "m", stream: false, quirks: {} })).toBe(path);
    expect(sendableDialects.has(dialect)).toBe(true);
  });
});
