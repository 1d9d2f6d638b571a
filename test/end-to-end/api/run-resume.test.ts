import { afterAll, beforeAll, expect, test } from "bun:test";
import { brand } from "../../../src/platform/kernel/brand.ts";
import { acme, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { signedInSessions, type SignedInSessions } from "./credential-sessions.ts";

let upstream: FaultUpstream;
let gateway: TestGateway;
let sessions: SignedInSessions;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway({ providers: [acme(upstream.baseUrl)] });
  sessions = await signedInSessions(gateway);
}, 240_000);
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const messages = (secret: string): Promise<Response> =>
  fetch(`${gateway.baseUrl}/messages`, {
    method: "POST",
    headers: { "x-api-key": secret, "content-type": "application/json" },
    body: JSON.stringify({ ...chatRequest({}), max_tokens: 7 }),
  });

const page = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(gateway.origin + path, {
    redirect: "manual",
    ...init,
    headers: {
      accept: "text/html",
      origin: gateway.origin,
      cookie: `${brand.sessionCookie}=${sessions.owner()}`,
      ...init.headers,
    },
  });

const form = (fields: Record<string, string>): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/x-www-form-urlencoded" },
  body: new URLSearchParams(fields).toString(),
});

test("a person adds to a run at its page, and the same request goes through", async () => {
  const opened: unknown = await (
    await gateway.post("/runs", { name: "agent", limit: 0.00003 })
  ).json();
  const secret = textAt(opened, "key");
  expect((await messages(secret)).status).toBe(200);
  const refused = await messages(secret);
  expect([refused.status, refused.headers.get("x-should-retry")]).toEqual([402, "false"]);
  const body: unknown = await refused.json();
  expect(body).toMatchObject({
    type: "error",
    error: { type: "billing_error", code: "run_exhausted" },
  });
  const { pathname } = new URL(textAt(body, "error.metadata.resume_url"));
  const stranger = await page(pathname, { headers: { cookie: "" } });
  expect([stranger.status, stranger.headers.get("location")]).toEqual([
    303,
    `/sign-in?return_to=${encodeURIComponent(pathname)}`,
  ]);
  const shown = await (await page(pathname)).text();
  expect(shown).toContain("Run agent");
  const foreign = await page(pathname, {
    ...form({ add: "0.5", decision: "add" }),
    headers: { origin: "https://evil.example" },
  });
  expect(foreign.status).toBe(403);
  const wrong = await page(pathname, form({ add: "-1", decision: "add" }));
  expect(wrong.status).toBe(400);
  const added = await page(pathname, form({ add: "0.5", decision: "add" }));
  expect([added.status, await added.text()]).toEqual([
    200,
    expect.stringContaining("Added 0.5 USD"),
  ]);
  expect((await messages(secret)).status).toBe(200);
  const ended = await page(pathname, form({ decision: "end" }));
  expect(await ended.text()).toContain("has ended");
  const after = await messages(secret);
  expect([after.status, at(await after.json(), "error.metadata.reason")]).toEqual([
    402,
    "run_ended",
  ]);
  const list = await gateway.get("/runs", { authorization: `Bearer ${testLlmKey}` });
  expect(at(await list.json(), "data.0.status")).toBe("ended");
});
