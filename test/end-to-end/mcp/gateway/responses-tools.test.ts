import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { testLlmKey, testManagementKey } from "../../../support/gateway.ts";
import { at } from "../../api/at.ts";
import { SocketClient } from "../../sockets/support/socket-client.ts";
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

const docs = { type: "mcp", server_label: "docs", require_approval: "never" } as const;
const tools = [docs] as unknown as OpenAI.Responses.Tool[];

const callOf = (text: string, id = `call_${text}`) => ({ id, name: "search", arguments: { text } });

const types = (items: readonly { type: string }[]): string[] => items.map(({ type }) => type);

describe.each(upstreamDialects)("over %s", (dialect) => {
  const model = `scripted/${dialect}`;

  test("a tool runs between two rounds, and both are charged", async () => {
    stage.models.say({ calls: [callOf("bun")] }, { text: ["Bun is a runtime."] });
    const response = await client.responses.create({ model, input: "What is Bun?", tools });
    expect(response.output_text).toBe("Bun is a runtime.");
    expect(types(response.output)).toEqual(["mcp_list_tools", "mcp_call", "message"]);
    expect(response.output[0]).toMatchObject({
      server_label: "docs",
      tools: [{ name: "search" }, { name: "fails" }],
      error: null,
    });
    expect(response.output[1]).toMatchObject({
      server_label: "docs",
      name: "search",
      status: "completed",
      output: "found bun",
      error: null,
    });
    expect(JSON.parse(String(at(response.output[1], "arguments")))).toEqual({ text: "bun" });
    expect(at(response, "usage.cost")).toBeCloseTo(2 * roundUsd + toolPriceUsd, 9);
    expect(response.usage).toMatchObject({ input_tokens: 22, output_tokens: 14 });
    expect(response.tools).toEqual(tools);
  });

  test("the same streamed", async () => {
    stage.models.say({ calls: [callOf("bun"), callOf("node")] }, { text: ["Both ", "are."] });
    const stream = await client.responses.create({ model, input: "?", tools, stream: true });
    const events = await Array.fromAsync(stream);
    const names = events.map(({ type }) => type);
    expect(names.filter((name) => name.startsWith("response.mcp_list_tools"))).toEqual([
      "response.mcp_list_tools.in_progress",
      "response.mcp_list_tools.completed",
    ]);
    expect(names.filter((name) => name === "response.created")).toHaveLength(1);
    expect(names.filter((name) => name === "response.mcp_call.in_progress")).toHaveLength(2);
    expect(names.filter((name) => name === "response.mcp_call.completed")).toHaveLength(2);
    expect(names.filter((name) => name === "response.mcp_call_arguments.done")).toHaveLength(2);
    expect(names.some((name) => name.includes("function_call"))).toBe(false);
    expect(events.map((event) => at(event, "sequence_number"))).toEqual(events.map((_, i) => i));
    const end = events.find(({ type }) => type === "response.completed");
    const output = at(end, "response.output") as { id: string; type: string }[];
    expect(types(output)).toEqual(["mcp_list_tools", "mcp_call", "mcp_call", "message"]);
    for (const [index, item] of output.entries()) {
      const added = events.find(
        (event) => event.type === "response.output_item.added" && event.output_index === index,
      );
      const done = events.find(
        (event) => event.type === "response.output_item.done" && event.output_index === index,
      );
      expect(at(added, "item.id")).toBe(item.id);
      expect(at(done, "item")).toEqual(item as never);
    }
    expect(at(end, "response.usage.cost")).toBeCloseTo(2 * roundUsd + 2 * toolPriceUsd, 9);
  });

  test("a call waits for approval, is made once approved, and the conversation goes on", async () => {
    const ask = [{ ...docs, require_approval: undefined }] as unknown as OpenAI.Responses.Tool[];
    stage.models.say({ calls: [callOf("secret")] });
    const before = stage.tools.calls.length;
    const asked = await client.responses.create({ model, input: "?", tools: ask });
    expect(types(asked.output)).toEqual(["mcp_list_tools", "mcp_approval_request"]);
    expect(stage.tools.calls.length).toBe(before);
    const answer = (approve: boolean) => [
      {
        type: "mcp_approval_response" as const,
        approval_request_id: String(asked.output[1]?.id),
        approve,
      },
    ];
    stage.models.say({ text: ["Then not."] });
    const denied = await client.responses.create({
      model,
      input: answer(false),
      tools: ask,
      previous_response_id: asked.id,
    });
    expect(denied.output_text).toBe("Then not.");
    expect(stage.tools.calls.length).toBe(before);
    stage.models.say({ text: ["Here."] });
    const approved = await client.responses.create({
      model,
      input: answer(true),
      tools: ask,
      previous_response_id: asked.id,
    });
    expect(types(approved.output)).toEqual(["mcp_call", "message"]);
    expect(approved.output[0]).toMatchObject({
      approval_request_id: asked.output[1]?.id,
      output: "found secret",
    });
    stage.models.say({ text: ["Again."] });
    const later = await client.responses.create({
      model,
      input: "And?",
      tools: ask,
      previous_response_id: approved.id,
    });
    expect(types(later.output)).toEqual(["message"]);
    expect(stage.tools.calls.length).toBe(before + 1);
    expect(JSON.stringify(stage.models.requests.at(-1)?.json())).toContain("found secret");
  });
});

