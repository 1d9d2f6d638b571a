import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme, startGateway, testManagementKey, type TestGateway } from "../../support/gateway.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway({ providers: [acme(upstream.baseUrl)] });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

async function keyWith(tpm: number | null): Promise<Record<string, string>> {
  const created = await gateway.post(
    "/keys",
    { name: "k", tpm },
    {
      headers: { authorization: `Bearer ${testManagementKey}` },
    },
  );
  return { authorization: `Bearer ${textAt(await created.json(), "key")}` };
}

/** One request whose answer uses so many tokens in all. */
async function use(
  headers: Record<string, string>,
  tokens: number,
  stream = false,
): Promise<Response> {
  const usage = { prompt_tokens: 20, completion_tokens: tokens - 20, total_tokens: tokens };
  upstream.script((request) => chatAnswer(request, { usage }));
  const response = await gateway.post("/chat/completions", chatRequest({ stream }), { headers });
  if (response.status === 200) await response.text();
  return response;
}

describe.each([false, true])("a key's tpm (stream: %p)", (stream) => {
  test("admits requests until that many tokens were used, then returns 429", async () => {
    const key = await keyWith(1000);
    expect((await use(key, 600, stream)).status).toBe(200);
    expect((await use(key, 600, stream)).status).toBe(200);
    const error = await errorOf(await use(key, 600, stream));
    expect(error).toMatchObject({
      status: 429,
      code: "rate_limit_exceeded",
      type: "rate_limit_error",
    });
    expect(error.headers.get("retry-after")).toBe("60");
    expect(error.metadata).toMatchObject({ limit: 1000, unit: "tokens", window_seconds: 60 });
  });
});

test("a single request above the key's tpm returns 429", async () => {
  const key = await keyWith(10);
  expect((await use(key, 40)).status).toBe(429);
});

test("parallel requests count each other's tokens", async () => {
  const key = await keyWith(60);
  const statuses = await Promise.all(
    Array.from({ length: 20 }, async () => (await use(key, 40)).status),
  );
  expect(statuses.filter((status) => status === 200).length).toBeWithin(1, 5);
});

test("keys without a tpm and other keys are not limited", async () => {
  const free = await keyWith(null);
  for (let count = 0; count < 3; count += 1) expect((await use(free, 10_000)).status).toBe(200);
});

test("the balance after a debit is the one directly after it, whatever is charged in parallel", async () => {
  const headers = { ...(await keyWith(null)), "x-service-balance-after-debit": "true" };
  const answers = await Promise.all(Array.from({ length: 10 }, () => use(headers, 10_000)));
  const balances = answers.map((answer) =>
    answer.headers.get("x-service-credits-balance-after-debit"),
  );
  expect(new Set(balances).size).toBe(10);
});
