import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import { type Fault, ResponsesUpstream } from "./support/responses-upstream.ts";
import { SocketClient } from "./support/socket-client.ts";

let upstream: ResponsesUpstream;
let gateway: TestGateway;
const clients: SocketClient[] = [];

/** A provider of one model, at one dollar for a million tokens in and two for as many out. */
const providerOf = (id: string, deviations: string[]) =>
  provider({
    id,
    base_url: upstream.baseUrl,
    dialect: "openai-responses",
    api_key: "upstream-secret",
    deviations,
    models: [
      {
        id: `${id}/model`,
        upstream_model: "up",
        context_length: 131_072,
        pricing: { prompt: "1", completion: "2" },
      },
    ],
  });

beforeAll(async () => {
  upstream = new ResponsesUpstream();
  gateway = await startGateway({
    providers: [providerOf("pinned", ["responses_socket"]), providerOf("plain", [])],
  });
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  upstream.finish();
  // The sockets to a provider end with their client's.
  while (upstream.socketCount > 0) await Bun.sleep(2);
  while (gateway.app.ledger.openHoldCount > 0) await Bun.sleep(2);
  upstream.reset();
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

async function open(): Promise<SocketClient> {
  const client = await SocketClient.open(gateway.origin);
  clients.push(client);
  return client;
}

const model = "pinned/model";
const base = { model, store: false };

/** Sends a frame that continues a response, and returns the response that it ends with. */
const create = (
  client: SocketClient,
  input: string,
  before?: Record<string, unknown>,
): Promise<Record<string, unknown>> =>
  client.create({ ...base, input, ...(before && { previous_response_id: before["id"] }) });

const costOf = ({ usage }: Record<string, unknown>): number => (usage as { cost: number }).cost;

/** What a response to so many items costs, by the price sheet. */
const priceOf = (items: number): number => (10 * items + 2 * 5) / 1e6;

/** Returns what the key has spent, in USD. */
async function spent(): Promise<number> {
  const found = await gateway.get("/key");
  return ((await found.json()) as { data: { usage: number } }).data.usage;
}

test("a client's socket is pinned to one of the provider, which is sent the new input alone", async () => {
  const client = await open();
  const before = await spent();
  const first = await create(client, "one");
  const second = await create(client, "two", first);
  const third = await create(client, "three", second);
  expect(upstream.handshakes).toBe(1);
  expect(upstream.requests).toEqual([]);
  const [whole, ...added] = upstream.frames;
  expect(whole).toMatchObject({ type: "response.create", model: "up", store: false, input: "one" });
  expect(whole).not.toHaveProperty("previous_response_id");
  expect(added.map(({ input }) => (input as unknown[]).length)).toEqual([1, 1]);
  expect(JSON.stringify(added[0]?.["input"])).toContain("two");
  expect(JSON.stringify(added[1]?.["input"])).not.toContain("two");
  expect(added[1]?.["previous_response_id"]).toMatch(/^resp_upstream_/);
  // The provider remembers what it was not sent, and counts it.
  expect([first, second, third].map(costOf)).toEqual([priceOf(1), priceOf(3), priceOf(5)]);
  expect(JSON.stringify(third["output"])).toContain("Answer to 5 items.");
  expect(JSON.stringify(client.events)).not.toContain('"resp_upstream_');
  expect((await spent()) - before).toBeCloseTo(priceOf(1) + priceOf(3) + priceOf(5), 12);
});

test("each client's socket has a provider's socket of its own", async () => {
  const [one, other] = [await open(), await open()];
  const first = await create(one, "one");
  await create(other, "elsewhere");
  await create(one, "two", first);
  expect(upstream.handshakes).toBe(2);
  expect(upstream.frames.map((frame) => "previous_response_id" in frame)).toEqual([
    false,
    false,
    true,
  ]);
  one.close();
  while (upstream.socketCount > 1) await Bun.sleep(2);
});

test("a frame that continues an earlier response is sent whole, on the same socket", async () => {
  const client = await open();
  const first = await create(client, "one");
  await create(client, "two", first);
  const again = await create(client, "another two", first);
  expect(upstream.handshakes).toBe(1);
  expect(upstream.frames[2]).not.toHaveProperty("previous_response_id");
  expect(upstream.frames[2]?.["input"]).toHaveLength(3);
  expect(costOf(again)).toBe(priceOf(3));
});

test.each<Fault>(["close", "not-found", "limit", "refusal"])(
  "%s before the first event sends the whole request over HTTP, and charges it once",
  async (fault) => {
    const client = await open();
    const first = await create(client, "one");
    const before = await spent();
    upstream.fault = fault;
    const second = await create(client, "two", first);
    expect(second).toMatchObject({ status: "completed" });
    expect(upstream.requests).toHaveLength(1);
    expect(upstream.requests[0]?.["input"]).toHaveLength(3);
    expect(costOf(second)).toBe(priceOf(3));
    expect((await spent()) - before).toBeCloseTo(priceOf(3), 12);
    const third = await create(client, "three", second);
    // A new socket knows nothing of what came before.
    expect(upstream.handshakes).toBe(2);
    expect(upstream.frames[2]?.["input"]).toHaveLength(5);
    await create(client, "four", third);
    expect(upstream.frames[3]?.["input"]).toHaveLength(1);
    expect(upstream.requests).toHaveLength(1);
  },
);

test("a socket that was closed between two frames is opened again, with the whole input", async () => {
  const client = await open();
  const first = await create(client, "one");
  upstream.closeAll();
  while (upstream.socketCount > 0) await Bun.sleep(2);
  const second = await create(client, "two", first);
  expect(costOf(second)).toBe(priceOf(3));
  // Whether the gateway has heard of the end by then decides between a new socket and HTTP.
  const sent = [...upstream.frames.slice(1), ...upstream.requests];
  expect(sent).toHaveLength(1);
  expect(sent[0]?.["input"]).toHaveLength(3);
});

test("a provider that refuses the socket is asked over HTTP, and for a socket only once", async () => {
  upstream.refuses = true;
  const client = await open();
  const first = await create(client, "one");
  const second = await create(client, "two", first);
  expect([first, second].map(costOf)).toEqual([priceOf(1), priceOf(3)]);
  expect(upstream.requests).toHaveLength(2);
  expect(upstream.handshakes).toBe(1);
});

test.each<Fault>(["close-within", "error-within"])(
  "%s ends the response as failed, and charges what was delivered, once",
  async (fault) => {
    const client = await open();
    const before = await spent();
    upstream.fault = fault;
    client.send({ type: "response.create", ...base, input: "one" });
    expect(await client.until("error")).toMatchObject({ code: "server_error" });
    await client.until("response.failed");
    while (gateway.app.ledger.openHoldCount > 0) await Bun.sleep(2);
    const charged = (await spent()) - before;
    expect(charged).toBeGreaterThan(0);
    expect(charged).toBeLessThan(priceOf(10));
    expect(upstream.requests).toEqual([]);
    expect(upstream.frames).toHaveLength(1);
    expect(await create(client, "two")).toMatchObject({ status: "completed" });
    expect(upstream.handshakes).toBe(2);
  },
);

test("another lane is served over HTTP while the socket answers", async () => {
  upstream.waits = true;
  const client = await open();
  client.send({ type: "response.create", ...base, input: "one", stream_id: "a" });
  await client.until("response.output_text.delta");
  client.send({ type: "response.create", ...base, input: "two", stream_id: "b" });
  expect(await client.until("response.completed")).toMatchObject({ stream_id: "b" });
  upstream.finish();
  expect(await client.until("response.completed")).toMatchObject({ stream_id: "a" });
  expect(upstream.requests).toHaveLength(1);
  expect(upstream.handshakes).toBe(1);
});

test("a client that leaves ends the response at the provider, and frees the rest of its hold", async () => {
  upstream.waits = true;
  const client = await open();
  client.send({ type: "response.create", ...base, input: "one" });
  await client.until("response.output_text.delta");
  client.close();
  while (upstream.socketCount > 0) await Bun.sleep(2);
  while (gateway.app.ledger.openHoldCount > 0) await Bun.sleep(2);
});

test("providers without the deviation are asked over HTTP alone", async () => {
  const client = await open();
  const first = await client.create({ model: "plain/model", store: false, input: "one" });
  await client.create({
    model: "plain/model",
    store: false,
    input: "two",
    previous_response_id: first["id"],
  });
  expect(upstream.handshakes).toBe(0);
  expect(upstream.requests).toHaveLength(2);
  expect(upstream.requests[1]?.["input"]).toHaveLength(3);
});
