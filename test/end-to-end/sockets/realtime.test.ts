import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import {
  provider,
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { refusalOf, SocketClient } from "./support/socket-client.ts";
import {
  mixedUsage,
  startRealtimeUpstream,
  type RealtimeUpstream,
} from "./support/realtime-upstream.ts";

let upstream: RealtimeUpstream;
let gateway: TestGateway;
const model = "acme/voice";
const path = `/v1/realtime?model=${model}`;

beforeAll(async () => {
  upstream = startRealtimeUpstream();
  gateway = await startGateway({
    providers: [
      provider({
        id: "acme",
        base_url: upstream.baseUrl,
        dialect: { chat: "openai-chat", realtime: "openai-realtime" },
        api_key: "upstream-secret",
        models: [
          {
            id: model,
            upstream_model: "gpt-realtime-up",
            surface: "realtime",
            pricing: {
              prompt: "4",
              completion: "24",
              cache_read: "0.4",
              audio_input: "32",
              audio_output: "64",
              audio_cache_read: "0.4",
            },
          },
          { id: "acme/large", pricing: { prompt: "1", completion: "1" } },
        ],
      }),
    ],
  });
});
beforeEach(() => {
  upstream.usage = mixedUsage;
  upstream.waits = false;
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

/** 80 + 60 + 90 cached tokens in, 20 + 80 out, at the prices above. */
const mixedCost = (80 * 4 + 60 * 32 + 90 * 0.4 + 20 * 24 + 80 * 64) / 1e6;

async function makeKey(settings: object): Promise<string> {
  const headers = {
    authorization: `Bearer ${testManagementKey}`,
    "content-type": "application/json",
  };
  const made = await gateway.post("/keys", { name: "k", ...settings }, { headers });
  return ((await made.json()) as { key: string }).key;
}

/** Returns the newest records of sessions. */
async function records(count: number): Promise<Record<string, unknown>[]> {
  const { data } = (await (
    await fetch(`${gateway.baseUrl}/analytics/generations?limit=${count}`, {
      headers: { authorization: `Bearer ${testManagementKey}` },
    })
  ).json()) as { data: Record<string, unknown>[] };
  return data;
}

const open = (options: Parameters<typeof SocketClient.open>[1] = {}): Promise<SocketClient> =>
  SocketClient.open(gateway.origin, { path, ...options });

test("events pass both ways, with the model's name as the client knows it", async () => {
  const client = await open();
  expect(await client.next()).toMatchObject({ type: "session.created", session: { model } });
  client.send({
    type: "session.update",
    session: { type: "realtime", model, instructions: "Be brief." },
  });
  expect(await client.until("session.updated")).toMatchObject({ session: { model } });
  expect(upstream.events.at(-1)).toMatchObject({ session: { model: "gpt-realtime-up" } });
  expect(upstream.handshakes.at(-1)?.query.get("model")).toBe("gpt-realtime-up");
  expect(upstream.handshakes.at(-1)?.headers.get("openai-beta")).toBeNull();
  client.send({ type: "response.create" });
  const done = await client.until("response.done");
  expect(done).toMatchObject({ response: { status: "completed", usage: mixedUsage } });
  client.close();
});

test("each response is charged by its parts, and has a record of its own", async () => {
  const client = await open();
  for (let index = 0; index < 2; index += 1) {
    client.send({ type: "response.create" });
    await client.until("response.done");
  }
  client.close();
  await client.closed;
  const [first, second] = await records(2);
  for (const record of [first, second]) {
    expect(record).toMatchObject({ model });
    expect(JSON.stringify(record)).toContain(String(mixedCost));
  }
  expect(first?.["id"]).not.toBe(second?.["id"]);
  const session = String(first?.["session_id"]);
  expect(session).toStartWith("sess_");
  const listed = await fetch(`${gateway.baseUrl}/analytics/generations?session_id=${session}`, {
    headers: { authorization: `Bearer ${testManagementKey}` },
  });
  const { data } = (await listed.json()) as { data: { id: string }[] };
  expect(data.map(({ id }) => id)).toEqual([String(first?.["id"]), String(second?.["id"])]);
});

test("browsers send their key as a subprotocol, and are answered with realtime alone", async () => {
  const client = await open({
    key: "",
    protocols: ["realtime", `openai-insecure-api-key.${testLlmKey}`],
  });
  expect(client.socket.protocol).toBe("realtime");
  expect(await client.next()).toMatchObject({ type: "session.created" });
  client.close();
});

test.each([
  ["no key", path, {}, 401],
  ["no model", "/v1/realtime", { authorization: `Bearer ${testLlmKey}` }, 400],
  [
    "a model of chat",
    "/v1/realtime?model=acme/large",
    { authorization: `Bearer ${testLlmKey}` },
    404,
  ],
  [
    "an unknown model",
    "/v1/realtime?model=acme/nothing",
    { authorization: `Bearer ${testLlmKey}` },
    404,
  ],
  [
    "a translation by an unknown model",
    "/v1/realtime/translations?model=x",
    { authorization: `Bearer ${testLlmKey}` },
    404,
  ],
  ["a call", "/v1/realtime?call_id=rtc_1", { authorization: `Bearer ${testLlmKey}` }, 501],
] as const)("%s refuses the handshake", async (_, target, headers, status) => {
  expect((await refusalOf(gateway.origin, target, { ...headers })).status).toBe(status);
});

test("a key that may not use the model gets 403, and one whose limit is too small 402", async () => {
  const elsewhere = await makeKey({ allowed_models: ["acme/large"] });
  const headers = { authorization: `Bearer ${elsewhere}` };
  expect((await refusalOf(gateway.origin, path, headers)).status).toBe(403);
  const poor = await makeKey({ limit: 0.001 });
  expect((await refusalOf(gateway.origin, path, { authorization: `Bearer ${poor}` })).status).toBe(
    402,
  );
});

test("another model in session.update is refused, and the session goes on", async () => {
  const client = await open();
  client.send({ type: "session.update", event_id: "e1", session: { model: "acme/large" } });
  expect(await client.until("error")).toMatchObject({
    error: { param: "session.model", event_id: "e1" },
  });
  client.send({ type: "response.create" });
  await client.until("response.done");
  client.close();
});

test("a session ends with an error and 1008 when its key has nothing left, within its limit", async () => {
  const limit = 0.05;
  const key = await makeKey({ limit });
  upstream.usage = {
    total_tokens: 300,
    input_tokens: 100,
    output_tokens: 200,
    input_token_details: { text_tokens: 100 },
    output_token_details: { audio_tokens: 200 },
  };
  const client = await open({ key });
  let responses = 0;
  for (;;) {
    client.send({ type: "response.create" });
    const event = await client.until("response.done", "error");
    if (event.type === "error") {
      expect(event).toMatchObject({ error: { code: "insufficient_balance" } });
      break;
    }
    responses += 1;
  }
  expect(await client.closed).toMatchObject({ code: 1008 });
  expect(responses).toBeGreaterThan(1);
  // The provider was held to what the key can pay for.
  const caps = upstream.events
    .map(({ session }) => (Object(session) as { max_output_tokens?: number }).max_output_tokens)
    .filter((cap) => cap !== undefined);
  expect(caps[0]).toBe(256);
  const spent = responses * ((100 * 4 + 200 * 64) / 1e6);
  expect(spent).toBeLessThanOrEqual(limit);
  const found = (await (
    await fetch(`${gateway.baseUrl}/key`, { headers: { authorization: `Bearer ${key}` } })
  ).json()) as { data: { usage: number } };
  expect(found.data.usage).toBeCloseTo(spent, 9);
});

test("a cap that is raised again is held for before the next response", async () => {
  const key = await makeKey({ limit: 0.3 });
  upstream.usage = { total_tokens: 1_100, output_tokens: 1_000, output_token_details: {} };
  const client = await open({ key });
  const capped = (most: unknown) => ({
    type: "session.update",
    session: { type: "realtime", max_output_tokens: most },
  });
  client.send(capped(1));
  await client.until("session.updated");
  client.send({ type: "response.create" });
  await client.until("response.done");
  client.send(capped("inf"));
  expect(await client.until("error")).toMatchObject({ error: { code: "insufficient_balance" } });
  expect(await client.closed).toMatchObject({ code: 1008 });
});

test("a cap in settings that the provider refuses lowers no hold", async () => {
  const key = await makeKey({ limit: 0.3 });
  upstream.usage = { total_tokens: 1_100, output_tokens: 1_000, output_token_details: {} };
  const client = await open({ key });
  const session = { type: "realtime", max_output_tokens: 1, voice: "alloy" };
  client.send({ type: "session.update", session });
  await client.until("error");
  client.send({ type: "response.create" });
  await client.until("response.done");
  // The next response is held for as much as the key can pay, and capped there.
  expect(await client.until("session.updated")).toMatchObject({
    session: { max_output_tokens: 1_024 },
  });
  client.close();
});

test("a client that leaves within a response pays what its provider reports", async () => {
  upstream.waits = true;
  const client = await open();
  client.send({ type: "response.create" });
  await client.until("response.output_text.delta");
  client.close();
  await client.closed;
  await pollUntil(() => gateway.app.ledger.openHoldCount === 0);
  const [record] = await records(1);
  expect(JSON.stringify(record)).toContain(String(mixedCost));
  expect(upstream.events.at(-1)).toMatchObject({ type: "response.cancel" });
});

test.each([
  [1011, 1011],
  [undefined, 1011],
])("a provider that closes with %p closes the client with %p", async (code, seen) => {
  const client = await open();
  await client.next();
  upstream.closeAll(code);
  expect((await client.closed).code).toBe(seen);
});

test("no hold is left when every session has ended", async () => {
  await pollUntil(() => gateway.app.ledger.openHoldCount === 0);
});

test("a client secret opens sessions of its model alone, and begins them with its settings", async () => {
  const made = await gateway.post("/realtime/client_secrets", {
    expires_after: { anchor: "created_at", seconds: 60 },
    session: { type: "realtime", model, instructions: "Whisper." },
  });
  const { value, expires_at: expiresAt, session } = (await made.json()) as Record<string, unknown>;
  expect(String(value)).toStartWith("ek_");
  expect(Math.abs(Number(expiresAt) - Date.now() / 1000 - 60)).toBeLessThan(5);
  expect(session).toMatchObject({ model, object: "realtime.session" });
  const key = String(value);
  const client = await open({ key: "", protocols: ["realtime", `openai-insecure-api-key.${key}`] });
  await client.until("session.updated");
  expect(upstream.events.at(-1)).toMatchObject({ session: { instructions: "Whisper." } });
  client.close();
  const headers = { authorization: `Bearer ${key}` };
  const other = "/v1/realtime?model=acme/large";
  expect((await refusalOf(gateway.origin, other, headers)).status).toBe(403);
  const chat = { model: "acme/large", messages: [{ role: "user", content: "Hi" }] };
  const asked = await gateway.post("/chat/completions", chat, {
    headers: { ...headers, "content-type": "application/json" },
  });
  expect(asked.status).toBe(403);
  const forged = await refusalOf(gateway.origin, path, { authorization: `Bearer ${key}x` });
  expect(forged.status).toBe(401);
});

test.each([
  [{ expires_after: { seconds: 5 }, session: { model } }, 400],
  [{ session: { model: "acme/large" } }, 404],
])("%j makes no client secret", async (body, status) => {
  expect((await gateway.post("/realtime/client_secrets", body)).status).toBe(status);
});

test.each(["/realtime/calls", "/live/sessions", "/live/sessions/x/fork"])(
  "%s is answered 501 with the reason",
  async (path) => {
    const answer = await gateway.post(path, {});
    expect(answer.status).toBe(501);
    expect(await answer.text()).toContain("/realtime");
  },
);

test("clients of the beta are answered in its events", async () => {
  const client = await open({ headers: { "openai-beta": "realtime=v1" } });
  expect(await client.next()).toMatchObject({ type: "session.created", session: { model } });
  client.send({
    type: "session.update",
    session: {
      modalities: ["text", "audio"],
      voice: "alloy",
      input_audio_format: "g711_ulaw",
      turn_detection: null,
      temperature: 0.8,
      max_response_output_tokens: 200,
    },
  });
  expect(await client.until("session.updated")).toMatchObject({
    session: {
      modalities: ["audio", "text"],
      voice: "alloy",
      input_audio_format: "g711_ulaw",
      max_response_output_tokens: 200,
    },
  });
  expect(upstream.events.at(-1)?.["session"]).toEqual({
    type: "realtime",
    output_modalities: ["audio"],
    max_output_tokens: 200,
    audio: {
      input: { format: { type: "audio/pcmu" }, turn_detection: null },
      output: { voice: "alloy" },
    },
  });
  client.send({
    type: "conversation.item.create",
    item: { type: "message", role: "assistant", content: [{ type: "text", text: "Hi" }] },
  });
  expect(await client.until("conversation.item.created")).toMatchObject({
    item: { content: [{ type: "text" }] },
  });
  client.send({ type: "response.create", response: { modalities: ["text"] } });
  expect(await client.until("response.text.delta")).toMatchObject({ delta: "Hello." });
  await client.until("response.done");
  expect(upstream.events.at(-1)).toEqual({
    type: "response.create",
    response: { output_modalities: ["text"] },
  });
  expect(client.events.map(({ type }) => type)).not.toContain("conversation.item.done");
  client.close();
});

test("browsers ask for the beta by its subprotocol", async () => {
  const protocols = [
    "realtime",
    `openai-insecure-api-key.${testLlmKey}`,
    "openai-beta.realtime-v1",
  ];
  const client = await open({ key: "", protocols });
  expect(client.socket.protocol).toBe("realtime");
  client.send({ type: "response.create" });
  await client.until("response.text.delta");
  client.close();
});

test("parallel sessions of one key together stay within its limit, to the nano-dollar", async () => {
  const limit = 0.2;
  const key = await makeKey({ limit });
  let responses = 0;
  const session = async (): Promise<void> => {
    const client = await open({ key }).catch(() => undefined);
    if (client === undefined) return;
    for (;;) {
      client.send({ type: "response.create" });
      const event = await client.until("response.done", "error");
      if (event.type === "error") break;
      responses += 1;
    }
    expect((await client.closed).code).toBe(1008);
  };
  await Promise.all(Array.from({ length: 10 }, session));
  const found = (await (
    await fetch(`${gateway.baseUrl}/key`, { headers: { authorization: `Bearer ${key}` } })
  ).json()) as { data: { usage: number } };
  expect(responses).toBeGreaterThan(3);
  expect(found.data.usage).toBeLessThanOrEqual(limit);
  expect(found.data.usage).toBeCloseTo(responses * mixedCost, 9);
});
