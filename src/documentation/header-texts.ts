import { brandHeader } from "../platform/kernel/brand.ts";

/** A header of requests or answers. */
export interface HeaderText {
  name: string;
  side: "request" | "answer" | "both" | "webhook";
  text: string;
}

const own = (name: string, side: HeaderText["side"], text: string): HeaderText => ({
  name: brandHeader(name),
  side,
  text,
});
const standard = (name: string, side: HeaderText["side"], text: string): HeaderText => ({
  name,
  side,
  text,
});

/** Every header that means something here. */
export const headerTexts: readonly HeaderText[] = [
  own("Model", "answer", "The catalog id of the model that served."),
  own("Requested-Model", "answer", "The model that the request named, where another one served."),
  own("Upstream-Model", "answer", "The name under which the provider was asked."),
  own(
    "Provider",
    "both",
    "Request: providers that may serve, in order; wins over the body and the preset. Answer: who served.",
  ),
  own("Provider-Chain", "answer", "Every provider that was asked, in order."),
  own(
    "Fallback-Reason",
    "answer",
    "Why another model served: rate_limited, timeout, model_unavailable, credential_error, upstream_error or not_attempted.",
  ),
  own("Session-Moved", "answer", "The conversation left its provider, whose prompt cache it had."),
  own(
    "Cache-Status",
    "answer",
    "Whether an embedding came from the gateway's cache: HIT, MISS or BYPASS.",
  ),
  own("Credential-Source", "answer", "Whose provider key served: platform, byok or donated."),
  own("Credits-Charged", "answer", "What the request cost, in USD."),
  own("Credits-Balance", "answer", "The balance as it was last known."),
  own("Credits-Balance-At-Admission", "answer", "The balance when the request was admitted."),
  own(
    "Credits-Balance-After-Debit",
    "answer",
    "The balance after the charge, where it was asked for.",
  ),
  own("Balance-After-Debit", "request", "`true` asks for the balance after the charge."),
  own(
    "Metadata-Frame",
    "request",
    "`inline` has Responses streams carry the metadata in `response.completed`; see [events](/docs/reference/events).",
  ),
  own(
    "Output-Cap",
    "answer",
    "The output cap that the provider was given, where the balance lowered it.",
  ),
  own("Token-Count", "answer", "The number of tokens of the input, where they were counted."),
  own("Translation-Loss", "answer", "Fields of the request that the provider's format cannot say."),
  own("Documents-Pages", "answer", "The number of pages that were read."),
  own("Trace-Id", "answer", "The id of the request in logs, traces and records."),
  own("Event", "webhook", "The kind of event that a webhook delivers."),
  own("Delivery", "webhook", "The id of a delivery; repeated deliveries have the same one."),
  own(
    "Signature",
    "webhook",
    "`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 of `t.body` with the webhook's secret.",
  ),
  standard(
    "Authorization",
    "request",
    "`Bearer` with an LLM key, a management key or an access token.",
  ),
  standard("x-api-key", "request", "An LLM key, as Anthropic's clients send it."),
  standard(
    "Idempotency-Key",
    "request",
    "A name for a request that makes or moves something: repeated within 24 hours it answers the same.",
  ),
  standard(
    "x-session-id",
    "request",
    "Keeps a conversation with its provider, whose prompt cache it then hits.",
  ),
  standard("gw-skip-cache", "request", "`true` passes the cache of embeddings by."),
  standard("Retry-After", "answer", "Seconds to wait before the next try."),
  standard(
    "x-should-retry",
    "answer",
    "`false` where a retry cannot help, or the gateway has retried already.",
  ),
  standard("X-RateLimit-Limit", "answer", "Requests that the window allows."),
  standard("X-RateLimit-Remaining", "answer", "Requests that are left in it."),
  standard("X-RateLimit-Reset", "answer", "When the window is empty again."),
  standard(
    "X-RateLimit-Tier",
    "answer",
    "The tier that the request counts in; see [limits](/docs/reference/limits).",
  ),
  standard(
    "Deprecation",
    "answer",
    "The endpoint is announced to end (RFC 9745); `Sunset` says when and `Link` where to go.",
  ),
];
