import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sql } from "kysely";
import { endpoints } from "../../../src/endpoints/index.ts";
import { isAudited } from "../../../src/access/audit/audit-log.ts";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { at, listAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { allEngines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

test("every route that needs a write scope is audited", () => {
  const writing = endpoints.filter(
    ({ access }) => access.managementScope?.startsWith("write:") === true,
  );
  const unaudited = writing.filter((endpoint) => endpoint.method !== "GET" && !isAudited(endpoint));
  // One row for each message would drown the log. The messages themselves say when they were added,
  // and they are kept as long as the conversation; its creation, renaming and deletion are in the
  // log, and so is every change of the workspace's setting (decision 0073).
  expect(unaudited.map(({ method, path }) => `${method} ${path}`)).toEqual([
    "POST /conversations/:id/messages",
  ]);
  expect(
    endpoints.filter((endpoint) => endpoint.counting === "by-handler" && isAudited(endpoint)),
  ).toEqual([]);
});

describe.each(allEngines)("the audit log on %s", (_, freshUrl) => {
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    workspaces = await startTwoWorkspaces(freshUrl, { trustProxy: true });
  }, 240_000);
  afterAll(() => workspaces.stop());

  const change = (
    method: string,
    path: string,
    body?: unknown,
    secret = testManagementKey,
  ): Promise<Response> =>
    fetch(workspaces.gateway().baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${secret}`, "x-forwarded-for": "203.0.113.7" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const page = async (query = ""): Promise<unknown> =>
    (await workspaces.own("GET", `/security/audit${query}`)).json();
  const newest = async (): Promise<unknown> => listAt(await page("?limit=1"), "data")[0];

  test("records the actor, the address, the target and the names of the fields sent", async () => {
    const created: unknown = await (
      await change("POST", "/keys", { name: "secret name", limit: 5 })
    ).json();
    const id = textAt(created, "data.id");
    const entry = await newest();
    expect(entry).toEqual({
      id: expect.stringMatching(/^aud_[0-9a-f]{32}$/),
      object: "audit_entry",
      at: expect.any(String),
      actor: {
        kind: "management-key",
        id: expect.stringMatching(/^mgk_/),
        label: expect.any(String),
      },
      address: "203.0.113.7",
      action: "POST /keys",
      words: "Create an LLM key",
      target: id,
      fields: ["name", "limit"],
      outcome: "done",
      status: 200,
    });
    expect(JSON.stringify(entry)).not.toContain("secret name");
    const hash = textAt(created, "data.hash");
    await change("PATCH", `/keys/${hash}`, { disabled: true });
    expect(await newest()).toMatchObject({
      action: "PATCH /keys/:hash",
      target: id,
      fields: ["disabled"],
      outcome: "done",
    });
    await change("DELETE", `/keys/${hash}`);
    expect(await newest()).toMatchObject({ action: "DELETE /keys/:hash", target: id, fields: [] });
    await change("POST", "/key/children", { name: "child" }, testLlmKey);
    expect(await newest()).toMatchObject({
      action: "POST /key/children",
      actor: { kind: "llm-key" },
    });
  });

  test("records that a conversation was created, renamed or deleted, without its messages", async () => {
    const said = { messages: [{ role: "user", content: "a private word" }] };
    const created: unknown = await (await change("POST", "/conversations", said)).json();
    const target = textAt(created, "id");
    const entry = await newest();
    expect(entry).toMatchObject({
      action: "POST /conversations",
      target,
      fields: ["messages"],
      outcome: "done",
    });
    expect(JSON.stringify(entry)).not.toContain("private");
    await change("POST", `/conversations/${target}/messages`, {
      messages: [{ role: "user", content: "another" }],
    });
    expect(await newest()).toEqual(entry);
    await change("PATCH", `/conversations/${target}`, { title: "renamed" });
    expect(await newest()).toMatchObject({
      action: "PATCH /conversations/:id",
      target,
      fields: ["title"],
    });
    await change("DELETE", `/conversations/${target}`);
    expect(await newest()).toMatchObject({ action: "DELETE /conversations/:id", target });
  });

  test("records refused changes, but no reads, invalid creations or requests with the wrong credential", async () => {
    await change("DELETE", "/presets/none");
    const refused = await newest();
    expect(refused).toMatchObject({
      action: "DELETE /presets/:slug",
      target: "none",
      outcome: "refused",
      status: 404,
    });
    await change("GET", "/keys");
    await change("POST", "/keys", {});
    await change("POST", "/keys", { name: "x" }, testLlmKey);
    expect(await newest()).toEqual(refused);
  });

  test("exports the same entries as CSV and rejects an unknown format", async () => {
    const response = await workspaces.own(
      "GET",
      "/security/audit?format=csv&action=DELETE%20/keys/:hash",
    );
    expect([
      response.headers.get("content-type"),
      response.headers.get("content-disposition"),
    ]).toEqual(["text/csv; charset=utf-8", 'attachment; filename="audit.csv"']);
    const [head, ...lines] = (await response.text()).trimEnd().split("\r\n");
    expect(head).toBe(
      "at,actor_kind,actor_id,actor,address,action,words,target,fields,outcome,status",
    );
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toContain("DELETE /keys/:hash,Delete an LLM key,");
    expect(await errorOf(await workspaces.own("GET", "/security/audit?format=xml"))).toMatchObject({
      status: 400,
      param: "format",
    });
  });

  test("pages entries without gaps and filters them by actor", async () => {
    for (const slug of ["one", "two", "three"])
      await change("POST", "/presets", { slug, name: slug, config: {} });
    const all = listAt(await page("?limit=200"), "data");
    const pages: unknown[] = [];
    let query = "?limit=2";
    for (;;) {
      const seen = await page(query);
      pages.push(...listAt(seen, "data"));
      if (at(seen, "has_more") === false) break;
      query = `?limit=2&cursor=${textAt(seen, "next_cursor")}`;
    }
    expect(pages).toEqual(all);
    const [
      {
        actor: { id },
      },
    ] = all as [{ actor: { id: string } }];
    const ofActor = listAt(await page(`?actor=${id}&limit=200`), "data");
    expect(ofActor).toEqual(all.filter((entry) => at(entry, "actor.id") === id));
    expect(await errorOf(await workspaces.own("GET", "/security/audit?limit=201"))).toMatchObject({
      status: 400,
      param: "limit",
    });
    expect(await errorOf(await workspaces.own("GET", "/security/audit?cursor=one"))).toMatchObject({
      status: 400,
      param: "cursor",
    });
  });

  test("filters entries by action, target and time", async () => {
    const entry = await newest();
    const [action, target, moment] = [
      textAt(entry, "action"),
      textAt(entry, "target"),
      textAt(entry, "at"),
    ];
    const found = listAt(
      await page(`?action=${encodeURIComponent(action)}&target=${target}`),
      "data",
    );
    expect(found).toContainEqual(entry);
    expect(
      found.filter((each) => at(each, "action") !== action || at(each, "target") !== target),
    ).toEqual([]);
    expect(listAt(await page("?action=POST%20/nothing"), "data")).toEqual([]);
    // Actions are words where no endpoint was called, and some targets have a slash or a space.
    const value = { base_url: "http://127.0.0.1:9/v1", models: [] };
    await change("POST", "/admin/configuration", { section: "providers", id: "nova", value });
    for (const [query, targets] of [
      ["target=providers/nova", ["providers/nova"]],
      ["action=sign-in:%20password", []],
      ["target=org_1%20inv_1", []],
    ] as const) {
      const listed: unknown = await page(`?${query}`);
      expect(listAt(listed, "data").map((each) => at(each, "target"))).toEqual([...targets]);
    }
    expect(listAt(await page(`?from=${moment}&limit=200`), "data")).toContainEqual(entry);
    expect(listAt(await page(`?to=${moment}&limit=200`), "data")).not.toContainEqual(entry);
    for (const [query, param] of [
      ["from=soon", "from"],
      ["from=2026-01-02&to=2026-01-01", "from"],
      ["action=", "action"],
    ]) {
      expect(await errorOf(await workspaces.own("GET", `/security/audit?${query}`))).toMatchObject({
        status: 400,
        param,
      });
    }
  });

  test("shows each workspace only its own entries", async () => {
    await workspaces.stranger("DELETE", "/presets/none");
    const seen = listAt(await (await workspaces.stranger("GET", "/security/audit")).json(), "data");
    expect(seen.map((entry) => at(entry, "action"))).toEqual(["DELETE /presets/:slug"]);
  });

  test("is append-only in the database and unchanged after a restart", async () => {
    const { database } = workspaces.gateway().app.storage;
    const before = await page("?limit=200");
    for (const table of ["audit_log", "audit_outcomes"]) {
      for (const statement of [`delete from ${table}`, `update ${table} set at_ms = 0`]) {
        const failure: unknown = await sql
          .raw(statement)
          .execute(database)
          .catch((error: unknown) => error);
        expect(String(failure)).toContain("append-only");
      }
    }
    await workspaces.restart();
    expect(await page("?limit=200")).toEqual(before);
  });
});
