import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI, { BadRequestError, NotFoundError } from "openai";
import { acme, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import {
  chatCompletion,
  chatChunks,
  fixtureText,
} from "../../support/upstream/openai-chat-fixtures.ts";
import { end, head, json, sse, stream } from "../../support/upstream/steps.ts";
import { expectSoundBooks } from "../scenarios/support/expect-sound-books.ts";

const model = "acme/large";
let directory: string;
let upstream: FaultUpstream;
let gateway: TestGateway;

const start = (): Promise<TestGateway> =>
  startGateway({
    providers: [acme(upstream.baseUrl)],
    storageUrl: `sqlite:${join(directory, "lifecycle.db")}`,
  });
const client = (): OpenAI =>
  new OpenAI({ apiKey: testLlmKey, baseURL: `${gateway.origin}/v1`, maxRetries: 0 });
const sent = (ordinal: number): unknown =>
  (upstream.requests[ordinal]?.json() as { messages?: unknown } | undefined)?.messages;
/** What a promise is rejected with. */
const refusalOf = (answer: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(answer).then(
    () => "it was not refused",
    (error: unknown) => error,
  );
const chunks = chatChunks().map((chunk) => sse(chunk));

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "switchyard-lifecycle-"));
  upstream = await startFaultUpstream();
  gateway = await start();
});
afterEach(async () => {
  await expectSoundBooks(gateway);
  await gateway.stop();
  upstream.stop();
  rmSync(directory, { recursive: true, force: true });
});

test("a response can be retrieved, continued and deleted", async () => {
  const openai = client();
  upstream.script(json(chatCompletion({ text: "One." })));
  const first = await openai.responses.create({
    model,
    input: "First?",
    instructions: "Be brief.",
  });
  expect(await openai.responses.retrieve(first.id)).toMatchObject({
    id: first.id,
    output: first.output,
    usage: first.usage,
  });
  const second = await openai.responses.create({
    model,
    input: "Second?",
    previous_response_id: first.id,
  });
  expect(second.previous_response_id).toBe(first.id);
  // Instructions are those of one response and are not carried over (OpenAI's reference).
  expect(sent(1)).toEqual([
    { role: "user", content: "First?" },
    { role: "assistant", content: "One." },
    { role: "user", content: "Second?" },
  ]);
  const items = await Array.fromAsync(openai.responses.inputItems.list(second.id));
  expect(items).toMatchObject([
    { type: "message", role: "user", content: [{ type: "input_text", text: "Second?" }] },
  ]);
  await openai.responses.delete(first.id);
  expect(await refusalOf(openai.responses.retrieve(first.id))).toBeInstanceOf(NotFoundError);
  const third = openai.responses.create({
    model,
    input: "Third?",
    previous_response_id: second.id,
  });
  expect(await refusalOf(third)).toMatchObject({
    status: 404,
    code: "previous_response_not_found",
    param: "previous_response_id",
  });
});

test("a streamed response is stored as it ended, and one with store: false is not stored", async () => {
  const openai = client();
  const kept = await openai.responses.stream({ model, input: "Hi" }).finalResponse();
  const { service_metadata: _, ...record } = kept as typeof kept & { service_metadata?: unknown };
  expect(await openai.responses.retrieve(kept.id)).toMatchObject({
    status: "completed",
    output_text: fixtureText,
    usage: record.usage,
  });
  const passing = await openai.responses.create({ model, input: "Hi", store: false });
  expect(await refusalOf(openai.responses.retrieve(passing.id))).toBeInstanceOf(NotFoundError);
  expect(
    await refusalOf(
      openai.responses.create({ model, input: "Hi", store: false, background: true }),
    ),
  ).toBeInstanceOf(BadRequestError);
});

test("a stored response with tool calls continues with their results", async () => {
  const openai = client();
  upstream.script(
    json(chatCompletion({ toolCalls: [{ id: "call_1", name: "add", arguments: '{"a":1}' }] })),
  );
  const tools = [{ type: "function" as const, name: "add", parameters: {}, strict: null }];
  const first = await openai.responses.create({ model, input: "Add.", tools });
  upstream.script(json(chatCompletion({ text: "2." })));
  const call = first.output.find((item) => item.type === "function_call");
  await openai.responses.create({
    model,
    previous_response_id: first.id,
    input: [{ type: "function_call_output", call_id: call?.call_id ?? "", output: "2" }],
  });
  expect(sent(1)).toMatchObject([
    { role: "user" },
    {
      role: "assistant",
      tool_calls: [{ id: "call_1", function: { name: "add", arguments: '{"a":1}' } }],
    },
    { role: "tool", tool_call_id: "call_1", content: "2" },
  ]);
});

test("a background response is queued, followed from any event and charged once", async () => {
  const openai = client();
  const gate = upstream.gate();
  upstream.script([head(), ...chunks.slice(0, 2), gate, ...chunks.slice(2), sse("[DONE]"), end()]);
  const queued = await openai.responses.create({ model, input: "Hi", background: true });
  expect(queued).toMatchObject({ status: "queued", background: true, output: [] });
  await gate.reached;
  const following = Array.fromAsync(
    await openai.responses.retrieve(queued.id, { stream: true, starting_after: 1 }),
  );
  expect((await openai.responses.retrieve(queued.id)).status).toBe("in_progress");
  gate.open();
  const events = await following;
  expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index + 2));
  expect(events.map((event) => String(event.type)).slice(-2)).toEqual([
    "response.completed",
    "response.service.metadata",
  ]);
  const ended = await openai.responses.retrieve(queued.id);
  expect(ended).toMatchObject({
    status: "completed",
    output_text: fixtureText,
    usage: { cost: 0.000016 },
  });
  // It is as old as its request, whenever its provider says that it began.
  const told = events.flatMap((event) => ("response" in event ? [event.response.created_at] : []));
  expect([ended.created_at, ...told]).toEqual([ended, ...told].map(() => queued.created_at));
});

test("a background response can be cancelled, which aborts the provider request", async () => {
  const openai = client();
  const gate = upstream.gate();
  upstream.script([head(), ...chunks.slice(0, 2), gate]);
  const stream = await openai.responses.create({
    model,
    input: "Hi",
    background: true,
    stream: true,
  });
  const iterator = stream[Symbol.asyncIterator]();
  const created = await iterator.next();
  const id = (created.value as { response: { id: string } }).response.id;
  await gate.reached;
  expect((await openai.responses.cancel(id)).status).toBe("cancelled");
  await upstream.requests[0]?.aborted;
  expect((await openai.responses.cancel(id)).status).toBe("cancelled");
});

test("a background response interrupted by a stop begins again at the next start", async () => {
  const gate = upstream.gate();
  upstream.enqueue([head(), ...chunks.slice(0, 2), gate], stream(chunks));
  const queued = await client().responses.create({ model, input: "Hi", background: true });
  await gate.reached;
  await gateway.stop();
  gateway = await start();
  const events = await Array.fromAsync(
    await client().responses.retrieve(queued.id, { stream: true }),
  );
  expect(events.map((event) => event.sequence_number)).toEqual([...events.keys()]);
  expect(await client().responses.retrieve(queued.id)).toMatchObject({
    id: queued.id,
    status: "completed",
    output_text: fixtureText,
  });
});

test("a request that no provider can serve is refused before it is queued", async () => {
  const refused = client().responses.create({
    model: "nobody/nothing",
    input: "Hi",
    background: true,
  });
  expect(await refusalOf(refused)).toBeInstanceOf(NotFoundError);
});
