import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { testLlmKey, testManagementKey } from "../../../support/gateway.ts";
import { at } from "../../api/at.ts";
import { startToolStage, toolPriceUsd, upstreamDialects, type ToolStage } from "./tool-stage.ts";

let stage: ToolStage;
let client: OpenAI;
beforeAll(async () => {
  stage = await startToolStage();
  client = new OpenAI({ apiKey: testLlmKey, baseURL: stage.gateway.baseUrl, maxRetries: 0 });
});
afterAll(() => stage.stop());
beforeEach(() => stage.models.forget());

/** 11 tokens in at 1 USD, 7 out at 2 USD a million. */
const roundUsd = 0.000025;

type Tools = OpenAI.Chat.Completions.ChatCompletionTool[];
const docs = { type: "mcp", server_label: "docs", require_approval: "never" };
const tools = [docs] as unknown as Tools;
const own: Tools[number] = { type: "function", function: { name: "ask_user", parameters: {} } };
const callOf = (text: string) => ({ id: `call_${text}`, name: "search", arguments: { text } });
const user = (content: string) => ({ role: "user" as const, content });

describe.each(upstreamDialects)("chat over %s", (dialect) => {
  const model = `scripted/${dialect}`;

  test("a tool runs between two rounds", async () => {
    stage.models.say({ text: ["Wait."], calls: [callOf("bun")] }, { text: ["A runtime."] });
    const answer = await client.chat.completions.create({ model, messages: [user("?")], tools });
    expect(answer.choices[0]).toMatchObject({
      finish_reason: "stop",
      message: { content: "Wait.\n\nA runtime." },
    });
    expect(answer.choices[0]?.message.tool_calls).toBeUndefined();
    expect(at(answer, "usage.cost")).toBeCloseTo(2 * roundUsd + toolPriceUsd, 9);
    expect(at(answer, "service_metadata.tool_calls")).toMatchObject([
      { server_label: "docs", name: "search", status: "completed", cost: toolPriceUsd },
    ]);
  });

  test("the same streamed", async () => {
    stage.models.say(
      { text: ["Wait."], calls: [callOf("bun"), callOf("node")] },
      { text: ["Both ", "are."] },
    );
    const stream = await client.chat.completions.create({
      model,
      messages: [user("?")],
      tools,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await Array.fromAsync(stream);
    const deltas = chunks.flatMap(({ choices }) => choices);
    expect(deltas.map(({ delta }) => delta.content ?? "").join("")).toBe("Wait.\n\nBoth are.");
    expect(deltas.filter(({ delta }) => delta.role !== undefined)).toHaveLength(1);
    expect(deltas.some(({ delta }) => delta.tool_calls !== undefined)).toBe(false);
    expect(deltas.flatMap(({ finish_reason: reason }) => reason ?? [])).toEqual(["stop"]);
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    const usage = chunks.find((chunk) => chunk.usage)?.usage;
    expect(at(usage, "cost")).toBeCloseTo(2 * roundUsd + 2 * toolPriceUsd, 9);
  });
});

const model = "scripted/anthropic-messages";

test.each([false, true])("the client's own call ends the turn (streamed: %p)", async (streamed) => {
  stage.models.say(
    { calls: [callOf("first")] },
    { calls: [callOf("bun"), { id: `own_${streamed}`, name: "ask_user", arguments: { a: 1 } }] },
  );
  const request = { model, messages: [user("?")], tools: [...tools, own] };
  const { message, finish } = streamed
    ? await client.chat.completions
        .stream(request)
        .finalChatCompletion()
        .then(({ choices: [choice] }) => ({
          message: choice?.message,
          finish: choice?.finish_reason,
        }))
    : await client.chat.completions.create(request).then(({ choices: [choice] }) => ({
        message: choice?.message,
        finish: choice?.finish_reason,
      }));
  expect(finish).toBe("tool_calls");
  expect(message?.tool_calls).toMatchObject([
    { id: `own_${streamed}`, function: { name: "ask_user" } },
  ]);
  stage.models.say({ text: ["Done."] });
  await client.chat.completions.create({
    ...request,
    messages: [
      user("?"),
      { role: "assistant", content: null, tool_calls: message?.tool_calls ?? [] },
      { role: "tool", tool_call_id: `own_${streamed}`, content: "yes" },
    ],
  });
  const told = JSON.stringify(stage.models.requests.at(-1)?.json());
  for (const text of ["found first", "found bun", "yes"]) expect(told).toContain(text);
});

test("a call that needs approval is the client's, and is made once it is approved", async () => {
  const ask = [{ type: "mcp", server_label: "docs" }] as unknown as Tools;
  stage.models.say({ calls: [callOf("secret")] });
  const before = stage.tools.calls.length;
  const request = { model, messages: [user("?")], tools: ask };
  const asked = await client.chat.completions.create(request);
  expect(asked.choices[0]?.message.tool_calls).toMatchObject([{ function: { name: "search" } }]);
  expect(stage.tools.calls.length).toBe(before);
  stage.models.say({ text: ["Here."] });
  const answer = asked.choices[0]?.message;
  if (answer === undefined) throw new Error("there is no answer");
  const approved = await client.chat.completions.create({
    model,
    tools,
    messages: [user("?"), answer],
  });
  expect(approved.choices[0]?.message.content).toBe("Here.");
  expect(stage.tools.calls.length).toBe(before + 1);
});

test("a model that never stops ends at the bound", async () => {
  stage.models.say(...Array.from({ length: 20 }, (_, index) => ({ calls: [callOf(`${index}`)] })));
  const before = stage.tools.calls.length;
  const answer = await client.chat.completions.create({ model, messages: [user("?")], tools });
  expect(answer.choices[0]?.finish_reason).toBe("length");
  expect(stage.tools.calls.length - before).toBe(6);
  expect(at(answer, "usage.cost")).toBeCloseTo(6 * roundUsd + 6 * toolPriceUsd, 9);
});

test("a tool counts towards the customer that the request names", async () => {
  const manage = async (method: string, path: string, body?: object): Promise<unknown> =>
    (
      await fetch(stage.gateway.baseUrl + path, {
        method,
        headers: {
          authorization: `Bearer ${testManagementKey}`,
          "content-type": "application/json",
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
    ).json();
  const plan = { type: "postpaid", cap: 0.01, markup: 0.5 };
  await manage("POST", "/customers", { external_id: "buyer", plan });
  stage.models.say({ calls: [callOf("bun")] }, { text: ["A runtime."] });
  const asked = { model, messages: [user("?")], tools, user: "buyer", max_completion_tokens: 7 };
  await client.chat.completions.create(asked);
  const statement = await manage("GET", "/customers/buyer/statement");
  expect(at(statement, "total")).toMatchObject({
    requests: 3,
    cost: toolPriceUsd + 2 * roundUsd,
    price: 0.006075,
  });
  expect(at(statement, "data")).toContainEqual(
    expect.objectContaining({ model: "docs/search", requests: 1, cost: toolPriceUsd }),
  );
});
