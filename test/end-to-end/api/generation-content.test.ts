import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client } from "pg";
import { systemClock } from "../../../src/platform/kernel/clock.ts";
import { newId } from "../../../src/platform/kernel/ids.ts";
import { type ClickHouseServer, startClickHouse } from "../../support/clickhouse.ts";
import { acme, testLlmKey } from "../../support/gateway.ts";
import { migratedDatabase } from "../../support/postgres.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
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

test("a gateway without an archive returns 409 for keep_contents", async () => {
  const workspaces = await startTwoWorkspaces(() => Promise.resolve(undefined));
  try {
    const [status, refusal] = await demand(workspaces, { keep_contents: true });
    expect([status, at(refusal, "error.param")]).toEqual([409, "keep_contents"]);
    expect(textAt(refusal, "error.message")).toContain("archive.url");
    expect(await statusOf(workspaces.own, `gen_${"0".repeat(32)}`)).toBe(404);
  } finally {
    await workspaces.stop();
  }
}, 240_000);
