import { afterEach, beforeEach, expect, test } from "bun:test";
import { FakeClock } from "../../support/fake-clock.ts";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";
import { at } from "./at.ts";
import { chatRequest } from "./chat-request.ts";

/**
 * The draw falls on the first, which costs less: a request that the second serves has another
 * reason.
 */
const entry = (id: string, baseUrl: string, price: string) =>
  provider({
    id,
    base_url: baseUrl,
    dialect: "openai-chat",
    api_key: "k",
    models: [{ id: "acme/large", pricing: { prompt: price, completion: price } }],
  });

let upstreams: [FaultUpstream, FaultUpstream];
let gateway: TestGateway;
let clock: FakeClock;
beforeEach(async () => {
  upstreams = [await startFaultUpstream(), await startFaultUpstream()];
  clock = new FakeClock();
  gateway = await startGateway(
    {
      providers: [
        entry("first", upstreams[0].baseUrl, "0.001"),
        entry("second", upstreams[1].baseUrl, "10"),
      ],
    },
    { clock, random: () => 0 },
  );
});
afterEach(async () => {
  await gateway.stop();
  for (const upstream of upstreams) upstream.stop();
});

const surfaces: readonly (readonly [path: string, body: Record<string, unknown>])[] = [
  ["/chat/completions", chatRequest({ model: "acme/large" })],
  [
    "/messages",
    { model: "acme/large", max_tokens: 50, messages: [{ role: "user", content: "Hello" }] },
  ],
  ["/responses", { model: "acme/large", input: "Hello", store: false }],
];

/** Returns which providers were tried, and whether the answer says that the session moved. */
async function ask(
  path: string,
  body: Record<string, unknown>,
  headers: Record<string, string> = {},
): Promise<string> {
  const response = await gateway.post(path, body, { headers });
  await response.text();
  const moved = response.headers.get("x-service-session-moved");
  return `${response.headers.get("x-service-provider-chain")}${moved === null ? "" : ` moved=${moved}`}`;
}

test("a session stays with its provider, on each surface, named in the body or the header", async () => {
  for (const [path, body] of surfaces) {
    expect(await ask(path, body)).toBe("first");
    const session = `s of ${path}`;
    expect(await ask(path, { ...body, session_id: session, provider: { only: ["second"] } })).toBe(
      "second",
    );
    expect(await ask(path, { ...body, session_id: session })).toBe("second");
    expect(await ask(path, body, { "x-session-id": session })).toBe("second");
    expect(await ask(path, { ...body, session_id: "another" }, { "x-session-id": session })).toBe(
      "first",
    );
    expect(await ask(path, body)).toBe("first");
  }
});

test("a session that moves reports it once and stays with its new provider", async () => {
  const [path, body] = surfaces[0] ?? ["", {}];
  const session = { ...body, session_id: "s" };
  expect(await ask(path, { ...session, provider: { only: ["second"] } })).toBe("second");
  upstreams[1].script(json(chatError("no"), { status: 500 }));
  expect(await ask(path, session)).toBe("second->first moved=true");
  upstreams[1].script(healthyChat);
  expect(await ask(path, session)).toBe("first");
  expect(await ask(path, { ...session, provider: { order: ["second"] } })).toBe(
    "second moved=true",
  );
  clock.advance(61 * 60_000);
  expect(await ask(path, session)).toBe("first");
});

test("a session id is limited to 256 characters, in the body and the header", async () => {
  for (const [path, body] of surfaces) {
    const longest = "s".repeat(256);
    expect(await ask(path, { ...body, session_id: longest })).toBe("first");
    expect(await ask(path, body, { "x-session-id": longest })).toBe("first");
    for (const sent of [
      await gateway.post(path, { ...body, session_id: `${longest}s` }),
      await gateway.post(path, body, { headers: { "x-session-id": `${longest}s` } }),
    ])
      expect([sent.status, at(await sent.json(), "error.code")]).toEqual([400, "bad_request"]);
  }
});
