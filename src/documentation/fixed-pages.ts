import { RateTiers } from "../account/limits/rate-tier.ts";
import type { Scope } from "../account/keys/scopes.ts";
import type { PlanId } from "../account/workspaces/plan.ts";

/** What each scope allows. */
export const scopeTexts: Record<Scope, string> = {
  "read:llm-keys": "List LLM keys: `GET /keys`, `GET /key`.",
  "write:llm-keys": "Create, change, rotate and delete LLM keys.",
  "read:presets": "Read presets.",
  "write:presets": "Create, change and delete presets.",
  "read:byok": "List the workspace's own provider keys, masked.",
  "write:byok": "Add, change, donate, withdraw and delete provider keys.",
  "read:credits": "`GET /credits`, invoices and top-ups.",
  "read:analytics": "`GET /analytics/*` and records of generations.",
  "read:management-keys": "List management keys.",
  "write:management-keys":
    "Create and revoke management keys; of the first workspace's keys also everything of operators.",
  "read:security": "Read credentials, the IP allowlist, privacy and the audit log.",
  "write:security": "Change the IP allowlist and privacy.",
  "read:hub": "Read hubs, prompts and skills.",
  "write:hub": "Publish, star, fork and import them.",
  "read:connections": "List connected apps.",
  "write:connections": "End connected apps.",
  inference: "Ask models.",
};

const plans: readonly PlanId[] = ["free", "payg", "go", "pro", "pro_plus", "max", "enterprise"];

/** Requests a minute by plan, and the other bounds of requests. */
export function limitsPage(): string {
  const tiers = new RateTiers();
  const rows = plans.map(
    (plan) =>
      `| \`${plan}\` | ${tiers.tierFor(plan, "paid").perMinute} | ${tiers.tierFor(plan, "free-model").perMinute} ` +
      `| ${tiers.tierFor(plan, "decision").perMinute} | ${tiers.quotaFor(plan, "paid")?.requests ?? "-"} |`,
  );
  return `# Limits

## Requests a minute

Counted for each key in a sliding minute; \`X-RateLimit-*\` headers show the window, and 429 comes with \`Retry-After\`. Keys
may have a lower
\`rate_limit\` and \`tpm\` of their own; operators change plans under \`plans:\` of [the configuration](/docs/reference/configuration).

| plan | paid models | free models | decisions | in five hours |
| --- | --- | --- | --- | --- |
${rows.join("\n")}

Requests without a credential, and wrong credentials, count by address: 300 a minute, an IPv6 /64 as one. MCP takes 120 calls a minute by
credential.

## Bounds of a request

| bound | value | beyond it |
| --- | --- | --- |
| a request's head | 16 KB | 431 |
| a body's size | by route, 32 MB for inference, also after decompression | 413 |
| a body's time | 10 seconds, and one for every 32 KB that came | 408 |
| JSON | 1,000 levels, 50,000 members, 50,000 texts, 400,000 entries of lists | 400 (levels) or 413 |
| all bodies in memory | \`server.body_memory_mb\`, 256 | 503 with \`Retry-After\` |
| a client that does not read its stream | 60 to 75 seconds | its provider is stopped, its connection closed |
| a connection between requests | 75 seconds of silence | closed |
`;
}

/** The events of each stream. */
export const eventsPage = `# Events of streams

Every stream is server-sent events. After the first content another provider is no longer tried: a failure ends the stream with
one error event,
and a stream that was cut never looks complete.

## Chat completions

\`data:\` lines with \`chat.completion.chunk\` objects, then \`data: [DONE]\`. The chunk that carries \`usage\` has
\`usage.cost\` in USD; once you see it the
charge stands. Where another model served, the first chunk with usage has \`fallback: {used, reason, attempts}\`. A last chunk carries
\`service_metadata\` with timings and \`creditsCharged\`. A failure is a chunk with \`error\`.

## Messages

\`message_start\`, \`content_block_start\`, \`content_block_delta\`, \`content_block_stop\`, \`message_delta\` (with
\`usage.cost\`), \`message_stop\`, \`ping\`, and
\`error\` where it fails, as Anthropic names them.

## Responses

\`response.created\`, \`response.in_progress\`, \`response.output_item.added\`, \`response.content_part.added\`,
\`response.output_text.delta\`,
\`response.output_text.done\`, \`response.content_part.done\`, \`response.output_item.done\`, then \`response.completed\`,
\`response.incomplete\` or
\`response.failed\`. \`response.service.metadata\` follows with who served and what it cost. Clients whose reader refuses
unknown events send
\`X-Service-Metadata-Frame: inline\` and find it in \`response.completed\`. Each event has a \`sequence_number\`, from which
\`GET /responses/{id}?stream=true&starting_after=N\` goes on.

## Webhooks of budgets

\`budget.threshold_reached\` and its like are sent by \`POST\` with \`X-Service-Event\`, \`X-Service-Delivery\` and
\`X-Service-Signature\`; a delivery that is not
answered with 2xx is repeated. See [budgets](/docs/guides/budgets).
`;
