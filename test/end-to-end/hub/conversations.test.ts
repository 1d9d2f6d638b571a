import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dayMs } from "../../../src/platform/kernel/clock.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { errorOf } from "../api/error-envelope-of.ts";
import { startPeopled, type PeopledGateway } from "../api/people-browser.ts";
import {
  allEngines,
  startTwoWorkspaces,
  type Ask,
  type TwoWorkspaces,
} from "../api/two-workspaces.ts";
import { callTool } from "../mcp/mcp-client.ts";
import { testManagementKey } from "../../support/gateway.ts";
import { idsOf, json } from "./hub-scene.ts";

const said = (content: string, role = "user"): Record<string, unknown> => ({ role, content });

describe.each(allEngines)("conversations on %s", (_, freshUrl) => {
  let workspaces: TwoWorkspaces;
  const clock = new FakeClock();
  beforeAll(async () => {
    workspaces = await startTwoWorkspaces(freshUrl, { sandbox: true }, { clock });
  }, 240_000);
  afterAll(() => workspaces.stop());
  const keep = async (text: string, ask: Ask = workspaces.own): Promise<string> =>
    textAt(await json(ask("POST", "/conversations", { messages: [said(text)] })), "id");

  test("a conversation is created, shown, listed, renamed, starred, continued and deleted", async () => {
    const body = {
      model: "acme/large",
      messages: [
        said("What is\na gateway?"),
        { ...said("A door.", "assistant"), model: "acme/large" },
      ],
    };
    const made = await json(workspaces.own("POST", "/conversations", body));
    const id = textAt(made, "id");
    expect(made).toMatchObject({
      id: expect.stringMatching(/^cnv_[0-9a-f]{32}$/),
      object: "conversation",
      title: "What is a gateway?",
      starred: false,
      source: "playground",
      model: "acme/large",
      message_count: 2,
      messages: [
        { role: "user", content: "What is\na gateway?", model: null, response_id: null },
        { role: "assistant", model: "acme/large" },
      ],
    });
    expect(await json(workspaces.own("GET", `/conversations/${id}`))).toEqual(made);
    const other = await keep("another");
    expect(await idsOf(workspaces.own, "/conversations")).toEqual([other, id]);
    await json(
      workspaces.own("POST", `/conversations/${id}/messages`, { messages: [said("And a hinge?")] }),
    );
    expect(await idsOf(workspaces.own, "/conversations?limit=1")).toEqual([id]);
    const changed = await json(
      workspaces.own("PATCH", `/conversations/${id}`, { title: "Doors", starred: true }),
    );
    expect(changed).toMatchObject({ title: "Doors", starred: true });
    expect(await idsOf(workspaces.own, "/conversations?starred=true")).toEqual([id]);
    for (const word of ["doors", "hinge", "gateway"])
      expect(await idsOf(workspaces.own, `/conversations?search=${word}`)).toEqual([id]);
    expect(await json(workspaces.own("DELETE", `/conversations/${id}`))).toEqual({
      deleted: true,
      id,
    });
    expect(await idsOf(workspaces.own, "/conversations?search=hinge")).toEqual([]);
    expect((await workspaces.own("GET", `/conversations/${id}`)).status).toBe(404);
  });

  test("another workspace cannot access a conversation", async () => {
    const id = await keep("mine");
    for (const [method, path, body] of [
      ["GET", "", undefined],
      ["PATCH", "", { title: "x" }],
      ["DELETE", "", undefined],
      ["POST", "/messages", { messages: [said("x")] }],
    ] as const) {
      expect([
        method,
        (await workspaces.stranger(method, `/conversations/${id}${path}`, body)).status,
      ]).toEqual([method, 404]);
    }
    expect(await idsOf(workspaces.stranger, "/conversations")).toEqual([]);
  });

  test("markup and control characters in messages are returned unchanged", async () => {
    const content = "<script>\u001b[2J</system>\u202e'; drop table conversations; --";
    const id = await keep(content);
    expect(await json(workspaces.own("GET", `/conversations/${id}`))).toMatchObject({
      messages: [{ content }],
    });
    expect(
      String(at(await json(workspaces.own("GET", `/conversations/${id}`)), "title")),
    ).not.toMatch(/[\p{Cc}\u202e]/u);
  });

  test("the workspace setting and zero data retention both disable storing", async () => {
    await json(workspaces.own("PATCH", "/conversations/settings", { keep: false }));
    expect(await json(workspaces.own("GET", "/conversations/settings"))).toEqual({
      object: "conversation_settings",
      keep: false,
    });
    const refused = (): Promise<Response> =>
      workspaces.own("POST", "/conversations", { messages: [said("x")] });
    expect(await errorOf(await refused())).toMatchObject({ status: 409 });
    expect(await keep("others keep theirs", workspaces.stranger)).toMatch(/^cnv_/);
    await json(workspaces.own("PATCH", "/conversations/settings", { keep: true }));
    await json(workspaces.own("PATCH", "/security/privacy", { zdr: true }));
    expect(await errorOf(await refused())).toMatchObject({ status: 409 });
    await json(workspaces.own("PATCH", "/security/privacy", { zdr: false }));
    expect((await refused()).status).toBe(200);
  });

  test("list_conversations returns the same as GET /conversations", async () => {
    await keep("for a tool");
    const outcome = await callTool(`${workspaces.gateway().origin}/mcp`, {
      name: "list_conversations",
      secret: testManagementKey,
    });
    expect(outcome).toEqual({ result: await json(workspaces.own("GET", "/conversations")) });
  });

  test("conversations older than the retention are deleted", async () => {
    const old = await keep("ancient words");
    clock.advance(31 * dayMs);
    const young = await keep("young words");
    await workspaces.gateway().app.purgeConversations();
    expect(await idsOf(workspaces.own, "/conversations")).toEqual([young]);
    expect(await idsOf(workspaces.own, "/conversations?search=ancient")).toEqual([]);
    expect((await workspaces.own("GET", `/conversations/${old}`)).status).toBe(404);
  });
});

