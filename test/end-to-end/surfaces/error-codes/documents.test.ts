import { afterAll, beforeAll } from "bun:test";
import {
  startParseProvider,
  type ParseAct,
  type ParseProvider,
} from "../../../support/documents/parse-provider.ts";
import { provider, startGateway, type TestGateway } from "../../../support/gateway.ts";
import { errorTable, wrongCredentials } from "../support/error-table.ts";

const path = "/documents/parse";
const mib = 1024 * 1024;
const source = { type: "url", url: "https://example.com/a.pdf", file_name: "a.pdf" };

let upstream: ParseProvider;
let gateway: TestGateway;
/** A gateway before the same provider, for callers with a key of their own. */
let keyless: TestGateway;
/** A gateway with one request a minute. */
let narrow: TestGateway;
beforeAll(async () => {
  upstream = startParseProvider();
  const entry = {
    id: "parser",
    base_url: upstream.baseUrl,
    dialect: { documents: "documents-parse" },
    timeouts_ms: { total: 1_500 },
  };
  gateway = await startGateway({ providers: [provider({ ...entry, api_key: "parser-secret" })] });
  keyless = await startGateway({ providers: [provider(entry)] });
  narrow = await startGateway({ plans: { enterprise: { perMinute: 1 } } });
});
afterAll(async () => {
  await Promise.all([gateway.stop(), keyless.stop(), narrow.stop()]);
  upstream.stop();
});

const ask =
  (
    body: unknown,
    {
      query = "wait_seconds=30",
      headers = {},
    }: { query?: string; headers?: Record<string, string> } = {},
  ) =>
  () =>
    gateway.post(`${path}?${query}`, body, { headers });
const from = (changes: object) => ask({ source: { ...source, ...changes } });

const whenProvider = (act: ParseAct) => () => {
  upstream.will(act);
  return ask({ source })();
};
const refusing = (status: number) =>
  whenProvider(() => Response.json({ error: { message: "Not this one." } }, { status }));

/** One key for two bodies. */
async function conflicting(): Promise<Response> {
  upstream.will(() => Response.json({ document: {} }));
  const headers = { "idempotency-key": "one" };
  await (await ask({ source }, { headers })()).text();
  return ask({ source, parse_mode: "high" }, { headers })();
}

async function aboveTheWindow(): Promise<Response> {
  await narrow.post(path, {});
  return narrow.post(path, {});
}

const missing = [400, "missing_required_fields", "invalid_request_error"] as const;
const invalid = [400, "invalid_request", "invalid_request_error"] as const;

errorTable(
  [
    "400 byok_required",
    "400 missing_required_fields",
    "400 invalid_request",
    "413 request_too_large",
    "422 unprocessable_entity",
    "429 rate_limit_exceeded",
    "502 upstream_response_too_large",
    "504 upstream_timeout",
  ],
  [
    [
      400,
      "byok_required",
      "invalid_request_error",
      "without a provider key",
      () => keyless.post(path, { source }),
    ],
    [...missing, "no source", ask({})],
    [...missing, "a source without a type", ask({ source: {} })],
    [...missing, "a source without a URL", from({ url: undefined })],
    [...missing, "a source without a file name", from({ file_name: undefined })],
    [...invalid, "no JSON", ask("{source")],
    [...invalid, "a source that is a text", ask({ source: "a.pdf" })],
    [...invalid, "a source of an unknown type", from({ type: "file" })],
    [...invalid, "a URL in clear", from({ url: "http://example.com/a.pdf" })],
    [...invalid, "a file name without an extension", from({ file_name: "a" })],
    [...invalid, "wait_seconds=61", ask({ source }, { query: "wait_seconds=61" })],
    [...invalid, "wait_seconds=-1", ask({ source }, { query: "wait_seconds=-1" })],
    [...invalid, "wait_seconds=1.5", ask({ source }, { query: "wait_seconds=1.5" })],
    [
      ...invalid,
      "an Idempotency-Key of 256 characters",
      ask({ source }, { headers: { "idempotency-key": "k".repeat(256) } }),
    ],
    [...invalid, "the provider's own 400", refusing(400)],
    ...wrongCredentials(() => gateway, { path, body: { source } }),
    [402, "upstream_402", "upstream_error", "the provider's own 402", refusing(402)],
    [404, "not_found", "not_found_error", "the provider's own 404", refusing(404)],
    [409, "conflict", "conflict_error", "an Idempotency-Key with another body", conflicting],
    [
      413,
      "request_too_large",
      "request_too_large",
      "a body of more than 256 KiB",
      ask({ source, filler: "x".repeat(256 * 1024) }),
    ],
    [413, "request_too_large", "request_too_large", "the provider's own 413", refusing(413)],
    [422, "unprocessable_entity", "invalid_request_error", "the provider's own 422", refusing(422)],
    [429, "rate_limit_exceeded", "rate_limit_error", "the provider's own 429", refusing(429)],
    [429, "rate_limit_exceeded", "rate_limit_error", "above the plan's window", aboveTheWindow],
    [
      502,
      "upstream_response_too_large",
      "upstream_error",
      "a result of more than 8 MiB",
      whenProvider(() => new Response(`"${"x".repeat(8 * mib)}"`)),
    ],
    [502, "upstream_error", "upstream_error", "the provider's 500", refusing(500)],
    [502, "upstream_401", "upstream_error", "the provider's 401", refusing(401)],
    [
      502,
      "bad_gateway",
      "upstream_error",
      "an answer that is no JSON",
      whenProvider(() => new Response("<html>")),
    ],
    [
      504,
      "upstream_timeout",
      "upstream_timeout",
      "a provider that says nothing",
      whenProvider(() => new Promise<Response>(() => undefined)),
    ],
    [504, "upstream_timeout", "upstream_timeout", "the provider's own 504", refusing(504)],
  ],
);
