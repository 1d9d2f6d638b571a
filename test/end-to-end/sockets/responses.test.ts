import { describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { head, sse, end } from "../../support/upstream/steps.ts";
import { chatChunks } from "../../support/upstream/openai-chat-fixtures.ts";
import { clientStage, modelIn, upstreamDialects } from "../clients/support/client-stage.ts";
import { refusalOf, SocketClient, type Event } from "./support/socket-client.ts";

const stage = clientStage();
const model = modelIn("openai-chat");

const open = (options: Parameters<typeof SocketClient.open>[1] = {}): Promise<SocketClient> =>
  SocketClient.open(stage.gateway.origin, options);

/** Makes a key, and returns its secret and hash. */
async function makeKey(settings: object): Promise<{ key: string; hash: string }> {
  const { key, data } = (await (
    await stage.gateway.post(
      "/keys",
      { name: "k", ...settings },
      {
        headers: {
          authorization: `Bearer ${testManagementKey}`,
          "content-type": "application/json",
        },
      },
    )
  ).json()) as { key: string; data: { hash: string } };
  return { key, hash: data.hash };
}

const inputOf = (body: string): string => JSON.stringify(JSON.parse(body).messages);

/** Waits until an upstream has as many requests. */
async function untilRequests(count: number): Promise<void> {
  while (stage.upstream.requests.length < count) await Bun.sleep(2);
}

/** An answer that waits behind its first content until it is let on. */
function gatedAnswer(text = ["One ", "two ", "three."]) {
  const gate = stage.upstream.gate();
  const [first, second, ...later] = chatChunks({ text, usageOn: "after" }).map((chunk) =>
    sse(chunk),
  );
  if (first === undefined || second === undefined) throw new Error("too few chunks");
  return { gate, script: [head(), first, second, gate, ...later, sse("[DONE]"), end()] };
}

describe("the handshake", () => {
  test.each(["/v1/responses", "/api/v1/responses"])(
    "%s refuses a bad key with 401",
    async (path) => {
      expect(await refusalOf(stage.gateway.origin, path)).toMatchObject({
        status: 401,
        code: "missing_api_key",
      });
      const headers = { authorization: "Bearer sk-svc-v1-unknown" };
      expect(await refusalOf(stage.gateway.origin, path, headers)).toMatchObject({
        status: 401,
        code: "invalid_api_key",
      });
      const management = { authorization: `Bearer ${testManagementKey}` };
      expect((await refusalOf(stage.gateway.origin, path, management)).status).toBe(401);
    },
  );

  test("a key that may not use the endpoint gets 403", async () => {
    const { key } = await makeKey({ allowed_endpoints: ["/chat/completions"] });
    const refusal = await refusalOf(stage.gateway.origin, "/v1/responses", {
      authorization: `Bearer ${key}`,
    });
    expect(refusal).toMatchObject({ status: 403, code: "insufficient_scope" });
  });

  test("a key whose window is full gets 429 with retry-after", async () => {
    const { key } = await makeKey({ rate_limit: 1 });
    stage.upstream.say({ text: ["Hi."] });
    const client = await open({ key });
    expect(await client.create({ model, input: "Hi" })).toMatchObject({ status: "completed" });
    expect(await client.create({ model, input: "Hi" })).toMatchObject({
      type: "error",
      status: 429,
      error: { code: "rate_limit_exceeded" },
    });
    client.close();
    const refusal = await refusalOf(stage.gateway.origin, "/v1/responses", {
      authorization: `Bearer ${key}`,
    });
    expect(refusal).toMatchObject({ status: 429, code: "rate_limit_exceeded" });
    expect(Number(refusal.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  test("a page of another origin that sends a cookie gets 403", async () => {
    const refusal = await refusalOf(stage.gateway.origin, "/v1/responses", {
      authorization: `Bearer ${testLlmKey}`,
      cookie: "__session=x",
      origin: "https://elsewhere.example",
    });
    expect(refusal).toMatchObject({ status: 403, code: "forbidden" });
  });

  test("permessage-deflate is negotiated, and the trace id is in the headers", async () => {
    const { host } = new URL(stage.gateway.origin);
    const lines = await new Promise<string>((resolve) => {
      void Bun.connect({
        hostname: "127.0.0.1",
        port: Number(host.split(":")[1]),
        socket: {
          open: (socket) =>
            void socket.write(
              `GET /v1/responses HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
                `Sec-WebSocket-Extensions: permessage-deflate\r\nAuthorization: Bearer ${testLlmKey}\r\n\r\n`,
            ),
          data(socket, data) {
            resolve(String(data));
            socket.end();
          },
        },
      });
    });
    expect(lines).toStartWith("HTTP/1.1 101");
    expect(lines.toLowerCase()).toContain("sec-websocket-extensions: permessage-deflate");
    expect(lines.toLowerCase()).toContain("x-service-trace-id: ");
  });
});

/** Returns an event without what differs from request to request. */
const comparable = (event: unknown): unknown =>
  JSON.parse(JSON.stringify(event).replace(/[0-9a-f]{32}/g, "ID"), (name, value: unknown) =>
    /_at$|Ms$|^timings$|^obfuscation$/.test(name) ? 0 : value,
  );

describe.each(upstreamDialects)("over %s", (dialect) => {
  const answer = {
    text: ["Once ", "more."],
    calls: [{ id: "call_1", name: "look", arguments: { at: "it" } }],
  };
  const body = {
    model: modelIn(dialect),
    input: "Look at it.",
    store: false,
    tools: [{ type: "function", name: "look", parameters: { type: "object", properties: {} } }],
  };

  test("the frames are the events of the stream over HTTP", async () => {
    stage.upstream.say(answer, answer);
    const streamed = await stage.gateway.post("/responses", { ...body, stream: true });
    const overHttp = (await streamed.text())
      .split("\n")
      .filter((line) => line.startsWith("data: "))
      .map((line) => JSON.parse(line.slice(6)) as Event);
    const client = await open();
    client.send({ type: "response.create", ...body });
    await client.until("response.service.metadata");
    expect(client.events.map(comparable)).toEqual(overHttp.map(comparable));
    client.close();
  });

  test("a response that is not stored is continued from the socket's memory", async () => {
    stage.upstream.say(answer, { text: ["Done."] });
    const client = await open();
    const first = await client.create(body);
    const before = stage.upstream.requests.length;
    const { call_id: id } = (first["output"] as Record<string, unknown>[]).at(-1) ?? {};
    const second = await client.create({
      ...body,
      previous_response_id: first["id"],
      input: [{ type: "function_call_output", call_id: id, output: "seen" }],
    });
    expect(second).toMatchObject({ status: "completed", previous_response_id: first["id"] });
    const sent = stage.upstream.requests[before]?.body ?? "";
    for (const text of ["Look at it.", "Once more.", "seen"]) expect(sent).toContain(text);
    client.close();
    const other = await open();
    expect(await other.create({ ...body, previous_response_id: first["id"] })).toMatchObject({
      type: "error",
      error: { code: "previous_response_not_found" },
    });
    other.close();
  });
});

describe("frames", () => {
  test("each leaves a record and a charge of its own", async () => {
    stage.upstream.say({ text: ["A."] }, { text: ["B."] });
    const client = await open();
    const ids = [];
    for (const input of ["a", "b"])
      ids.push(String((await client.create({ model, input, store: false }))["id"]));
    client.close();
    for (const id of ids) {
      const record = await stage.gateway.get(`/generation?id=${id.replace("resp_", "gen_")}`);
      expect(((await record.json()) as { data: object }).data).toMatchObject({
        total_cost: 0.000016,
      });
    }
  });

  test("a stored response is continued on another socket, and found over HTTP", async () => {
    stage.upstream.say({ text: ["A."] }, { text: ["B."] });
    const client = await open();
    const { id } = await client.create({ model, input: "first words" });
    client.close();
    expect((await stage.gateway.get(`/responses/${String(id)}`)).status).toBe(200);
    const other = await open();
    await other.create({ model, input: "more", previous_response_id: id });
    expect(inputOf(stage.upstream.requests.at(-1)?.body ?? "")).toContain("first words");
    other.close();
  });

  test("an error leaves the socket open, and forgets what was to be continued", async () => {
    stage.upstream.say({ text: ["A."] }, { text: ["B."] });
    const client = await open();
    const { id } = await client.create({ model, input: "a", store: false });
    const refused = await client.create({
      model: "nobody/nothing",
      input: "b",
      store: false,
      previous_response_id: id,
      stream_id: "lane",
    });
    expect(refused).toMatchObject({ type: "error", status: 404, stream_id: "lane" });
    const gone = await client.create({ model, input: "c", store: false, previous_response_id: id });
    expect(gone).toMatchObject({ error: { code: "previous_response_not_found" } });
    expect(await client.create({ model, input: "d" })).toMatchObject({ status: "completed" });
    client.close();
  });

  test.each([
    ["no JSON", "{", "bad_request"],
    ["a list", "[]", "bad_request"],
    ["another type", '{"type":"response.cancel"}', "bad_request"],
    ["background", '{"type":"response.create","background":true}', "bad_request"],
    ["no input", `{"type":"response.create","model":"${model}"}`, "bad_request"],
  ])("%s is refused in a frame", async (_, text, code) => {
    const client = await open();
    client.socket.send(text);
    expect(await client.next()).toMatchObject({ type: "error", status: 400, error: { code } });
    client.close();
  });

  test("a binary frame is refused; response.processed is ignored", async () => {
    const client = await open();
    client.send({ type: "response.processed", response_id: "resp_1" });
    client.socket.send(new TextEncoder().encode('{"type":"response.create"}'));
    const refused = await client.next();
    expect(refused).toMatchObject({ type: "error", status: 400 });
    expect(JSON.stringify(refused)).not.toContain("trace_id");
    client.close();
  });

  test("a key that is revoked, or may not use the model, is refused in its next frame", async () => {
    const { key, hash } = await makeKey({ allowed_models: [model] });
    const client = await open({ key });
    stage.upstream.say({ text: ["A."] });
    expect(await client.create({ model, input: "a" })).toMatchObject({ status: "completed" });
    expect(await client.create({ model: modelIn("google-generate"), input: "a" })).toMatchObject({
      type: "error",
      status: 403,
    });
    await fetch(`${stage.gateway.baseUrl}/keys/${hash}`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${testManagementKey}` },
    });
    expect(await client.create({ model, input: "a" })).toMatchObject({
      type: "error",
      status: 401,
      error: { code: "invalid_api_key" },
    });
    client.close();
  });

  test("generate: false keeps the conversation, asks no provider and costs nothing", async () => {
    const client = await open();
    const before = stage.upstream.requests.length;
    const warm = await client.create({
      model,
      input: "remember this",
      store: false,
      generate: false,
    });
    expect(warm).toMatchObject({ status: "completed", output: [], usage: { cost: 0 } });
    expect(stage.upstream.requests.length).toBe(before);
    stage.upstream.say({ text: ["I do."] });
    await client.create({
      model,
      input: "do you?",
      store: false,
      previous_response_id: warm["id"],
    });
    expect(inputOf(stage.upstream.requests.at(-1)?.body ?? "")).toContain("remember this");
    client.close();
  });
});

describe("lanes", () => {
  test("one is answered in order, several at once, each with its stream_id", async () => {
    const { upstream } = stage;
    const slow = gatedAnswer();
    upstream.enqueue(slow.script);
    const client = await open();
    const before = upstream.requests.length;
    client.send({ type: "response.create", model, input: "a1", stream_id: "a" });
    await untilRequests(before + 1);
    upstream.say({ text: ["B."] }, { text: ["A2."] });
    client.send({ type: "response.create", model, input: "a2", stream_id: "a" });
    client.send({ type: "response.create", model, input: "b", stream_id: "b" });
    expect(await client.until("response.completed")).toMatchObject({ stream_id: "b" });
    expect(upstream.requests.length).toBe(before + 2);
    slow.gate.open();
    expect(await client.until("response.completed")).toMatchObject({ stream_id: "a" });
    expect(await client.until("response.completed")).toMatchObject({ stream_id: "a" });
    expect(client.events.every((event) => ["a", "b"].includes(String(event["stream_id"])))).toBe(
      true,
    );
    client.close();
  });

  test("a client that leaves ends its responses, and pays for what came", async () => {
    const slow = gatedAnswer();
    stage.upstream.enqueue(slow.script);
    const client = await open();
    client.send({ type: "response.create", model, input: "a", store: false });
    const { response } = await client.until("response.created");
    await client.until("response.output_text.delta");
    client.close();
    await client.closed;
    const id = String((response as { id: string }).id).replace("resp_", "gen_");
    let record: Record<string, unknown> | undefined;
    while (record === undefined) {
      const found = await stage.gateway.get(`/generation?id=${id}`);
      if (found.ok) record = ((await found.json()) as { data: Record<string, unknown> }).data;
      else await Bun.sleep(5);
    }
    expect(record).toMatchObject({ cancelled: true });
    slow.gate.open();
  });
});

describe("steering", () => {
  test("ends the response as incomplete, and its successor has both inputs", async () => {
    const { upstream } = stage;
    const slow = gatedAnswer();
    upstream.enqueue(slow.script);
    const client = await open();
    client.send({ type: "response.create", model, input: "count", store: false, stream_id: "s" });
    const created = await client.until("response.created");
    await client.until("response.output_text.delta");
    upstream.say({ text: ["Backwards."] });
    const id = (created["response"] as { id: string }).id;
    client.send({ type: "response.steer", previous_response_id: id, input: "backwards" });
    const accepted = await client.until("response.steer.accepted");
    expect(accepted).toMatchObject({ steer: { previous_response_id: id }, stream_id: "s" });
    const ended = await client.until("response.incomplete");
    expect(ended).toMatchObject({ response: { incomplete_details: { reason: "steered" } } });
    const next = await client.until("response.created");
    expect(next).toMatchObject({ response: { previous_response_id: id }, stream_id: "s" });
    await client.until("response.completed");
    const sent = inputOf(upstream.requests.at(-1)?.body ?? "");
    expect(sent).toContain("count");
    expect(sent).toContain("backwards");
    slow.gate.open();
    client.close();
  });

  test("input for a response with calls waits for their results", async () => {
    const { upstream } = stage;
    const gate = upstream.gate();
    const call = chatChunks({
      text: [],
      usageOn: "after",
      toolCalls: [{ id: "call_1", name: "look", arguments: "{}" }],
    } as never).map((chunk) => sse(chunk));
    upstream.enqueue([head(), ...call.slice(0, 2), gate, ...call.slice(2), sse("[DONE]"), end()]);
    const client = await open();
    client.send({ type: "response.create", model, input: "look", store: false });
    const created = await client.until("response.created");
    const id = (created["response"] as { id: string }).id;
    client.send({ type: "response.steer", previous_response_id: id, input: "quickly" });
    await client.until("response.steer.accepted");
    gate.open();
    const pending = await client.until("response.steer.pending", "response.steer.failed");
    expect(pending).toMatchObject({
      type: "response.steer.pending",
      required_input: [{ type: "function_call_output", call_id: "call_1", name: "look" }],
    });
    upstream.say({ text: ["Done."] });
    await client.create({
      model,
      store: false,
      previous_response_id: id,
      input: [{ type: "function_call_output", call_id: "call_1", output: "seen" }],
    });
    const sent = inputOf(upstream.requests.at(-1)?.body ?? "");
    expect(sent).toContain("quickly");
    expect(sent).toContain("seen");
    client.close();
  });

  test("unknown responses and wrong input are reported", async () => {
    const client = await open();
    client.send({ type: "response.steer", previous_response_id: "resp_1", input: "x" });
    expect(await client.next()).toMatchObject({
      type: "response.steer.failed",
      error: { code: "response_not_found" },
      steer: { input: "x", previous_response_id: "resp_1" },
    });
    client.close();
  });
});

test("openai's client receives the events of two turns", async () => {
  stage.upstream.say({ text: ["Hello."] }, { text: ["Again."] });
  const client = new OpenAI({ baseURL: `${stage.gateway.origin}/v1`, apiKey: testLlmKey });
  const socket = new ResponsesWS(client);
  const ends: { id: string; text: string }[] = [];
  await new Promise<void>((resolve, reject) => {
    socket.on("error", reject);
    socket.on("response.completed", ({ response }) => {
      ends.push({ id: response.id, text: response.output_text });
      if (ends.length === 2) return resolve();
      socket.send({
        type: "response.create",
        model,
        input: "again",
        store: false,
        previous_response_id: response.id,
      });
    });
    socket.send({ type: "response.create", model, input: "hello", store: false });
  });
  socket.close();
  expect(ends.map(({ text }) => text)).toEqual(["Hello.", "Again."]);
});
