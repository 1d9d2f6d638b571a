import { afterAll, beforeAll, expect, test } from "bun:test";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatError, plainUsage } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";
import { textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";

const pricing = { prompt: "0.50", completion: "1.50" };
const models = (upstreamModel: string): unknown[] => [
  { id: "acme/large", upstream_model: upstreamModel, pricing },
  { id: "acme/tiny:free", upstream_model: "tiny" },
  { id: "acme/große-日本", upstream_model: "große-日本", pricing },
  { id: "acme/penny", pricing: { prompt: "0.002", completion: "0.004" } },
];

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway({
    providers: ["acme", "backup"].map((id) =>
      provider({
        id,
        name: `${id} Inference`,
        base_url: upstream.baseUrl,
        dialect: "openai-chat",
        api_key: "upstream-secret",
        models: models(`${id}-large`),
      }),
    ),
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const acmeFirst = { provider: { order: ["acme"] } };
const chat = (
  fields: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<Response> =>
  gateway.post("/chat/completions", chatRequest({ ...acmeFirst, ...fields }), { headers });

for (const stream of [false, true]) {
  const kind = stream ? "streamed" : "whole";

  test(`${kind}: name the model, the provider and the credential that served the request`, async () => {
    const response = await chat({ stream, model: "acme/LARGE:floor" });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "x-service-model": "acme/large",
      "x-service-upstream-model": "acme-large",
      "x-service-provider-chain": "acme",
      "x-service-credential-source": "platform",
      "content-type": stream ? "text/event-stream; charset=utf-8" : "application/json",
    });
    for (const absent of [
      "x-service-requested-model",
      "x-service-fallback-reason",
      "x-service-credits-charged",
      "x-service-credits-balance-after-debit",
    ])
      expect(response.headers.get(absent)).toBeNull();
    await response.text();
  });

  test(`${kind}: the provider chain names every backend that was tried, in order`, async () => {
    upstream.enqueue(json(chatError("no"), { status: 500 }));
    const response = await chat({ stream });
    expect(response.headers.get("x-service-provider-chain")).toBe("acme->backup");
    expect(response.headers.get("x-service-upstream-model")).toBe("backup-large");
    expect(response.headers.get("server-timing")).toMatch(
      /^gw;dur=[\d.]+, upstream;dur=[\d.]+;desc="acme", upstream;dur=[\d.]+;desc="backup", post;dur=[\d.]+, total;dur=[\d.]+$/,
    );
    await response.text();
  });

  test(`${kind}: the trace id is the same in both headers, the response id and the generation record`, async () => {
    const response = await chat({ stream });
    const traceId = response.headers.get("x-service-trace-id") ?? "";
    expect(traceId).toMatch(/^[0-9a-f]{32}$/);
    expect(response.headers.get("x-request-id")).toBe(traceId);
    expect(await response.text()).toContain(`"id":"chatcmpl-${traceId}"`);
    const generation: unknown = await (await gateway.get(`/generation/${traceId}`)).json();
    expect(textAt(generation, "data.trace_id")).toBe(traceId);
    expect((await chat()).headers.get("x-service-trace-id")).not.toBe(traceId);
  });

  test(`${kind}: the balance at admission is the one before the debit, and absent for a free model`, async () => {
    const before = (await gateway.get("/credits")).headers.get("x-service-credits-balance");
    const response = await chat({ stream });
    expect(response.headers.get("x-service-credits-balance-at-admission")).toBe(before);
    await response.text();
    const free = await chat({ stream, model: "acme/tiny:free" });
    expect(free.headers.get("x-service-credits-balance-at-admission")).toBeNull();
    await free.text();
  });

  test(`${kind}: names with non-ASCII characters are percent-encoded`, async () => {
    const response = await chat({ stream, model: "acme/große-日本" });
    expect(response.status).toBe(200);
    expect(decodeURIComponent(response.headers.get("x-service-model") ?? "")).toBe(
      "acme/große-日本",
    );
    expect(decodeURIComponent(response.headers.get("x-service-upstream-model") ?? "")).toBe(
      "große-日本",
    );
    await response.text();
  });
}

test.each(["true", "True"])(
  "whole: %s asks for the charge and the balance after it",
  async (value) => {
    const response = await chat({}, { "x-service-balance-after-debit": value });
    expect(response.headers.get("x-service-credits-charged")).toBe("0.000016");
    const after = (await gateway.get("/credits")).headers.get("x-service-credits-balance");
    expect(response.headers.get("x-service-credits-balance-after-debit")).toBe(after);
    const before = Number(response.headers.get("x-service-credits-balance-at-admission"));
    expect(before - Number(after)).toBeCloseTo(0.000016, 9);
  },
);

test("whole: a charge below a millionth of a dollar is written without an exponent", async () => {
  const response = await chat({ model: "acme/penny" }, { "x-service-balance-after-debit": "true" });
  expect(plainUsage).toMatchObject({ prompt_tokens: 11, completion_tokens: 7 });
  expect(response.headers.get("x-service-credits-charged")).toBe("0.00000005");
});

test.each(["false", "1", ""])(
  "whole: X-Service-Balance-After-Debit: %p adds no headers",
  async (value) => {
    const response = await chat({}, { "x-service-balance-after-debit": value });
    expect(response.headers.get("x-service-credits-charged")).toBeNull();
    expect(response.headers.get("x-service-credits-balance-after-debit")).toBeNull();
  },
);

/** Milliseconds by name of what is before the total, and the total. */
function timingOf(response: Response): { parts: number[]; total: number } {
  const entries = (response.headers.get("server-timing") ?? "").split(", ");
  const durations = entries.map((entry) => Number(/;dur=([\d.]+)/.exec(entry)?.[1]));
  return { parts: durations.slice(0, -1), total: durations.at(-1) ?? -1 };
}

test.each([false, true])(
  "Server-Timing: the gateway's own time and each attempt add up to the total, streamed: %p",
  async (stream) => {
    upstream.enqueue(json(chatError("no"), { status: 500 }));
    const response = await chat({ stream });
    const { parts, total } = timingOf(response);
    expect(parts).toHaveLength(4);
    expect(parts.reduce((sum, part) => sum + part, 0)).toBeCloseTo(total, 1);
    await response.text();
  },
);

test("streams forbid buffering by intermediaries", async () => {
  const response = await chat({ stream: true });
  expect(response.headers.get("x-accel-buffering")).toBe("no");
  expect(response.headers.get("cache-control")).toContain("no-cache");
  await response.text();
});
