import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { acme, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { at, listAt, numberAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";

let upstream: FaultUpstream;
let gateway: TestGateway;
let client: OpenAI;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway({ providers: [acme(upstream.baseUrl)] });
  client = new OpenAI({ baseURL: gateway.baseUrl, apiKey: testLlmKey, maxRetries: 0 });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const summary = "Alice wants a café site; the colour is teal. — Ende";
const conversation = [
  { role: "user", content: "I am Alice. Make a café site." },
  { role: "assistant", content: "Which colour?" },
  { role: "user", content: "Teal." },
];
const messagesAsked = (): unknown[] => listAt(upstream.requests.at(-1)?.json(), "messages");
const summarise = (): void => upstream.enqueue((request) => chatAnswer(request, { text: summary }));
const compact = (body: Record<string, unknown>): Promise<Response> =>
  gateway.post("/responses/compact", { model: "acme/large", ...body });

test("the model summarises the conversation, charged and recorded like any other request", async () => {
  summarise();
  const response = await compact({ input: conversation, instructions: "Be brief.", stream: true });
  expect([response.status, response.headers.get("x-service-model")]).toEqual([200, "acme/large"]);
  const answer: unknown = await response.json();
  const id = textAt(answer, "id");
  expect(answer).toMatchObject({
    id: expect.stringMatching(/^resp_/),
    object: "response.compaction",
    created_at: expect.any(Number),
    output: [
      {
        type: "compaction",
        id: expect.stringMatching(/^cmp_/),
        encrypted_content: expect.any(String),
      },
    ],
    usage: {
      input_tokens: expect.any(Number),
      output_tokens: expect.any(Number),
      total_tokens: expect.any(Number),
    },
  });
  expect(numberAt(answer, "usage.cost")).toBeGreaterThan(0);
  const asked = messagesAsked();
  expect(asked.map((message) => at(message, "role"))).toEqual([
    "system",
    "user",
    "assistant",
    "user",
    "user",
  ]);
  expect(textAt(asked.at(-1), "content")).toStartWith("Summarise the conversation");
  const generation = await gateway.get(`/generation/${id}`);
  expect(at(await generation.json(), "data.total_cost")).toBeCloseTo(
    numberAt(answer, "usage.cost"),
    9,
  );
});

test("OpenAI's client can continue with the compacted output as it is", async () => {
  summarise();
  const compacted = await client.responses.compact({ model: "acme/large", input: "I am Alice." });
  const [item] = compacted.output;
  if (item?.type !== "compaction") throw new Error("no compaction item");
  await client.responses.create({
    model: "acme/large",
    input: [item, { role: "user", content: "Who am I?" }],
  });
  const [first, second] = messagesAsked();
  expect(textAt(first, "content")).toEndWith(summary);
  expect(at(second, "content")).toBe("Who am I?");
});

test("a stored conversation can be compacted, and a stored compaction continued", async () => {
  const first = await client.responses.create({ model: "acme/large", input: "I am Alice." });
  summarise();
  const compacted = await client.responses.compact({
    model: "acme/large",
    previous_response_id: first.id,
  });
  expect(messagesAsked().map((message) => at(message, "role"))).toEqual([
    "user",
    "assistant",
    "user",
  ]);
  const [item] = compacted.output;
  if (item?.type !== "compaction") throw new Error("no compaction item");
  const second = await client.responses.create({
    model: "acme/large",
    input: [item, { role: "user", content: "Hello" }],
  });
  await client.responses.create({
    model: "acme/large",
    input: "Again",
    previous_response_id: second.id,
  });
  expect(textAt(messagesAsked()[0], "content")).toEndWith(summary);
});

test.each([
  [{ model: undefined, input: "x" }, "model"],
  [{}, "input"],
  [{ input: [{ type: "message" }] }, "input[0].role"],
])("%j returns 400 that names the field", async (body, param) => {
  expect(await errorOf(await compact(body))).toMatchObject({
    status: 400,
    code: "bad_request",
    param,
  });
});

test("a damaged compaction item returns 400 that names its position", async () => {
  const refused = await gateway.post("/responses", {
    model: "acme/large",
    input: [
      { type: "compaction", encrypted_content: "swc1." },
      { role: "user", content: "x" },
    ],
  });
  expect(await errorOf(refused)).toMatchObject({
    status: 400,
    param: "input[0].encrypted_content",
  });
});
