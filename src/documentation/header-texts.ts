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

/** Every header that the gateway reads or writes. */
export const headerTexts: readonly HeaderText[] = [
  own("Model", "answer", "The catalog id of the model that served the request."),
  own(
    "MCP-Tools",
    "request",
    "Servers and tools (`server` or `server/tool`) that a request to /mcp/{server} is narrowed to; empty means none.",
  ),
  own(
    "Run",
    "request",
    "The run that the request belongs to: its name, and the bounds with which it is opened where there is none.",
  ),
  own("Run-Hint", "request", "`true` tells the model what is left of its run."),
  own("Run-Remaining", "answer", "What is left of the run, in USD."),
  own(
    "Run-Requests-Remaining",
    "answer",
    "The requests that are left of a run with `max_requests`.",
  ),
  own("Run-Degraded", "answer", "What was changed in the request since little is left of its run."),
  own("Run-Loop", "answer", "How often the run has sent the same request."),
  own("Customer", "request", "The customer of the caller on whose behalf the request is sent."),
  own("Tags", "request", "Tags that conditions of aliases compare."),
  own("Requested-Model", "answer", "The model that the request named, if another model served it."),
  own("Upstream-Model", "answer", "The model name that the gateway sent to the provider."),
  own(
    "Provider",
    "both",
    "Request: the providers that may serve, in order; takes precedence over the body and the preset. Answer: the provider that served.",
  ),
  own("Provider-Chain", "answer", "Every provider that the gateway tried, in order."),
  own(
    "Fallback-Reason",
    "answer",
    "Why another model served: rate_limited, timeout, model_unavailable, credential_error, upstream_error or not_attempted.",
  ),
  own(
    "Session-Moved",
    "answer",
    "The conversation moved to another provider and lost its prompt cache.",
  ),
  own(
    "Cache-Status",
    "answer",
    "Whether an embedding came from the gateway's cache: HIT, MISS or BYPASS.",
  ),
  own("Credential-Source", "answer", "Whose provider key served: platform, own_byok or pool."),
  own("Credits-Charged", "answer", "The cost of the request, in USD."),
  own("Credits-Balance", "answer", "The last known balance."),
  own("Credits-Balance-At-Admission", "answer", "The balance when the request was admitted."),
  own(
    "Credits-Balance-After-Debit",
    "answer",
    "The balance after the charge, if the request asked for it.",
  ),
  own("Balance-After-Debit", "request", "`true` asks for the balance after the charge."),
  own(
    "Metadata-Frame",
    "request",
    "`inline` puts the metadata of Responses streams into `response.completed`; see [events](/docs/reference/events).",
  ),
  own(
    "Output-Cap",
    "answer",
    "The output cap that the provider received, if the balance lowered it.",
  ),
  own("Token-Count", "answer", "The number of input tokens, if they were counted."),
  own(
    "Translation-Loss",
    "answer",
    "The fields of the request that the provider's format cannot express.",
  ),
  own("Documents-Pages", "answer", "The number of pages that the gateway read."),
  own("Trace-Id", "answer", "The id of the request in logs, traces and records."),
  own("Event", "webhook", "The type of event that the webhook delivers."),
  own("Delivery", "webhook", "The id of the delivery; repeated deliveries have the same id."),
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
    "A unique key for a request that creates or moves something. Repeating the request within 24 hours returns the same answer.",
  ),
  standard(
    "x-session-id",
    "request",
    "Keeps a conversation with one provider, so that it hits the provider's prompt cache.",
  ),
  standard("gw-skip-cache", "request", "`true` bypasses the embeddings cache."),
  standard("Retry-After", "answer", "Seconds to wait before the next attempt."),
  standard(
    "x-should-retry",
    "answer",
    "`false` if a retry cannot help, or if the gateway has already retried.",
  ),
  standard("X-RateLimit-Limit", "answer", "The number of requests that the window allows."),
  standard("X-RateLimit-Remaining", "answer", "The number of requests left in the window."),
  standard("X-RateLimit-Reset", "answer", "When the window resets."),
  standard(
    "X-RateLimit-Tier",
    "answer",
    "The tier in which the request counts; see [limits](/docs/reference/limits).",
  ),
  standard(
    "Deprecation",
    "answer",
    "The endpoint is deprecated (RFC 9745). `Sunset` says when it ends, and `Link` leads to its replacement.",
  ),
];
