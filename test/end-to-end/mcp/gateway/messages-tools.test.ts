import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { testLlmKey } from "../../../support/gateway.ts";
import { at } from "../../api/at.ts";
import { startToolStage, toolPriceUsd, upstreamDialects, type ToolStage } from "./tool-stage.ts";

let stage: ToolStage;
let client: Anthropic;
beforeAll(async () => {
  stage = await startToolStage();
  client = new Anthropic({ apiKey: testLlmKey, baseURL: stage.gateway.origin, maxRetries: 0 });
});
afterAll(() => stage.stop());
beforeEach(() => stage.models.forget());

/** 11 tokens in at 1 USD, 7 out at 2 USD a million. */
const roundUsd = 0.000025;

type Tools = Anthropic.Messages.ToolUnion[];
type Content = Anthropic.Messages.ContentBlockParam[];
const docs = { type: "mcp", server_label: "docs", require_approval: "never" };
const tools = [docs] as unknown as Tools;
const own: Tools[number] = { name: "ask_user", input_schema: { type: "object" } };
const callOf = (text: string) => ({ id: `call_${text}`, name: "search", arguments: { text } });
const user = (content: string) => ({ role: "user" as const, content });
const types = (blocks: readonly { type: string }[]) => blocks.map(({ type }) => type);

describe.each(upstreamDialects)("Messages over %s", (dialect) => {
  const model = `scripted/${dialect}`;
  const request = { model, max_tokens: 1000, messages: [user("?")], tools };

  test.each([false, true])("a tool runs between two rounds (streamed: %p)", async (streamed) => {
    stage.models.say({ text: ["Wait."], calls: [callOf("bun")] }, { text: ["A ", "runtime."] });
    const message = streamed
      ? await client.messages.stream(request).finalMessage()
      : await client.messages.create(request);
    expect(types(message.content)).toEqual(["text", "mcp_tool_use", "mcp_tool_result", "text"]);
    expect(message.content[1]).toMatchObject({ server_name: "docs", name: "search" });
    expect(message.content[2]).toMatchObject({
      is_error: false,
      content: [{ type: "text", text: "found bun" }],
    });
    expect(message.content[3]).toMatchObject({ text: "A runtime." });
    expect(message.stop_reason).toBe("end_turn");
    expect(message.usage.output_tokens).toBe(14);
    if (!streamed) expect(at(message, "usage.cost")).toBeCloseTo(2 * roundUsd + toolPriceUsd, 9);
    stage.models.say({ text: ["Still."] });
    await client.messages.create({
      ...request,
      messages: [
        user("?"),
        { role: "assistant", content: message.content as Content },
        user("Really?"),
      ],
    });
    expect(JSON.stringify(stage.models.requests.at(-1)?.json())).toContain("found bun");
  });
});

test("the client's own call ends the turn, and the state is in the answer", async () => {
  const request = {
    model: "scripted/openai-chat",
    max_tokens: 1000,
    messages: [user("?")],
    tools: [...tools, own],
  };
  stage.models.say({
    calls: [callOf("bun"), { id: "call_own", name: "ask_user", arguments: {} }],
  });
  const first = await client.messages.create(request);
  expect(types(first.content)).toEqual(["mcp_tool_use", "tool_use", "mcp_tool_result"]);
  expect(first.stop_reason).toBe("tool_use");
  stage.models.say({ text: ["Done."] });
  await client.messages.create({
    ...request,
    messages: [
      user("?"),
      { role: "assistant", content: first.content as Content },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "call_own", content: "yes" }],
      },
    ],
  });
  const told = JSON.stringify(stage.models.requests.at(-1)?.json());
  for (const text of ["found bun", "yes"]) expect(told).toContain(text);
});

