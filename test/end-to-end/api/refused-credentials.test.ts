import { afterAll, beforeAll, expect, test } from "bun:test";
import { brand } from "../../../src/platform/kernel/brand.ts";
import { acme, startGateway, testManagementKey, type TestGateway } from "../../support/gateway.ts";
import { startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";
import { Browser, publicOrigin } from "./people-browser.ts";

const wrongKey = "sk-svc-v1-nobodynobodynobodynobodynobody";

let upstream: Awaited<ReturnType<typeof startFaultUpstream>>;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway({ providers: [acme(upstream.baseUrl)], trustProxy: true });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

/** What each address sends with its guesses. */
interface Guess {
  address: string;
  path?: string;
  headers: Record<string, string>;
}

const guess = ({ address, path = "/credits", headers }: Guess): Promise<Response> =>
  fetch(gateway.baseUrl + path, { headers: { "x-forwarded-for": address, ...headers } });

const bearer = (secret: string): Record<string, string> => ({ authorization: `Bearer ${secret}` });

async function statusesOf(
  count: number,
  each: (index: number) => Guess,
): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const { status } = await guess(each(index));
      statuses[status] = (statuses[status] ?? 0) + 1;
    }),
  );
  return statuses;
}

test("of 700 parallel wrong keys from one address 300 get 401 and 400 get 429; valid keys still work", async () => {
  const address = "203.0.113.1";
  const paths = ["/credits", "/keys", "/generation", "/admin/overview", "/models"];
  expect(
    await statusesOf(700, (index) => ({
      address,
      path: paths[index % paths.length] ?? "",
      headers: bearer(`${index % 2 ? "ak_" : ""}${wrongKey}${index}`),
    })),
  ).toEqual({ 401: 300, 429: 400 });
  const error = await errorOf(await guess({ address, headers: bearer(wrongKey) }));
  expect(error).toMatchObject({
    status: 429,
    code: "ip_rate_limit_exceeded",
    type: "rate_limit_error",
  });
  expect(error.metadata).toMatchObject({
    tier: "ip",
    limit: 300,
    window_seconds: 60,
    reason: "invalid_credentials",
  });
  expect(
    ["retry-after", "x-ratelimit-limit", "x-ratelimit-tier", "ratelimit-policy"].map((name) =>
      error.headers.get(name),
    ),
  ).toEqual(["60", "300", "ip", "300;w=60"]);

  const from = { "x-forwarded-for": address };
  expect((await gateway.post("/chat/completions", chatRequest(), { headers: from })).status).toBe(
    200,
  );
  expect((await gateway.get("/keys", { ...from, ...bearer(testManagementKey) })).status).toBe(200);
  expect((await fetch(`${gateway.baseUrl}/models`, { headers: from })).status).toBe(200);
  expect((await guess({ address: "203.0.113.2", headers: bearer(wrongKey) })).status).toBe(401);
});

test("a 429 for a wrong key has the error format of the client's dialect", async () => {
  const address = "203.0.113.3";
  await statusesOf(300, () => ({ address, headers: bearer(wrongKey) }));
  const send = (path: string, headers: Record<string, string>): Promise<Response> =>
    fetch(gateway.baseUrl + path, {
      method: "POST",
      headers: { "x-forwarded-for": address, ...headers },
      body: "{}",
    });
  const messages = await send("/messages", { "x-api-key": wrongKey });
  expect([messages.status, messages.headers.get("retry-after")]).toEqual([429, "60"]);
  expect(await messages.json()).toMatchObject({
    type: "error",
    error: { type: "rate_limit_error", code: "ip_rate_limit_exceeded" },
  });
  for (const path of ["/chat/completions", "/responses", "/embeddings"]) {
    expect(await errorOf(await send(path, bearer(wrongKey)))).toMatchObject({
      status: 429,
      code: "ip_rate_limit_exceeded",
    });
  }
});

test("revoked keys count as wrong ones, and an IPv6 /64 network counts as one address", async () => {
  const made: unknown = await (
    await gateway.post("/keys", { name: "short-lived" }, { headers: bearer(testManagementKey) })
  ).json();
  const secret = textAt(made, "key");
  const revoked = await fetch(`${gateway.baseUrl}/keys/${textAt(made, "data.hash")}`, {
    method: "DELETE",
    headers: bearer(testManagementKey),
  });
  expect(revoked.status).toBe(200);
  expect(
    await statusesOf(310, (index) => ({
      address: `2001:db8:1:2::${index.toString(16)}`,
      headers: bearer(secret),
    })),
  ).toEqual({ 401: 300, 429: 10 });
  expect((await guess({ address: "2001:db8:1:3::1", headers: bearer(secret) })).status).toBe(401);
});

test("invalid session cookies count as wrong keys, and a valid session of the address still works", async () => {
  const address = "203.0.113.4";
  const cookie = (value: string): Record<string, string> => ({
    cookie: `${brand.sessionCookie}=${value}`,
    origin: publicOrigin,
  });
  const owner = new Browser(() => gateway);
  await owner.ask("POST", "/api/auth/sign-up", {
    name: "Owner",
    email: "owner@example.com",
    password: "a password of some length",
    claim_token: await gateway.app.issueClaim(),
  });
  expect(
    await statusesOf(310, (index) => ({
      address,
      path: "/session",
      headers: cookie(`token${index}.c2lnbmF0dXJl`),
    })),
  ).toEqual({ 401: 300, 429: 10 });
  const own = await guess({
    address,
    path: "/session",
    headers: cookie(owner.cookies.get(brand.sessionCookie) ?? ""),
  });
  expect([own.status, at(await own.json(), "user.email")]).toEqual([200, "owner@example.com"]);
});
