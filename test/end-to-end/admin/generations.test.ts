import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme } from "../../support/gateway.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { errorOf } from "../api/error-envelope-of.ts";
import { allEngines } from "../api/two-workspaces.ts";
import { startOperatorScene, type OperatorScene } from "./operator-scene.ts";

const hello = (model: string) => ({ model, messages: [{ role: "user", content: "hi" }] });

describe.each(allEngines)("requests across workspaces for operators, on %s", (_, freshUrl) => {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { model } = (await request.json()) as { model: string };
      if (model === "broken") return new Response("broken", { status: 500 });
      return Response.json({
        id: "x",
        object: "chat.completion",
        created: 1,
        model,
        choices: [
          { index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" },
        ],
        usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
      });
    },
  });
  const model = (id: string, name: string) => ({
    id,
    upstream_model: name,
    context_length: 1_000,
    pricing: { prompt: "0.50", completion: "1.50" },
  });
  let scene: OperatorScene;
  let own: string;
  let other: string;
  let member: Awaited<ReturnType<OperatorScene["person"]>>;

  const idsOf = (list: unknown): string[] => listAt(list, "data").map((row) => textAt(row, "id"));
  const asked = (query: string): Promise<unknown> =>
    scene.owner.json("GET", `/admin/generations${query}`);

  beforeAll(async () => {
    scene = await startOperatorScene(await freshUrl(), {
      providers: [
        acme(`http://127.0.0.1:${server.port}/v1`, {
          models: [model("acme/large", "large"), model("acme/broken", "broken")],
        }),
      ],
    });
    member = await scene.person("mia");
    own = textAt(await scene.owner.json("GET", "/session"), "workspace.id");
    const mine = listAt(await member.browser.json("GET", "/workspaces"), "data");
    other = textAt(
      mine.find((each) => textAt(each, "id") !== own),
      "id",
    );
    await scene.owner.json("POST", "/admin/grants", { workspace_id: other, amount: 5 });
    await member.browser.json("PATCH", "/session", { workspace_id: other });
    const key = textAt(await member.browser.json("POST", "/keys", { name: "Mia's key" }), "key");
    // In turns, so that the newest first is no order of workspaces.
    for (const name of ["acme/large", "acme/broken", "acme/large"]) {
      await scene.gateway().post("/chat/completions", hello(name));
      await scene.withKey(key, "POST", "/chat/completions", hello(name));
    }
  }, 240_000);
  afterAll(async () => {
    await scene.stop();
    await server.stop(true);
  });

  test("lists the newest of every workspace first, with the workspace and key", async () => {
    const list = await asked("");
    const rows = listAt(list, "data");
    expect(rows.map((row) => [textAt(row, "workspace_id"), textAt(row, "model")])).toEqual(
      ["acme/large", "acme/broken", "acme/large"].flatMap((name) => [
        [other, name],
        [own, name],
      ]),
    );
    expect(idsOf(list)).toEqual(idsOf(list).toSorted().toReversed());
    expect(rows[0]).toMatchObject({ key_name: "Mia's key", object: "generation" });
    expect(at(rows[0], "workspace_name")).toBe(
      textAt(await scene.owner.json("GET", `/admin/workspaces/${other}`), "name"),
    );
    expect(list).toMatchObject({ object: "list", has_more: false, next_cursor: null });
  });

  test.each([1, 2, 4])("pages of %d have no gaps or repeats", async (limit) => {
    const seen: string[] = [];
    for (let cursor = ""; ; ) {
      const page = await asked(`?limit=${limit}${cursor}`);
      seen.push(...idsOf(page));
      if (at(page, "has_more") === false) break;
      cursor = `&cursor=${textAt(page, "next_cursor")}`;
    }
    expect(seen).toEqual(idsOf(await asked("")));
  });

  test("filters apply across workspaces and to selected ones", async () => {
    const all = listAt(await asked(""), "data");
    const among = (query: string, fits: (row: unknown) => boolean) =>
      asked(query).then((list) =>
        expect(idsOf(list)).toEqual(all.filter(fits).map((row) => textAt(row, "id"))),
      );
    await among("?status=failed", (row) => at(row, "status") === "failed");
    await among("?model=acme/broken", (row) => at(row, "model") === "acme/broken");
    await among(`?workspace_id=${other}`, (row) => at(row, "workspace_id") === other);
    await among(
      `?workspace_id=${own}&status=failed,completed&model=acme/broken`,
      (row) => at(row, "workspace_id") === own && at(row, "model") === "acme/broken",
    );
    await among(`?workspace_id=${own},${other}`, () => true);
    await among("?workspace_id=ws_none", () => false);
    await among("?status=failed&app=nobody", () => false);
    await among(`?id=${textAt(all[2], "id")}`, (row) => row === all[2]);
    expect(all.filter((row) => at(row, "status") === "failed")).toHaveLength(2);
  });

  test("explains a request of another workspace as its own members see it", async () => {
    const [id = ""] = idsOf(await asked(`?workspace_id=${other}`));
    const explained = await scene.owner.json("GET", `/admin/generations/${id}`);
    const {
      workspace_id: workspace,
      workspace_name: _name,
      ...rest
    } = explained as Record<string, unknown>;
    expect(workspace).toBe(other);
    expect(rest).toEqual(
      (await member.browser.json("GET", `/generation/${id}/explain`)) as Record<string, unknown>,
    );
    expect((await scene.owner.api("GET", `/generation/${id}/explain`)).status).toBe(404);
    expect((await scene.owner.api("GET", "/admin/generations/gen_none")).status).toBe(404);
  });

  test("is refused to non-operators and returns 400 that names an invalid parameter", async () => {
    const [id = ""] = idsOf(await asked(""));
    for (const path of ["/admin/generations", `/admin/generations/${id}`])
      expect((await member.browser.api("GET", path)).status).toBe(403);
    for (const [query, param] of [
      ["?user_id=usr_1", "user_id"],
      ["?status=odd", "status"],
      ["?workspace_id=", "workspace_id"],
      ["?limit=0", "limit"],
    ] as const)
      expect(
        await errorOf(await scene.owner.api("GET", `/admin/generations${query}`)),
      ).toMatchObject({ status: 400, param });
  });
});
