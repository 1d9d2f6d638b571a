import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { callTool, rpc, sendMcp } from "./mcp-client.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true });
});
afterAll(() => gateway.stop());

const url = (): string => `${gateway.origin}/mcp`;
const ask = async (
  method: string,
  params: Record<string, unknown> = {},
  secret: string | undefined = testLlmKey,
): Promise<unknown> => (await sendMcp(url(), rpc(method, params), { secret })).body;

/** Every resource, page by page. */
async function allResources(): Promise<unknown[]> {
  const found: unknown[] = [];
  for (let cursor: unknown; ; ) {
    const body = await ask("resources/list", cursor === undefined ? {} : { cursor });
    found.push(...listAt(body, "result.resources"));
    cursor = at(body, "result.nextCursor");
    if (cursor === undefined) return found;
  }
}

const template = (place: string): string => `switchyard://${place}/{+id}`;
const complete = (uri: string, value: string): Promise<unknown> =>
  ask("completion/complete", {
    ref: { type: "ref/resource", uri },
    argument: { name: "id", value },
  });

test("lists the same models and concepts as the tools, page by page", async () => {
  const resources = await allResources();
  const uris = resources.map((each) => textAt(each, "uri"));
  expect(new Set(uris).size).toBe(uris.length);
  const idsBy = async (name: string): Promise<string[]> => {
    const outcome = await callTool(url(), { name, given: { limit: 1000 }, secret: testLlmKey });
    return listAt(outcome, "result.data").map((each) => textAt(each, "id"));
  };
  const wanted = [
    ...(await idsBy("list_models")).map((id) => `switchyard://models/${id}`),
    ...(await idsBy("list_okf_concepts")).map((id) => `switchyard://concepts/${id}`),
  ];
  expect(wanted.length).toBeGreaterThan(200);
  expect(uris).toEqual(wanted);
});

test("reads each resource as the REST endpoint and the tool return it", async () => {
  const [first] = listAt(await (await gateway.get("/models?presets=0")).json(), "data");
  const id = textAt(first, "id");
  const model = await ask("resources/read", { uri: `switchyard://models/${id}` });
  expect(at(model, "result.contents.0")).toMatchObject({
    uri: `switchyard://models/${id}`,
    mimeType: "application/json",
  });
  expect(JSON.parse(textAt(model, "result.contents.0.text"))).toEqual(
    await (await gateway.get(`/models/${id}`)).json(),
  );
  for (const concept of ["term/hold", "error/insufficient_balance", `model/${id}`]) {
    const read = await ask("resources/read", { uri: `switchyard://concepts/${concept}` });
    const outcome = await callTool(url(), {
      name: "get_okf_concept",
      given: { id: concept },
      secret: testLlmKey,
    });
    expect(at(read, "result.contents.0")).toMatchObject({
      mimeType: "text/markdown",
      text: textAt(outcome, "result.document"),
    });
  }
});

test.each([
  "switchyard://models/nobody/nothing",
  "switchyard://models/recommend",
  "switchyard://concepts/term/none",
  "switchyard://concepts/%zz",
  "switchyard://keys/key_1",
  "switchyard://constructor/name",
  "file:///etc/passwd",
  "https://example.com/",
  "switchyard://models/",
])("returns an error for the unknown resource %s", async (uri) => {
  const body = await ask("resources/read", { uri });
  expect(at(body, "error")).toMatchObject({
    code: -32602,
    data: { uri },
    message: expect.stringContaining("resources/list"),
  });
});

test.each([["-1"], ["x"], ["1.5"]])(
  "returns an error that names the invalid cursor %s",
  async (cursor) => {
    expect(at(await ask("resources/list", { cursor }), "error")).toMatchObject({
      code: -32602,
      message: expect.stringMatching(/^cursor: /),
    });
  },
);

test("templates complete ids with prefix matches first, at most 100", async () => {
  const templates = listAt(await ask("resources/templates/list"), "result.resourceTemplates");
  expect(templates.map((each) => at(each, "uriTemplate"))).toEqual([
    template("models"),
    template("concepts"),
  ]);
  const errors = await complete(template("concepts"), "ERROR/insuff");
  expect(at(errors, "result.completion")).toEqual({
    values: ["error/insufficient_balance", "error/insufficient_scope"],
    total: 2,
    hasMore: false,
  });
  const all = at(await complete(template("concepts"), ""), "result.completion");
  expect([listAt(all, "values").length, at(all, "hasMore")]).toEqual([100, true]);
  const [first, ...rest] = listAt(
    at(await complete(template("concepts"), "term"), "result.completion"),
    "values",
  );
  expect([String(first).startsWith("term/"), rest.length > 3]).toEqual([true, true]);
  expect(at(await complete("switchyard://none/{+id}", ""), "error.code")).toBe(-32602);
});

test("resources need a credential, and every credential reads the same", async () => {
  for (const method of [
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "completion/complete",
  ]) {
    expect(
      (await sendMcp(url(), rpc(method, { uri: "switchyard://concepts/term/hold" }))).status,
    ).toBe(401);
  }
  const uri = "switchyard://concepts/term/hold";
  expect(await ask("resources/read", { uri }, testManagementKey)).toEqual(
    await ask("resources/read", { uri }),
  );
});

const who = { name: "test", version: "1" };
const requestInit = { headers: { authorization: `Bearer ${testLlmKey}` } };

test("clients of both protocol versions list, read and complete", async () => {
  const older = new Client(who);
  // The package's own types disagree about a session id under exactOptionalPropertyTypes.
  await older.connect(
    new StreamableHTTPClientTransport(new URL(url()), { requestInit }) as Parameters<
      Client["connect"]
    >[0],
  );
  const newer = new ModernClient(who);
  await newer.connect(new ModernTransport(new URL(url()), { requestInit }));
  for (const client of [older, newer]) {
    expect((await client.listResources()).resources.length).toBeGreaterThan(0);
    expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(2);
    const read = await client.readResource({ uri: "switchyard://concepts/term/hold" });
    expect(textAt(read, "contents.0.text")).toContain('type: "term"');
    const completed = await client.complete({
      ref: { type: "ref/resource", uri: template("concepts") },
      argument: { name: "id", value: "term/h" },
    });
    expect(completed.completion.values).toContain("term/hold");
    await expect(client.readResource({ uri: "switchyard://models/none" })).rejects.toThrow(
      "There is no resource",
    );
    await client.close();
  }
});
