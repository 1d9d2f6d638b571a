import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  provider,
  startGateway,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatStream } from "../../support/upstream/healthy-chat.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";
import { until } from "../nodes/support/until.ts";
import { listAt } from "./at.ts";

/** A request of each client dialect, its ping, and what ends its stream well and in failure. */
const dialects = [
  {
    path: "/chat/completions",
    body: { messages: [{ role: "user", content: "Hello" }] },
    ping: ": ping\n",
    good: "data: [DONE]",
    failed: '"code":"upstream_error"',
  },
  {
    path: "/messages",
    body: { max_tokens: 100, messages: [{ role: "user", content: "Hello" }] },
    ping: "event: ping\n",
    good: "event: message_stop",
    failed: "event: error",
  },
  {
    path: "/responses",
    body: { input: "Hello" },
    ping: ": ping\n",
    good: "event: response.completed",
    failed: "event: error",
  },
];

describe("a stream whose content is late", () => {
  let upstream: FaultUpstream;
  let gateway: TestGateway;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    const at = (id: string): unknown => ({ id, pricing: { prompt: "1", completion: "1" } });
    const named = (id: string) =>
      provider({
        id,
        base_url: upstream.baseUrl,
        dialect: "openai-chat",
        api_key: "k",
        models: [at("acme/small")],
      });
    gateway = await startGateway({
      providers: [named("one"), named("two")],
      keepaliveBeforeContentMs: 1,
    });
  });
  afterAll(async () => {
    await gateway.stop();
    upstream.stop();
  });

  const send = (
    { path, body }: { path: string; body: object },
    { fields = {}, ...init }: RequestInit & { fields?: object } = {},
  ): Promise<Response> =>
    gateway.post(path, { model: "acme/small", stream: true, ...body, ...fields }, init);

  /** Reads up to the first ping, then opens the gate, and returns the whole text. */
  async function readPast(response: Response, open: () => void): Promise<string> {
    const reader = (response.body ?? new Blob([]).stream())
      .pipeThrough(new TextDecoderStream())
      .getReader();
    let text = (await reader.read()).value ?? "";
    open();
    for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value;
    return text;
  }

  test.each(dialects)(
    "begins with a ping, and another provider still serves: $path",
    async (dialect) => {
      const gate = upstream.gate();
      upstream.enqueue([gate, ...json(chatError("no"), { status: 500 })], chatStream());
      const response = await send(dialect);
      expect([response.status, response.headers.get("content-type")]).toEqual([
        200,
        "text/event-stream; charset=utf-8",
      ]);
      const text = await readPast(response, () => gate.open());
      expect(text).toStartWith(dialect.ping);
      expect(text).toContain("Hel");
      expect(text).toContain(dialect.good);
    },
  );

  test.each(dialects)("ends with an event for a failure: $path", async (dialect) => {
    const gate = upstream.gate();
    const no = json(chatError("no"), { status: 500 });
    upstream.enqueue([gate, ...no], no);
    const text = await readPast(await send(dialect), () => gate.open());
    expect(text).toStartWith(dialect.ping);
    expect(text).toContain(dialect.failed);
  });

  test("a client that leaves in the meantime ends the request, which is recorded once", async () => {
    const gate = upstream.gate();
    upstream.enqueue([gate, ...chatStream()]);
    const leaving = new AbortController();
    const [dialect] = dialects;
    if (dialect === undefined) throw new Error("there is no dialect");
    const asked = upstream.requests.length;
    const response = await send(dialect, { signal: leaving.signal });
    await upstream.waitForRequest(asked + 1);
    leaving.abort();
    await response.text().catch(() => undefined);
    const records = async (): Promise<unknown[]> =>
      listAt(
        await (
          await gateway.get("/analytics/generations?status=cancelled", {
            authorization: `Bearer ${testManagementKey}`,
          })
        ).json(),
        "data",
      );
    const isRecorded = async (): Promise<boolean> => (await records()).length > 0;
    await until(isRecorded, { patienceMs: 60_000, what: "the request is recorded" });
    expect(await records()).toHaveLength(1);
    gate.open();
  });

  test("whole answers keep their status", async () => {
    const no = json(chatError("no"), { status: 500 });
    const [dialect] = dialects;
    if (dialect === undefined) throw new Error("there is no dialect");
    upstream.enqueue(no, no);
    expect((await send(dialect, { fields: { stream: false } })).status).toBe(502);
  });
});
