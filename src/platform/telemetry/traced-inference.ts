/** A call of an upstream. */
export interface TracedAttempt {
  /** The provider's slug. */
  provider: string;
  /** Wall time in milliseconds since the epoch. */
  startMs: number;
  endMs: number;
  /** The HTTP status of the upstream; 0 when it sent none. */
  status: number;
  /** The wire name of the model. */
  model?: string;
  /** The host of the upstream. */
  serverAddress?: string;
  /** The error code of a failed attempt; absent on success. */
  errorType?: string;
  /** Seconds from the start to the first content of a stream. */
  firstChunkSeconds?: number;
}

/** Returns how an attempt failed, as the value of `error.type`; undefined where it did not. */
export const errorTypeOf = ({ errorType, status }: TracedAttempt): string | undefined =>
  errorType ?? (status >= 400 ? String(status) : undefined);

/** An inference request after its settlement. */
export interface TracedInference {
  /**
   * The request's trace id, 32 hexadecimal digits: the trace is found under the value of
   * `X-Service-Trace-Id`.
   */
  traceId: string;
  /** The caller's `traceparent` header as it was received; an invalid one is ignored. */
  parent?: string;
  /** Wall time in milliseconds since the epoch. */
  startMs: number;
  endMs: number;
  /** The operation and the requested model, such as `chat acme/large`. */
  name: string;
  attributes: GenAiAttributes;
  attempts: readonly TracedAttempt[];
  /** The error code and public message; absent on success. */
  error?: { type: string; message?: string };
}

/**
 * Span attribute names. The `gen_ai.*` ones follow OpenTelemetry's GenAI semantic conventions
 * (github.com/open-telemetry/semantic-conventions-genai, as in semantic-conventions 1.45.0), none
 * of which is stable yet: renames are made here alone. None of these attributes carries a prompt or
 * an answer.
 */
export const genAi = {
  /** `chat`, `embeddings`, `text_completion`; other surfaces under their own name. */
  operationName: "gen_ai.operation.name",
  providerName: "gen_ai.provider.name",
  requestModel: "gen_ai.request.model",
  requestMaxTokens: "gen_ai.request.max_tokens",
  requestTemperature: "gen_ai.request.temperature",
  requestTopP: "gen_ai.request.top_p",
  requestStream: "gen_ai.request.stream",
  responseId: "gen_ai.response.id",
  responseModel: "gen_ai.response.model",
  /** A list with one entry for each choice. */
  responseFinishReasons: "gen_ai.response.finish_reasons",
  /** Seconds to the first content. */
  responseTimeToFirstChunk: "gen_ai.response.time_to_first_chunk",
  /** All input tokens, including cached ones. */
  usageInputTokens: "gen_ai.usage.input_tokens",
  /** All output tokens, including reasoning. */
  usageOutputTokens: "gen_ai.usage.output_tokens",
  usageCacheReadInputTokens: "gen_ai.usage.cache_read.input_tokens",
  usageCacheCreationInputTokens: "gen_ai.usage.cache_creation.input_tokens",
  usageReasoningOutputTokens: "gen_ai.usage.reasoning.output_tokens",
  conversationId: "gen_ai.conversation.id",
  errorType: "error.type",
  serverAddress: "server.address",
  serverPort: "server.port",
  httpResponseStatusCode: "http.response.status_code",
} as const;

/**
 * Names of the metrics that the same conventions define for clients; the buckets are the
 * recommended ones.
 */
export const genAiMetrics = {
  operationDuration: "gen_ai.client.operation.duration",
  timeToFirstChunk: "gen_ai.client.operation.time_to_first_chunk",
  tokenUsage: "gen_ai.client.token.usage",
  /** `input` or `output`, an attribute of the latter. */
  tokenType: "gen_ai.token.type",
} as const;

/** Providers that the conventions name differently from the catalogue. */
const providerNames: Readonly<Record<string, string>> = {
  "amazon-bedrock": "aws.bedrock",
  azure: "azure.ai.openai",
  google: "gcp.gemini",
  "google-vertex": "gcp.vertex_ai",
  "google-vertex-anthropic": "gcp.vertex_ai",
  mistral: "mistral_ai",
  moonshotai: "moonshot_ai",
  xai: "x_ai",
};

/** Returns the value of `gen_ai.provider.name`: the conventions' name, or the slug. */
export const genAiProvider = (slug: string): string => providerNames[slug] ?? slug;

/** An attribute's name from the list above. */
type GenAiAttribute = (typeof genAi)[keyof typeof genAi];

/** The attributes of a span; absent ones are omitted. */
type GenAiAttributes = Partial<
  Record<GenAiAttribute, string | number | boolean | string[] | undefined>
>;