const model = "scripted/openai-chat";

test("the client's own function ends the turn, and the state is kept", async () => {
  const own = { type: "function", name: "ask_user", parameters: {}, strict: false } as const;
  stage.models.say({
    calls: [callOf("bun"), { id: "call_own", name: "ask_user", arguments: {} }],
  });
  const first = await client.responses.create({ model, input: "?", tools: [...tools, own] });
  expect(types(first.output)).toEqual(["mcp_list_tools", "mcp_call", "function_call"]);
  stage.models.say({ text: ["Done."] });
  const second = await client.responses.create({
    model,
    tools: [...tools, own],
    previous_response_id: first.id,
    input: [{ type: "function_call_output", call_id: "call_own", output: "yes" }],
  });
  expect(second.output_text).toBe("Done.");
  const told = JSON.stringify(stage.models.requests.at(-1)?.json());
  expect(told).toContain("found bun");
  expect(told).toContain("yes");
});

test("a tool that fails is told to the model, and the answer goes on", async () => {
  stage.models.say({ calls: [{ id: "c", name: "fails", arguments: {} }] }, { text: ["Sorry."] });
  const response = await client.responses.create({ model, input: "?", tools });
  expect(response.output[1]).toMatchObject({ type: "mcp_call", status: "failed", output: null });
  expect(at(response.output[1], "error")).toBeTruthy();
  expect(response.output_text).toBe("Sorry.");
});

test("a model that never stops ends at the bound, with everything charged once", async () => {
  stage.models.say(...Array.from({ length: 20 }, (_, index) => ({ calls: [callOf(`${index}`)] })));
  const before = stage.tools.calls.length;
  const response = await client.responses.create({ model, input: "?", tools });
  expect(response).toMatchObject({
    status: "incomplete",
    incomplete_details: { reason: "max_tool_calls" },
  });
  expect(stage.tools.calls.length - before).toBe(6);
  expect(at(response, "usage.cost")).toBeCloseTo(6 * roundUsd + 6 * toolPriceUsd, 9);
  stage.models.forget();
  stage.models.say({ calls: [callOf("1"), callOf("2")] }, { text: ["Enough."] });
  const bounded = await client.responses.create({ model, input: "?", tools, max_tool_calls: 1 });
  expect(bounded.output.map((item) => at(item, "status"))).toEqual([
    undefined as never,
    "completed",
    "failed",
    "completed",
  ]);
});

