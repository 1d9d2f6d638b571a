import { describe, expect, test } from "bun:test";
import { amazonBedrock } from "./amazon-bedrock.ts";
import { fitToEndpoint, type EndpointRequest } from "./fit-to-endpoint.ts";
import { googleVertexAnthropic } from "./google-vertex-anthropic.ts";
import type { ProviderQuirks } from "./provider-definition.ts";

const text = '{ "model":"m", "max_tokens":9, "x":{"model":1}, "stream":true }';
const fitMessages = (request: Partial<EndpointRequest>, quirks: ProviderQuirks = {}) =>
  fitToEndpoint({ text, headers: {}, ...request }, { dialect: "anthropic-messages", quirks });

describe("Messages", () => {
  test("say their version in a header, the client's own where it has one", () => {
    expect(fitMessages({})).toEqual({
      text,
      headers: { "anthropic-version": "2023-06-01" },
      losses: [],
    });
    const headers = { "anthropic-version": "2026-10-21", "anthropic-beta": "a,b", "x-other": "1" };
    expect(fitMessages({ headers })).toEqual({ text, headers, losses: [] });
  });

  test("on Vertex AI say it in the body, without the model", () => {
    const fitted = fitMessages(
      { headers: { "anthropic-version": "2026-10-21" } },
      googleVertexAnthropic.quirks,
    );
    expect(fitted).toEqual({
      text: '{ "max_tokens":9, "x":{"model":1}, "stream":true,"anthropic_version":"vertex-2023-10-16" }',
      headers: {},
      losses: [],
    });
  });

  test("on Bedrock say it in the body, without the model and the stream", () => {
    expect(fitMessages({}, amazonBedrock.quirks)).toEqual({
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

  test("ask for the betas that the provider knows: Vertex AI in the header, Bedrock in the body", () => {
    const vertex = fitMessages(
      { headers: { "anthropic-beta": betas } },
      googleVertexAnthropic.quirks,
    );
    expect(vertex.headers).toEqual({ "anthropic-beta": known.join(",") });
    expect(vertex.losses).toEqual(losses);
    const bedrock = fitMessages({ headers: { "anthropic-beta": betas } }, amazonBedrock.quirks);
    expect(JSON.parse(bedrock.text)).toEqual({
      max_tokens: 9,
      x: { model: 1 },
      anthropic_version: "bedrock-2023-05-31",
      anthropic_beta: known,
    });
    expect(bedrock).toMatchObject({ headers: {}, losses });
  });

  test("lose what Bedrock answers with 400, and say so", () => {
    const fitted = fitMessages(
      { text: '{"metadata":{"user_id":"u"},"max_tokens":9,"service_tier":"auto"}' },
      amazonBedrock.quirks,
    );
    expect(fitted.text).toBe('{"max_tokens":9,"anthropic_version":"bedrock-2023-05-31"}');
    expect(fitted.losses.map(({ field }) => field)).toEqual(["metadata", "service_tier"]);
  });
});

test("other dialects are sent as they are", () => {
  const request = { text, headers: { "x-a": "1" } };
  expect(fitToEndpoint(request, { dialect: "openai-chat", quirks: amazonBedrock.quirks })).toEqual({
    ...request,
    losses: [],
  });
});