test("a call that needs approval is the client's, and a loop ends at the bound", async () => {
  const request = { model: "scripted/openai-chat", max_tokens: 1000, messages: [user("?")] };
  stage.models.say({ calls: [callOf("secret")] });
  const asked = await client.messages.create({
    ...request,
    tools: [{ type: "mcp", server_label: "docs" }] as unknown as Tools,
  });
  expect(types(asked.content)).toEqual(["tool_use"]);
  stage.models.say(...Array.from({ length: 20 }, (_, index) => ({ calls: [callOf(`${index}`)] })));
  const looped = await client.messages.create({ ...request, tools });
  expect(looped.stop_reason).toBe("pause_turn");
  expect(at(looped, "usage.cost")).toBeCloseTo(6 * roundUsd + 6 * toolPriceUsd, 9);
});

describe("servers in the form of Anthropic's connector", () => {
  const model = "scripted/openai-chat";
  const server = () => ({
    type: "url" as const,
    url: stage.tools.url,
    name: "own",
    authorization_token: "token-of-own",
  });
  const toolset = { type: "mcp_toolset" as const, mcp_server_name: "own" };
  const ask = async (changes: object) =>
    await client.beta.messages.create({
      model,
      max_tokens: 1000,
      messages: [user("?")],
      betas: ["mcp-client-2025-11-20"],
      mcp_servers: [server()],
      tools: [toolset],
      ...changes,
    } as Anthropic.Beta.Messages.MessageCreateParamsNonStreaming);
  const offered = () => {
    const told = stage.models.requests.at(-1)?.json();
    return [0, 1].flatMap((index) => at(told, `tools.${index}.function.name`) ?? []);
  };

  test("are called for a model whose provider does not connect to them", async () => {
    stage.models.say({ calls: [callOf("bun")] }, { text: ["A runtime."] });
    const message = await ask({});
    expect(types(message.content)).toEqual(["mcp_tool_use", "mcp_tool_result", "text"]);
    expect(message.content[0]).toMatchObject({ server_name: "own", name: "search" });
    expect(message.content[1]).toMatchObject({ content: [{ text: "found bun" }] });
    expect(stage.tools.requests.at(-1)?.headers.get("authorization")).toBe("Bearer token-of-own");
    expect(JSON.stringify(stage.models.requests.at(-1)?.json())).not.toContain("token-of-own");
  });

  test.each([
    ["all but one", [{ ...toolset, configs: { fails: { enabled: false } } }], ["search"]],
    [
      "one alone",
      [{ ...toolset, default_config: { enabled: false }, configs: { fails: { enabled: true } } }],
      ["fails"],
    ],
  ])("are narrowed as the toolset says: %s", async (_, toolsets, names) => {
    stage.models.say({ text: ["Hello."] });
    await ask({ tools: toolsets });
    expect(offered()).toEqual(names as never);
  });

  test("are narrowed in the older form of the beta too", async () => {
    stage.models.say({ text: ["Hello."] });
    const tool_configuration = { enabled: true, allowed_tools: ["search"] };
    await ask({ tools: undefined, mcp_servers: [{ ...server(), tool_configuration }] });
    expect(offered()).toEqual(["search"] as never);
  });

  test.each([
    [
      "an address that is missing",
      () => ({ mcp_servers: [{ type: "url", name: "own" }] }),
      "mcp_servers[0].url",
    ],
    [
      "an address that is none",
      () => ({ mcp_servers: [{ ...server(), url: "url" }] }),
      "mcp_servers[0].url",
    ],
    [
      "a toolset of no server",
      () => ({ tools: [{ ...toolset, mcp_server_name: "x" }] }),
      "tools[0].mcp_server_name",
    ],
    [
      "a server without a toolset",
      () => ({ mcp_servers: [server(), { ...server(), name: "b" }] }),
      "mcp_servers",
    ],
  ])("are refused by name: %s", async (_, changes, member) => {
    await expect(ask(changes())).rejects.toThrow(member);
  });

  test("are passed on where the provider connects to them", async () => {
    stage.models.say({ text: ["Hello."] });
    await ask({ model: "scripted/anthropic-messages" });
    expect(at(stage.models.requests.at(-1)?.json(), "mcp_servers.0.name")).toBe("own" as never);
  });
});
