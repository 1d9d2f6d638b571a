/**
 * The facts about an error code. Status, category, retry advice and metrics labels are read from
 * here alone; `fault` is the party that refused: the client, the gateway or the upstream.
 */
export interface ErrorFacts {
  /** The HTTP status of the answer. */
  status: number;
  /** The category that callers read as `metadata.type`. */
  type: string;
  /** Whether the same request may succeed later without a change. */
  retry: boolean;
  fault: "client" | "gateway" | "upstream";
}

const client = (status: number, type: string, retry = false): ErrorFacts => ({
  status,
  type,
  retry,
  fault: "client",
});
const gateway = (status: number, type: string, retry = true): ErrorFacts => ({
  status,
  type,
  retry,
  fault: "gateway",
});
const upstream = (status: number, type: string, retry = true): ErrorFacts => ({
  status,
  type,
  retry,
  fault: "upstream",
});

/**
 * Every error code with its HTTP status, its type on the wire, whether a repetition may help, and
 * who refused. Router, metrics, OpenAPI and docs read it.
 */
export const errorCatalog = {
  bad_request: client(400, "invalid_request_error"),
  invalid_request: client(400, "invalid_request_error"),
  invalid_request_error: client(400, "invalid_request_error"),
  missing_required_fields: client(400, "invalid_request_error"),
  model_not_rerank_compatible: client(400, "invalid_request_error"),
  model_not_moderation_compatible: client(400, "invalid_request_error"),
  storage_quota_exceeded: client(400, "invalid_request_error"),
  unsupported_content: client(400, "invalid_request_error"),
  context_length_exceeded: client(400, "invalid_request_error"),
  max_tokens_too_small: client(400, "invalid_request_error"),
  content_filter: client(400, "invalid_request_error"),
  byok_required: client(400, "invalid_request_error"),
  invalid_request_body: client(400, "invalid_request_error"),
  invalid_image_encoding: client(400, "invalid_request_error"),
  invalid_image_field: client(400, "invalid_request_error"),
  invalid_slug: client(400, "invalid_request_error"),
  name_required: client(400, "invalid_request_error"),
  config_required: client(400, "invalid_request_error"),
  authorization_pending: client(400, "invalid_request_error"),
  slow_down: client(400, "invalid_request_error", true),
  access_denied: client(400, "invalid_request_error"),
  expired_token: client(400, "invalid_request_error"),
  invalid_client: client(400, "invalid_request_error"),
  invalid_client_metadata: client(400, "invalid_request_error"),
  invalid_redirect_uri: client(400, "invalid_request_error"),
  invalid_grant: client(400, "invalid_request_error"),
  invalid_scope: client(400, "invalid_request_error"),
  invalid_target: client(400, "invalid_request_error"),
  unsupported_grant_type: client(400, "invalid_request_error"),
  unauthorized: client(401, "authentication_error"),
  missing_api_key: client(401, "authentication_error"),
  invalid_api_key: client(401, "authentication_error"),
  authentication_required: client(401, "authentication_error"),
  insufficient_balance: client(402, "payment"),
  plan_required: client(402, "payment"),
  run_exhausted: client(402, "payment"),
  forbidden: client(403, "permission_error"),
  insufficient_scope: client(403, "permission_error"),
  ip_not_allowed: client(403, "permission_error"),
  not_found: client(404, "not_found_error"),
  model_unavailable: client(404, "not_found_error"),
  unknown_provider: client(404, "not_found_error"),
  no_upstream: client(404, "not_found_error"),
  previous_response_not_found: client(404, "not_found_error"),
  websocket_connection_limit_reached: client(400, "invalid_request_error", true),
  method_not_allowed: client(405, "invalid_request_error"),
  request_timeout: upstream(408, "request_timeout"),
  conflict: client(409, "conflict_error"),
  duplicate_slug: client(409, "conflict_error"),
  content_too_large: client(413, "request_too_large"),
  request_too_large: client(413, "request_too_large"),
  image_too_large: client(413, "request_too_large"),
  unprocessable_entity: client(422, "invalid_request_error"),
  upgrade_required: client(426, "invalid_request_error"),
  rate_limit_exceeded: client(429, "rate_limit_error", true),
  ip_rate_limit_exceeded: client(429, "rate_limit_error", true),
  spend_limit_reached: client(429, "payment"),
  client_closed_request: client(499, "client_closed_request"),
  internal_server_error: gateway(500, "internal_server_error"),
  missing_workers_ai_binding: gateway(500, "internal_server_error", false),
  ocr_extraction_error: client(502, "upstream_error"),
  ocr_upstream_failed: gateway(502, "upstream_error"),
  upstream_response_too_large: upstream(502, "upstream_error", false),
  bad_gateway: upstream(502, "upstream_error"),
  upstream_error: upstream(502, "upstream_error"),
  upstream_exhausted: upstream(502, "upstream_error"),
  upstream_5xx: upstream(502, "upstream_error"),
  upstream_402: upstream(402, "upstream_error", false),
  upstream_401: upstream(502, "upstream_error", false),
  upstream_403: upstream(502, "upstream_error", false),
  upstream_invalid_response: upstream(502, "upstream_error"),
  empty_stream: upstream(502, "upstream_error"),
  not_configured: gateway(501, "not_supported", false),
  service_unavailable: gateway(503, "service_unavailable"),
  upstream_timeout: upstream(504, "upstream_timeout"),
} as const satisfies Record<string, ErrorFacts>;

/** A code of the catalogue, as clients see it. */
export type ErrorCode = keyof typeof errorCatalog;

/** Returns the address where a gateway's documentation explains an error code. */
export const errorAddress = (publicUrl: string, code: ErrorCode): string =>
  `${publicUrl}/docs/reference/errors#${code}`;

/** The properties of an error beside its code and message. */
export interface GatewayErrorOptions {
  /** The offending request field, such as `messages[2].content`. */
  param?: string;
  /** Public facts beside the category, such as `upstream_backend`. */
  metadata?: Record<string, unknown>;
  /** Seconds that the caller should wait, sent as `Retry-After`. */
  retryAfterSeconds?: number;
  /**
   * The party that refused, where it differs from the catalogue's: a provider's 400 may have a code
   * of the gateway.
   */
  fault?: ErrorFacts["fault"];
  /** Whether a retry may help, where that differs from the catalogue. */
  retry?: boolean;
  /** Headers of the answer, such as the providers that were tried. */
  headers?: Readonly<Record<string, string>>;
  /** Private text for the log; never sent. */
  detail?: string;
  cause?: unknown;
}

/** A refused or failed request. `message` is public and says how to fix it; `detail` is private. */
export class GatewayError extends Error {
  readonly param: string | undefined;
  readonly metadata: Record<string, unknown>;
  readonly retryAfterSeconds: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly detail: string | undefined;
  readonly fault: ErrorFacts["fault"];
  readonly retry: boolean;

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: GatewayErrorOptions = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "GatewayError";
    this.param = options.param;
    this.metadata = { ...options.metadata };
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.headers = options.headers ?? {};
    this.detail = options.detail;
    this.fault = options.fault ?? errorCatalog[code].fault;
    this.retry = options.retry ?? errorCatalog[code].retry;
  }

  get facts(): ErrorFacts {
    return errorCatalog[this.code];
  }

  /** The HTTP status of the answer. */
  get status(): number {
    return this.facts.status;
  }
}

/** Returns the refusal of a field, which its message begins with: `limit: must be at least 1`. */
export const badField = (param: string, problem: string): GatewayError =>
  new GatewayError("bad_request", `${param}: ${problem}`, { param });
