import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import {
  startParseProvider,
  type ParseAct,
  type ParseProvider,
} from "../../support/documents/parse-provider.ts";
import {
  provider,
  startGateway,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";

const source = { type: "url", url: "https://example.com/a.pdf", file_name: "a.pdf" };
const mib = 1024 * 1024;

let upstream: ParseProvider;
let gateway: TestGateway;
let keyless: TestGateway;
let simulated: TestGateway;

const parser = (changes: Record<string, unknown> = {}) =>
  provider({
    id: "parser",
    base_url: upstream.baseUrl,
    dialect: { documents: "documents-parse" },
    api_key: "parser-secret",
    ...changes,
  });

beforeAll(async () => {
  upstream = startParseProvider();
  gateway = await startGateway({ providers: [parser({ timeouts_ms: { total: 1_500 } })] });
  const { api_key: _, ...withoutKey } = { ...parser(), api_key: undefined };
  keyless = await startGateway({ providers: [provider(JSON.parse(JSON.stringify(withoutKey)))] });
  simulated = await startGateway({ sandbox: true });
});
afterAll(async () => {
  await Promise.all([gateway.stop(), keyless.stop(), simulated.stop()]);
  upstream.stop();
});
afterEach(() => {
  upstream.questions.length = 0;
});

interface Answer {
  status: number;
  body: {
    error: {
      code: string;
      message: string;
      param: string | null;
      metadata: Record<string, unknown>;
    };
  };
  headers: Headers;
}

async function parse(
  body: unknown,
  {
    query = "wait_seconds=30",
    key,
    to = gateway,
  }: { query?: string; key?: string; to?: TestGateway } = {},
): Promise<Answer> {
  const headers: Record<string, string> = key === undefined ? {} : { "idempotency-key": key };
  const response = await to.post(`/documents/parse?${query}`, body, { headers });
  return {
    status: response.status,
    body: (await response.json()) as Answer["body"],
    headers: response.headers,
  };
}

const large = JSON.stringify({ source, filler: "x".repeat(256 * 1024) });

describe("invalid requests are not sent to the provider", () => {
  test.each<
    [name: string, body: unknown, query: string, status: number, code: string, param: string | null]
  >([
    ["invalid JSON", "{source", "", 400, "invalid_request", null],
    ["a list", "[]", "", 400, "invalid_request", null],
    ["no source", {}, "", 400, "missing_required_fields", "source"],
    ["a source that is not an object", { source: "a.pdf" }, "", 400, "invalid_request", "source"],
    ["a source without a type", { source: {} }, "", 400, "missing_required_fields", "source.type"],
    [
      "a source of an unknown type",
      { source: { type: "file" } },
      "",
      400,
      "invalid_request",
      "source.type",
    ],
    [
      "no URL",
      { source: { ...source, url: undefined } },
      "",
      400,
      "missing_required_fields",
      "source.url",
    ],
    [
      "an http URL",
      { source: { ...source, url: "http://example.com/a.pdf" } },
      "",
      400,
      "invalid_request",
      "source.url",
    ],
    [
      "a file URL",
      { source: { ...source, url: "file:///etc/passwd" } },
      "",
      400,
      "invalid_request",
      "source.url",
    ],
    [
      "a URL without a host",
      { source: { ...source, url: "https://" } },
      "",
      400,
      "invalid_request",
      "source.url",
    ],
    [
      "no file name",
      { source: { ...source, file_name: undefined } },
      "",
      400,
      "missing_required_fields",
      "source.file_name",
    ],
    [
      "a file name without an extension",
      { source: { ...source, file_name: "a" } },
      "",
      400,
      "invalid_request",
      "source.file_name",
    ],
    ["a wait of 61 seconds", { source }, "wait_seconds=61", 400, "invalid_request", "wait_seconds"],
    ["a negative wait", { source }, "wait_seconds=-1", 400, "invalid_request", "wait_seconds"],
    [
      "a wait that is not an integer",
      { source },
      "wait_seconds=1.5",
      400,
      "invalid_request",
      "wait_seconds",
    ],
    ["a body of more than 256 KiB", large, "", 413, "request_too_large", null],
  ])("%s", async (_, body, query, status, code, param) => {
    expect(await parse(body, { query })).toMatchObject({
      status,
      body: { error: { code, param } },
    });
    expect(upstream.questions).toEqual([]);
  });

  test("an Idempotency-Key that is too long", async () => {
    expect(await parse({ source }, { key: "k".repeat(256) })).toMatchObject({
      status: 400,
      body: { error: { param: "Idempotency-Key" } },
    });
  });

  test("a missing provider key", async () => {
    expect(await parse({ source }, { to: keyless })).toMatchObject({
      status: 400,
      body: { error: { code: "byok_required" } },
    });
  });
});

test.each([["workspace_file"], ["parse_result"]])(
  "a source of type %s is validated by the provider",
  async (type) => {
    upstream.will(() => Response.json({ document: {} }));
    const answer = await parse({ source: { type, id: "file_1" } });
    expect([answer.status, answer.headers.get("x-service-documents-pages")]).toEqual([200, null]);
  },
);

test("a workspace's own key is used before the operator's", async () => {
  upstream.will(() => Response.json({ document: { page_count: 1 } }));
  for (const to of [keyless, gateway]) {
    const saved = await fetch(`${to.baseUrl}/auth/byok`, {
      method: "POST",
      headers: { authorization: `Bearer ${testManagementKey}`, "content-type": "application/json" },
      body: JSON.stringify({
        provider_id: "parser",
        api_key: "my-own-key-at-parser",
        label: "mine",
      }),
    });
    expect([200, 201]).toContain(saved.status);
    const { headers } = await parse({ source }, { to });
    expect(headers.get("x-service-credential-source")).toBe("own_byok");
  }
  expect(upstream.questions.map(({ authorization }) => authorization)).toEqual(
    Array(2).fill("Bearer my-own-key-at-parser"),
  );
});

const refusal =
  (status: number, message: string, headers: Record<string, string> = {}): ParseAct =>
  () =>
    Response.json({ error: { message } }, { status, headers });

describe("a provider's error is relayed with its message", () => {
  test.each([
    [400, 400, "invalid_request"],
    [401, 502, "upstream_401"],
    [402, 402, "upstream_402"],
    [403, 502, "upstream_403"],
    [404, 404, "not_found"],
    [409, 409, "conflict"],
    [413, 413, "request_too_large"],
    [418, 400, "invalid_request"],
    [422, 422, "unprocessable_entity"],
    [429, 429, "rate_limit_exceeded"],
    [500, 502, "upstream_error"],
    [503, 502, "upstream_error"],
    [504, 504, "upstream_timeout"],
  ])("%i", async (upstreamStatus, status, code) => {
    upstream.will(refusal(upstreamStatus, "Too many pages in it."));
    const message = "Too many pages in it.";
    const metadata = {
      fault: "upstream",
      upstream_backend: "parser",
      upstream_status: upstreamStatus,
      upstream_message: message,
    };
    expect(await parse({ source })).toMatchObject({
      status,
      body: { error: { code, message, metadata } },
    });
  });

  test("with the Retry-After of a 429", async () => {
    upstream.will(refusal(429, "Slow down.", { "retry-after": "7" }));
    expect((await parse({ source })).headers.get("retry-after")).toBe("7");
  });
});

describe("a provider response that cannot be relayed", () => {
  test.each<[name: string, act: ParseAct, status: number, code: string]>([
    [
      "a result of more than 8 MiB",
      () => new Response(`"${"x".repeat(8 * mib)}"`),
      502,
      "upstream_response_too_large",
    ],
    ["invalid JSON", () => new Response("<html></html>"), 502, "bad_gateway"],
    ["silence", () => new Promise<Response>(() => undefined), 504, "upstream_timeout"],
  ])("%s", async (_, act, status, code) => {
    upstream.will(act);
    expect(await parse({ source })).toMatchObject({ status, body: { error: { code } } });
  });

  test("a result of 8 MiB is accepted", async () => {
    const text = `{"a":"${"x".repeat(8 * mib - 8)}"}`;
    upstream.will(() => new Response(text));
    expect((await parse({ source })).status).toBe(200);
  });
});

describe("a failed job", () => {
  test("is retried under its idempotency key after a temporary failure was returned", async () => {
    upstream.will(refusal(503, "Later."), () => Response.json({ document: { page_count: 9 } }));
    expect((await parse({ source }, { key: "again" })).status).toBe(502);
    expect(
      (await parse({ source }, { key: "again" })).headers.get("x-service-documents-pages"),
    ).toBe("9");
    expect(new Set(upstream.questions.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
  });

  test("is not retried after a permanent failure", async () => {
    upstream.will(refusal(422, "This is no document."));
    for (let times = 0; times < 3; times += 1)
      expect((await parse({ source }, { key: "never" })).status).toBe(422);
    expect(upstream.questions.length).toBe(1);
  });
});

test("without an own provider key the sandbox does not serve documents either", async () => {
  expect(await parse({ source }, { to: simulated })).toMatchObject({
    status: 400,
    body: { error: { code: "byok_required" } },
  });
});

test("the sandbox parses documents for workspaces with a sandbox key", async () => {
  const saved = await simulated.post(
    "/auth/byok",
    { provider_id: "sandbox", api_key: "any-key-at-all" },
    {
      headers: { authorization: `Bearer ${testManagementKey}` },
    },
  );
  expect(saved.status).toBe(200);
  const answer = await parse({ source, page_ranges: [{ start: 2, end: 5 }] }, { to: simulated });
  expect(answer).toMatchObject({
    status: 200,
    body: { file_name: "a.pdf", document: { page_count: 4 }, units: 4 },
  });
  expect(answer.headers.get("x-service-documents-pages")).toBe("4");
  const refused = await parse(
    { source: { ...source, file_name: "sandbox:status=429.pdf" } },
    { to: simulated },
  );
  expect(refused).toMatchObject({ status: 429, body: { error: { code: "rate_limit_exceeded" } } });
});
