import { describe, expect, test } from "bun:test";
import { amazonBedrock } from "./clouds/amazon-bedrock.ts";
import { endpointPath, sendableDialects, fitToEndpoint, type EndpointRequest } from "./endpoint.ts";
import { googleVertexAnthropic } from "./clouds/google-vertex.ts";
import { providerDefinitions } from "./index.ts";
import type { ProviderDeviations, UpstreamDialect } from "./provider-definition.ts";

const deviationsOf = (id: string): ProviderDeviations =>
  providerDefinitions.find((definition) => definition.id === id)?.deviations ?? {};

describe("endpointPath", () => {
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
      "amazon-converse",
      "us.amazon.nova-2-lite-v1:0",
      "/model/us.amazon.nova-2-lite-v1%3A0/converse",
      "/model/us.amazon.nova-2-lite-v1%3A0/converse-stream",
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
  test.each(rows)("of %s, %s, %s", (provider, dialect, upstreamModel, whole, streamed) => {
    const deviations = deviationsOf(provider);
    expect(endpointPath(dialect, { upstreamModel, stream: false, deviations })).toBe(whole);
    expect(endpointPath(dialect, { upstreamModel, stream: true, deviations })).toBe(streamed);
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
  ])("of %s, without streams", (dialect, path) => {
    expect(endpointPath(dialect, { upstreamModel: "m", stream: false, deviations: {} })).toBe(path);
    expect(sendableDialects.has(dialect)).toBe(true);
  });
});

const text = '{ "model":"m", "max_tokens":9, "x":{"model":1}, "stream":true }';
const fitMessages = (request: Partial<EndpointRequest>, deviations: ProviderDeviations = {}) =>
  fitToEndpoint({ text, headers: {}, ...request }, { dialect: "anthropic-messages", deviations });

describe("a Messages request", () => {
  test("has its version in a header, and keeps the client's own", () => {
    expect(fitMessages({})).toEqual({
      text,
      headers: { "anthropic-version": "2023-06-01" },
      losses: [],
    });
    const headers = { "anthropic-version": "2026-10-21", "anthropic-beta": "a,b", "x-other": "1" };
    expect(fitMessages({ headers })).toEqual({ text, headers, losses: [] });
  });

  test("has its version in the body for Vertex AI, without the model", () => {
    const fitted = fitMessages(
      { headers: { "anthropic-version": "2026-10-21" } },
      googleVertexAnthropic.deviations,
    );
    expect(fitted).toEqual({
      text: '{ "max_tokens":9, "x":{"model":1}, "stream":true,"anthropic_version":"vertex-2023-10-16" }',
      headers: {},
      losses: [],
    });
  });

  test("has its version in the body for Bedrock, without the model and the stream", () => {
    expect(fitMessages({}, amazonBedrock.deviations)).toEqual({
      text: '{ "max_tokens":9, "x":{"model":1},"anthropic_version":"bedrock-2023-05-31" }',
      headers: {},
      losses: [],
    });
  });

  const betas =
    "claude-code-20250219, interleaved-thinking-2025-05-14 ,context-management-2025-06-27";
  const known = ["interleaved-thinking-2025-05-14", "context-management-2025-06-27"];
  const losses = [
    {
      field: "anthropic-beta.claude-code-20250219",
      reason: "the provider does not know this beta",
    },
  ];

  test("has only known betas: in the header for Vertex AI, in the body for Bedrock", () => {
    const vertex = fitMessages(
      { headers: { "anthropic-beta": betas } },
      googleVertexAnthropic.deviations,
    );
    expect(vertex.headers).toEqual({ "anthropic-beta": known.join(",") });
    expect(vertex.losses).toEqual(losses);
    const bedrock = fitMessages({ headers: { "anthropic-beta": betas } }, amazonBedrock.deviations);
    expect(JSON.parse(bedrock.text)).toEqual({
      max_tokens: 9,
      x: { model: 1 },
      anthropic_version: "bedrock-2023-05-31",
      anthropic_beta: known,
    });
    expect(bedrock).toMatchObject({ headers: {}, losses });
  });

  test("has no header that names something at Anthropic where another cloud serves", () => {
    const headers = { "anthropic-user-profile-id": "prof_1", "anthropic-workspace-id": "wrkspc_1" };
    const named = fitMessages({ headers }, amazonBedrock.deviations);
    expect(named.headers).toEqual({});
    expect(named.losses.map(({ field }) => field)).toEqual(Object.keys(headers));
    expect(fitMessages({ headers }, {}).headers).toMatchObject(headers);
  });

  test("asks for the arguments of calls as they come: at Bedrock by a beta alone", () => {
    const eager = (name: string, value: boolean) => ({ name, eager_input_streaming: value });
    const tools = [eager("a", true), eager("b", false), { name: "c" }];
    const bedrock = fitMessages({ text: JSON.stringify({ tools }) }, amazonBedrock.deviations);
    expect(JSON.parse(bedrock.text)).toEqual({
      tools: [{ name: "a" }, { name: "b" }, { name: "c" }],
      anthropic_version: "bedrock-2023-05-31",
      anthropic_beta: ["fine-grained-tool-streaming-2025-05-14"],
    });
    expect(bedrock.losses).toEqual([]);
    const vertex = fitMessages(
      { text: JSON.stringify({ tools }) },
      googleVertexAnthropic.deviations,
    );
    expect(JSON.parse(vertex.text)).toMatchObject({ tools });
  });

  test("omits fields that Bedrock refuses, and reports them as losses", () => {
    const fitted = fitMessages(
      { text: '{"metadata":{"user_id":"u"},"max_tokens":9,"service_tier":"auto"}' },
      amazonBedrock.deviations,
    );
    expect(fitted.text).toBe('{"max_tokens":9,"anthropic_version":"bedrock-2023-05-31"}');
    expect(fitted.losses.map(({ field }) => field)).toEqual(["metadata", "service_tier"]);
  });
});

test("requests of other dialects are sent unchanged", () => {
  const request = { text, headers: { "x-a": "1" } };
  expect(
    fitToEndpoint(request, { dialect: "openai-chat", deviations: amazonBedrock.deviations }),
  ).toEqual({
    ...request,
    losses: [],
  });
});