test("a key's limit stops the second paid call", async () => {
  const made = await fetch(`${stage.gateway.baseUrl}/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${testManagementKey}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "poor", limit: 0.006 }),
  });
  const apiKey = String(at(await made.json(), "key"));
  const poor = new OpenAI({ apiKey, baseURL: stage.gateway.baseUrl, maxRetries: 0 });
  stage.models.say({ calls: [callOf("1"), callOf("2")] }, { text: ["Half."] });
  const response = await poor.responses.create({
    model,
    input: "?",
    tools,
    max_output_tokens: 100,
  });
  const calls = response.output.filter(({ type }) => type === "mcp_call");
  expect(calls.map((call) => at(call, "status")).sort()).toEqual(["completed", "failed"]);
  expect(calls.find((call) => at(call, "status") === "failed")).toMatchObject({
    error: { type: "http_error", code: 402 },
  });
});

test("names, filters and addresses of servers are checked", async () => {
  const given = (tool: object) =>
    stage.gateway.post("/responses", { model, input: "?", tools: [tool] });
  expect(await (await given({ type: "mcp", server_label: "nope" })).json()).toMatchObject({
    error: { param: "tools[0].server_label" },
  });
  expect((await given({ type: "mcp", server_label: "x", require_approval: "maybe" })).status).toBe(
    400,
  );
  const refused = async (body: object) => {
    const answer = await stage.gateway.post("/responses", { model, input: "?", ...body });
    return [answer.status, at(await answer.json(), "error.param")];
  };
  const twice = [docs, { ...docs, server_url: stage.tools.url }];
  expect(await refused({ tools: twice })).toEqual([400, "tools[1].server_label" as never]);
  for (const choice of [{ server_label: "docs", name: "nothing" }, { server_label: "wiki" }])
    for (const stream of [false, true])
      expect(await refused({ tools, stream, tool_choice: { type: "mcp", ...choice } })).toEqual([
        400,
        "tool_choice" as never,
      ]);
  stage.models.say({ text: ["Hello."] });
  const filtered = await given({ ...docs, allowed_tools: ["search"] });
  expect(at(await filtered.json(), "output.0.tools")).toMatchObject([{ name: "search" }]);
  stage.models.say({ text: ["Hello."] });
  const private_ = await given({
    type: "mcp",
    server_label: "meta",
    server_url: "http://169.254.169.254/mcp",
    authorization: "very-secret",
  });
  const text = await private_.text();
  expect(text).toContain("private network");
  expect(text).not.toContain("very-secret");
  stage.models.say({ calls: [callOf("adhoc")] }, { text: ["Found."] });
  const adHoc = await given({
    type: "mcp",
    server_label: "adhoc",
    server_url: stage.tools.url,
    authorization: "token-1",
    require_approval: "never",
  });
  expect(at(await adHoc.json(), "output.1")).toMatchObject({ output: "found adhoc" });
  expect(stage.tools.requests.at(-1)?.headers.get("authorization")).toBe("Bearer token-1");
});

test("a response in the background runs the tools too", async () => {
  stage.models.say({ calls: [callOf("later")] }, { text: ["Found later."] });
  const queued = await client.responses.create({ model, input: "?", tools, background: true });
  const stream = await client.responses.retrieve(queued.id, { stream: true });
  const events = await Array.fromAsync(stream);
  expect(events.some(({ type }) => type === "response.completed")).toBe(true);
  const ended = await client.responses.retrieve(queued.id);
  expect(types(ended.output)).toEqual(["mcp_list_tools", "mcp_call", "message"]);
  expect(ended.output_text).toBe("Found later.");
});

test("a response over a socket runs the tools too", async () => {
  stage.models.say({ calls: [callOf("socket")] }, { text: ["Found it."] });
  const socket = await SocketClient.open(stage.gateway.origin);
  const model = `scripted/${upstreamDialects[0]}`;
  socket.send({ type: "response.create", model, input: "?", tools });
  let event = await socket.next();
  while (!event.type.startsWith("response.completed")) event = await socket.next();
  expect(types(at(event, "response.output") as { type: string }[])).toEqual([
    "mcp_list_tools",
    "mcp_call",
    "message",
  ]);
  socket.socket.close();
});

test("access to a server is sealed while a background response waits, and not shown", async () => {
  stage.models.say({ calls: [callOf("sealed")] }, { text: ["Found it."] });
  const url = stage.tools.url;
  const authorization = "a-token-that-no-one-may-read";
  const queued = await client.responses.create({
    model: `scripted/${upstreamDialects[0]}`,
    input: "?",
    background: true,
    tools: [
      {
        type: "mcp",
        server_label: "own",
        server_url: url,
        authorization,
        require_approval: "never",
      },
    ],
  });
  expect(JSON.stringify(queued)).not.toContain(authorization);
  const stream = await client.responses.retrieve(queued.id, { stream: true });
  const events = await Array.fromAsync(stream);
  expect(events.some(({ type }) => type === "response.completed")).toBe(true);
  expect(JSON.stringify(events)).not.toContain(authorization);
  expect(stage.tools.requests.at(-1)?.headers.get("authorization")).toBe(`Bearer ${authorization}`);
});
