import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client as McpClient, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import OpenAI from "openai";
import { Client } from "pg";
import { systemClock } from "../../../src/platform/kernel/clock.ts";
import { newId } from "../../../src/platform/kernel/ids.ts";
import { type ClickHouseServer, startClickHouse } from "../../support/clickhouse.ts";
import { acme, testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { migratedDatabase } from "../../support/postgres.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { startToolStage, type ToolStage } from "../mcp/gateway/tool-stage.ts";
import { OpenRouterClient } from "../clients/adapters/openrouter-sdk.ts";
import { at, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { type Ask, allEngines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

const secretWord = "Xylophonisch";
const messages = [{ role: "user", content: `Say ${secretWord}` }];

let clickhouse: ClickHouseServer;
let upstream: FaultUpstream;
beforeAll(async () => {
  clickhouse = await startClickHouse();
  upstream = await startFaultUpstream();
}, 240_000);
afterAll(async () => {
  upstream.stop();
  await clickhouse.stop();
});

/** Changes the privacy settings of the first workspace, and gives the answer's status and body. */
async function demand({ own }: TwoWorkspaces, body: unknown): Promise<[number, unknown]> {
  const answer = await own("PATCH", "/security/privacy", body);
  return [answer.status, await answer.json()];
}

/** Asks a model, and gives the id of the request once its answer was read to its end. */
async function idOf(answering: Promise<Response>): Promise<string> {
  const answer = await answering;
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(text);
  return `gen_${answer.headers.get("x-service-trace-id")}`;
}

const statusOf = async (ask: Ask, id: string): Promise<number> => {
  const answer = await ask("GET", `/generation/content?id=${id}`);
  await answer.text();
  return answer.status;
};

describe.each(allEngines)("stored prompts and completions on %s", (engine, freshUrl) => {
  const database = `contents_${engine.toLowerCase()}`;
  let workspaces: TwoWorkspaces;
  let withKey: Ask;
  beforeAll(async () => {
    workspaces = await startTwoWorkspaces(freshUrl, {
      archive: {
        url: clickhouse.urlOf(database),
        reads: "older",
        keepDays: undefined,
        contentDays: 7,
      },
      providers: [acme(upstream.baseUrl, { data_policy: { zdr: true, data_collection: "deny" } })],
    });
    withKey = workspaces.as(testLlmKey);
  }, 240_000);
  afterAll(() => workspaces.stop());

  const chat = (changes: Record<string, unknown> = {}): Promise<string> =>
    idOf(withKey("POST", "/chat/completions", chatRequest({ messages, ...changes })));
  const contents = () => workspaces.gateway().app.insights.archive?.contents;
  /** How many are in the archive, once all that wait are. */
  const archived = async (): Promise<number> => {
    await contents()?.round();
    const [row] = await clickhouse.ask(
      database,
      "select toUInt32(count()) as contents from switchyard_contents",
    );
    return Number(row?.["contents"]);
  };

  test("are stored only after the workspace enables it, for whole and streamed responses of every dialect", async () => {
    const privacy = await workspaces.own("GET", "/security/privacy");
    expect(await privacy.json()).toEqual({
      zdr: false,
      blocked_providers: [],
      keep_contents: false,
      content_days: 7,
    });
    const before = await chat();
    expect(await demand(workspaces, { keep_contents: true })).toEqual([
      200,
      { zdr: false, blocked_providers: [], keep_contents: true, content_days: 7 },
    ]);
    const turn = { model: "acme/large", max_tokens: 100, messages };
    const response = { model: "acme/large", input: messages };
    const asked = [
      await chat(),
      await chat({ stream: true }),
      await idOf(withKey("POST", "/messages", turn)),
      await idOf(withKey("POST", "/messages", { ...turn, stream: true })),
      await idOf(withKey("POST", "/responses", response)),
      await idOf(withKey("POST", "/responses", { ...response, stream: true })),
    ];
    expect(await archived()).toBe(asked.length);
    const rows = await clickhouse.ask(database, "select * from switchyard_contents");
    expect(
      rows.every(({ request, answer }) => /^v1\|/.test(`${request}`) && /^v1\|/.test(`${answer}`)),
    ).toBe(true);
    expect(JSON.stringify(rows)).not.toContain(secretWord);
    const { generations } = new OpenRouterClient({
      serverURL: workspaces.gateway().baseUrl,
      apiKey: testLlmKey,
      retryConfig: { strategy: "none" },
    });
    const said = new Set<unknown>();
    for (const id of asked) {
      const answer = await workspaces.own("GET", `/generation/content?id=${id}`);
      expect(answer.status).toBe(200);
      const { data } = (await answer.json()) as { data: unknown };
      expect(at(data, "id")).toBe(id);
      expect(JSON.stringify(at(data, "input"))).toContain(secretWord);
      expect([at(data, "input_cut"), at(data, "output_cut")]).toEqual([false, false]);
      expect(textAt(data, "output.raw")).toContain(id.slice("gen_".length));
      said.add(textAt(data, "output.completion"));
      const read = await generations.listGenerationContent({ id });
      expect(read.data).toMatchObject({ error: null, input: { messages } });
    }
    expect([...said].every((text) => text !== "")).toBe(true);
    expect(said.size).toBe(1);
    expect(await statusOf(workspaces.own, before)).toBe(404);
    expect(workspaces.gateway().logLines.join()).not.toContain(secretWord);
  }, 240_000);

  test("can be read by their own workspace and by the key that sent the request", async () => {
    await demand(workspaces, { keep_contents: true });
    const id = await chat();
    const created: unknown = await (
      await workspaces.own("POST", "/keys", { name: "another" })
    ).json();
    expect(await statusOf(withKey, id)).toBe(200);
    expect(await statusOf(workspaces.as(textAt(created, "key")), id)).toBe(404);
    expect(await statusOf(workspaces.stranger, id)).toBe(404);
    expect(await statusOf(workspaces.own, "gen_none")).toBe(404);
    await workspaces.restart();
    expect(await statusOf(workspaces.own, id)).toBe(200);
  }, 240_000);

  test("are cut when they are too long", async () => {
    await demand(workspaces, { keep_contents: true });
    const id = await chat({ messages: [{ role: "user", content: "\u{1F600}".repeat(150_000) }] });
    const content: unknown = await (
      await workspaces.own("GET", `/generation/content?id=${id}`)
    ).json();
    expect(at(content, "data.input_cut")).toBe(true);
    expect(textAt(content, "data.input.prompt").length).toBe(256 * 1024);
    expect(at(content, "data.output_cut")).toBe(false);
  }, 240_000);

  test("are never stored under zero data retention or when the caller forbids it", async () => {
    await demand(workspaces, { keep_contents: true });
    const created: unknown = await (
      await workspaces.own("POST", "/keys", { name: "private" })
    ).json();
    await workspaces.own("PATCH", `/security/keys/${textAt(created, "data.hash")}`, { zdr: true });
    const askPrivately = workspaces.as(textAt(created, "key"));
    for (const id of [
      await chat({ provider: { zdr: true } }),
      await chat({ provider: { zdr: true }, stream: true }),
      await chat({ store: false }),
      await idOf(askPrivately("POST", "/chat/completions", chatRequest({ messages }))),
    ])
      expect(await statusOf(workspaces.own, id)).toBe(404);
    const kept = await chat();
    expect(await demand(workspaces, { zdr: true })).toEqual([
      200,
      { zdr: true, blocked_providers: [], keep_contents: false, content_days: 7 },
    ]);
    const [status, refusal] = await demand(workspaces, { keep_contents: true });
    expect([status, at(refusal, "error.param")]).toEqual([409, "keep_contents"]);
    const unkept = await chat();
    await demand(workspaces, { zdr: false, keep_contents: true });
    expect([await statusOf(workspaces.own, kept), await statusOf(workspaces.own, unkept)]).toEqual([
      404, 404,
    ]);
  }, 240_000);

  test("are deleted when the workspace turns the setting off", async () => {
    await demand(workspaces, { keep_contents: true });
    const id = await chat();
    expect(await archived()).toBeGreaterThan(0);
    expect(await demand(workspaces, { keep_contents: false })).toEqual([
      200,
      { zdr: false, blocked_providers: [], keep_contents: false, content_days: 7 },
    ]);
    expect(await statusOf(workspaces.own, id)).toBe(404);
    await contents()?.erase();
    expect(await archived()).toBe(0);
  }, 240_000);
});

describe("arguments and results of MCP tools", () => {
  let stage: ToolStage;
  let openai: OpenAI;
  beforeAll(async () => {
    const url = clickhouse.urlOf("tool_calls");
    stage = await startToolStage({
      archive: { url, reads: "older", keepDays: undefined, contentDays: 7 },
    });
    openai = new OpenAI({ apiKey: testLlmKey, baseURL: stage.gateway.baseUrl, maxRetries: 0 });
  }, 240_000);
  afterAll(() => stage.stop());

  const as =
    (secret: string): Ask =>
    (method, path, body) =>
      fetch(stage.gateway.baseUrl + path, {
        method,
        headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
  const own = as(testManagementKey);

  async function keep(changes: Record<string, boolean>): Promise<void> {
    const answer = await own("PATCH", "/security/privacy", changes);
    expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)]);
  }

  async function createKey(): Promise<{ secret: string; hash: string }> {
    const created: unknown = await (await own("POST", "/keys", { name: "another" })).json();
    return { secret: textAt(created, "key"), hash: textAt(created, "data.hash") };
  }

  /** Calls a tool as an agent; gives the id of the call's record. */
  async function call(secret = testLlmKey): Promise<string> {
    const agent = new McpClient({ name: "agent", version: "1" });
    await agent.connect(
      new StreamableHTTPClientTransport(new URL(`${stage.gateway.origin}/mcp/docs`), {
        requestInit: { headers: { authorization: `Bearer ${secret}` } },
      }),
    );
    const result = await agent.callTool({ name: "search", arguments: { text: secretWord } });
    await agent.close();
    return String(result._meta?.["service/generation_id"]);
  }

  /** Has a model call the tool once. */
  async function askModel(path: "chat" | "responses", asked: object): Promise<void> {
    const model = "scripted/openai-chat";
    const tools = [{ type: "mcp", server_label: "docs", require_approval: "never" }] as never;
    const given = { text: secretWord };
    stage.models.say(
      { calls: [{ id: "call_search", name: "search", arguments: given }] },
      { text: ["Done."] },
    );
    if (path === "responses")
      await openai.responses.create({ model, input: "?", tools, ...asked, stream: false });
    else {
      const turns = [{ role: "user" as const, content: "?" }];
      await openai.chat.completions.create({
        model,
        messages: turns,
        tools,
        ...asked,
        stream: false,
      });
    }
  }

  /** The tool calls in the archive, once all contents that wait are there. */
  async function archived(): Promise<Record<string, string>[]> {
    await stage.gateway.app.insights.archive?.contents.round();
    return clickhouse.ask(
      "tool_calls",
      "select request, answer from switchyard_contents where surface = 'mcp'",
    );
  }

  test("are kept encrypted, for agents and for models, once the workspace keeps contents", async () => {
    const before = await call();
    await keep({ keep_contents: true });
    const id = await call();
    expect(await archived()).toHaveLength(1);
    expect(await statusOf(own, before)).toBe(404);
    const { data } = (await (await own("GET", `/generation/content?id=${id}`)).json()) as {
      data: unknown;
    };
    expect(data).toMatchObject({
      id,
      surface: "mcp",
      input: { server: "docs", name: "search", arguments: { text: secretWord } },
      output: { completion: `found ${secretWord}`, reasoning: null },
      input_cut: false,
      output_cut: false,
    });
    expect(JSON.parse(textAt(data, "output.raw"))).toMatchObject({
      content: [{ type: "text", text: `found ${secretWord}` }],
    });
    await askModel("chat", {});
    await askModel("responses", {});
    const rows = await archived();
    expect(rows).toHaveLength(3);
    expect(
      rows.every(({ request, answer }) => /^v1\|/.test(`${request}`) && /^v1\|/.test(`${answer}`)),
    ).toBe(true);
    expect(JSON.stringify(rows)).not.toContain(secretWord);
    expect(await statusOf(own, id)).toBe(200);
    expect(stage.gateway.logLines.join()).not.toContain(secretWord);
  }, 240_000);

  test("can be read by the key that called, and are kept of management keys too", async () => {
    await keep({ keep_contents: true });
    const id = await call();
    expect(await statusOf(as(testLlmKey), id)).toBe(200);
    expect(await statusOf(as((await createKey()).secret), id)).toBe(404);
    const administered = await call(testManagementKey);
    expect(await statusOf(own, administered)).toBe(200);
    expect(await statusOf(as(testLlmKey), administered)).toBe(404);
  }, 240_000);

  test("are not kept where the request, the key or the workspace forbids it", async () => {
    await keep({ keep_contents: true });
    const { secret, hash } = await createKey();
    await own("PATCH", `/security/keys/${hash}`, { zdr: true });
    const { length } = await archived();
    expect(await statusOf(own, await call(secret))).toBe(404);
    await askModel("chat", { store: false });
    await askModel("responses", { store: false });
    expect(await archived()).toHaveLength(length);
    const kept = await call();
    await keep({ keep_contents: false });
    expect(await statusOf(own, kept)).toBe(404);
    expect(await statusOf(own, await call())).toBe(404);
    await stage.gateway.app.insights.archive?.contents.erase();
    expect(await archived()).toEqual([]);
  }, 240_000);
});

test("prompts and completions of a closed workspace are deleted", async () => {
  const databaseUrl = await migratedDatabase();
  const archive = { url: clickhouse.urlOf("closed"), reads: "older", keepDays: undefined } as const;
  const workspaces = await startTwoWorkspaces(() => Promise.resolve(databaseUrl), {
    archive: { ...archive, contentDays: 7 },
  });
  const client = new Client(databaseUrl);
  try {
    await client.connect();
    const contents = workspaces.gateway().app.insights.archive?.contents;
    await workspaces.stranger("PATCH", "/security/privacy", { keep_contents: true });
    const createdAtMs = systemClock.nowMs() + 60_000;
    const [id, text] = [newId("gen", createdAtMs), { text: "{}", isCut: false }];
    const workspaceId = "ws_strange";
    const facts = { generationId: id, workspaceId, keyId: "key_none", createdAtMs };
    contents?.write({ ...facts, surface: "chat", streamed: false, request: text, answer: text });
    await contents?.round();
    await contents?.erase();
    expect(await statusOf(workspaces.stranger, id)).toBe(200);
    await client.query(`update workspaces set blocked_at_ms = 1 where id = '${workspaceId}'`);
    await contents?.erase();
    expect(await clickhouse.ask("closed", "select 1 from switchyard_contents")).toEqual([]);
  } finally {
    await client.end();
    await workspaces.stop();
  }
}, 240_000);

describe.each(allEngines)("without an archive, on %s", (_, freshUrl) => {
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    workspaces = await startTwoWorkspaces(freshUrl, {
      contentDays: 3,
      providers: [acme(upstream.baseUrl)],
    });
  }, 240_000);
  afterAll(() => workspaces.stop());

  test("prompts and answers are kept in the database, for their workspace, until it turns that off", async () => {
    const ask = (changes: object = {}): Promise<string> =>
      idOf(
        workspaces.as(testLlmKey)(
          "POST",
          "/chat/completions",
          chatRequest({ messages, ...changes }),
        ),
      );
    const before = await ask();
    expect(await demand(workspaces, { keep_contents: true })).toEqual([
      200,
      { zdr: false, blocked_providers: [], keep_contents: true, content_days: 3 },
    ]);
    const ids = [await ask(), await ask({ stream: true })];
    const unstored = await ask({ store: false });
    for (const id of ids) {
      const answer = await workspaces.own("GET", `/generation/content?id=${id}`);
      expect(await answer.json()).toMatchObject({
        data: { id, surface: "chat", input: { messages }, input_cut: false },
      });
    }
    const { contents } = workspaces.gateway().app.insights;
    await contents.round();
    expect(contents.figures).toMatchObject({ waiting: 2, archived: 0, dropped: 0 });
    expect(
      await Promise.all([
        ...[before, unstored].map((id) => statusOf(workspaces.own, id)),
        ...ids.map((id) => statusOf(workspaces.stranger, id)),
      ]),
    ).toEqual([404, 404, 404, 404]);
    await demand(workspaces, { keep_contents: false });
    expect(await statusOf(workspaces.own, ids[0]!)).toBe(404);
    await pollUntil(async () => {
      await contents.trim();
      return contents.figures.waiting === 0;
    });
  }, 240_000);
});
