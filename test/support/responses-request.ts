import type { ClientRequest, AdaptedRoute } from "../../src/inference/pipeline/inference-call.ts";
import { CallSignatures } from "../../src/inference/pipeline/stream/call-signatures.ts";
import { openaiResponses } from "../../src/inference/dialects/openai-responses/index.ts";

/** Returns a Responses client's request, as its endpoint passes it on. */
export function responsesRequest(
  body: Record<string, unknown>,
  dialectHeaders: Record<string, string> = {},
): ClientRequest {
  return {
    dialect: "openai-responses",
    text: JSON.stringify(body),
    body,
    traceId: "0123456789abcdef0123456789abcdef",
    dialectHeaders,
    signatures: new CallSignatures().of("ws_test"),
    nowSeconds: () => 1_763_700_009,
    canonical: () => openaiResponses.decodeRequest(body),
  };
}

/** Returns a route to a model of a provider named acme that speaks Responses. */
export const responsesRoute = (overrides: Partial<AdaptedRoute["route"]> = {}): AdaptedRoute => ({
  model: {
    id: "openai/large",
    displayName: "Large",
    owner: "openai",
    surface: "chat",
    category: "text",
    contextLength: 1_000,
    capabilities: [],
    addedAtMs: 0,
    routes: [],
  },
  route: {
    provider: {
      id: "acme",
      name: "Acme",
      dialects: { chat: "openai-responses" },
      credentialHeader: { name: "authorization", prefix: "Bearer " },
      dataPolicy: {},
      timeouts: { connectMs: 1, firstTokenMs: 1, idleMs: 1, totalMs: 1 },
      deviations: {},
    },
    upstreamModel: "large-v2",
    ...overrides,
  },
});