describe("stored responses and people", () => {
  let people: PeopledGateway;
  beforeAll(async () => {
    people = await startPeopled(undefined, { sandbox: true });
  }, 240_000);
  afterAll(() => people.stop());

  test("chained responses appear as a conversation of the key's user until they are deleted", async () => {
    const { key } = Object(await people.owner.json("POST", "/keys", { name: "mine" }));
    const ask = async (method: string, path: string, body?: unknown): Promise<unknown> =>
      json(
        fetch(people.gateway().baseUrl + path, {
          method,
          headers: { authorization: `Bearer ${key}` },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        }),
      );
    const model = textAt(await ask("GET", "/models"), "data.0.id");
    const first = await ask("POST", "/responses", { model, input: "Tell me of zebras" });
    const second = await ask("POST", "/responses", {
      model,
      input: "And yaks",
      previous_response_id: at(first, "id"),
    });
    await ask("POST", "/responses", { model, input: "unkept", store: false });
    const found = listAt(await people.owner.json("GET", "/conversations"), "data");
    expect(found).toMatchObject([
      { title: "Tell me of zebras", source: "responses", message_count: 4 },
    ]);
    const id = textAt(found[0], "id");
    expect(
      listAt(await people.owner.json("GET", `/conversations/${id}`), "messages").map((each) =>
        at(each, "role"),
      ),
    ).toEqual(["user", "assistant", "user", "assistant"]);
    await ask("DELETE", `/responses/${textAt(second, "id")}`);
    expect(await people.owner.json("GET", "/conversations?search=yaks")).toMatchObject({
      data: [],
    });
    expect(await people.owner.json("GET", `/conversations/${id}`)).toMatchObject({
      message_count: 2,
    });
    await ask("DELETE", `/responses/${textAt(first, "id")}`);
    expect(await people.owner.json("GET", "/conversations")).toMatchObject({ data: [] });
  });

  test("members do not see each other's conversations, and only admins disable storing", async () => {
    const organization = await people.owner.json("POST", "/organizations", { name: "Acme" });
    const member = await people.invited(textAt(organization, "id"), {
      email: "member@example.com",
      role: "member",
    });
    const workspace_id = textAt(organization, "workspace_id");
    for (const browser of [people.owner, member])
      await browser.json("PATCH", "/session", { workspace_id });
    const id = textAt(
      await member.json("POST", "/conversations", { messages: [said("secret plan")] }),
      "id",
    );
    expect((await people.owner.api("GET", `/conversations/${id}`)).status).toBe(404);
    expect(await people.owner.json("GET", "/conversations")).toMatchObject({ data: [] });
    expect((await member.api("PATCH", "/conversations/settings", { keep: false })).status).toBe(
      403,
    );
    expect(
      (await people.owner.api("PATCH", "/conversations/settings", { keep: true })).status,
    ).toBe(200);
  });
});
