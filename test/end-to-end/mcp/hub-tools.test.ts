import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { at, listAt, textAt } from "../api/at.ts";
import {
  engines,
  startTwoWorkspaces,
  strangersKey,
  type TwoWorkspaces,
} from "../api/two-workspaces.ts";
import { json, promptFields, skillDocument } from "../hub/hub-scene.ts";
import { callTool, rpc, sendMcp } from "./mcp-client.ts";

let workspaces: TwoWorkspaces;
describe.each(engines)("hub tools on %s", (_engine, freshUrl) => {
  beforeAll(async () => {
    workspaces = await startTwoWorkspaces(freshUrl);
  }, 240_000);
  afterAll(() => workspaces.stop());

  const url = (): string => `${workspaces.gateway().origin}/mcp`;
  const refusedBy = async (
    name: string,
    given: Record<string, unknown>,
    secret = testManagementKey,
  ): Promise<string> => {
    const outcome = await callTool(url(), { name, given, secret });
    return "refused" in outcome ? outcome.refused : `it was not: ${JSON.stringify(outcome)}`;
  };
  async function call(
    name: string,
    given: Record<string, unknown> = {},
    secret = testManagementKey,
  ): Promise<unknown> {
    const outcome = await callTool(url(), { name, given, secret });
    if ("result" in outcome) return outcome.result;
    throw new Error(`${name} was refused: ${JSON.stringify(outcome)}`);
  }
  const ask = (method: string, path: string): Promise<unknown> =>
    json(workspaces.own(method, path));

  describe("a hub tool returns the same record as its REST endpoint", () => {
    test("publish_prompt, star_prompt and fork_prompt", async () => {
      const prompt = await call(
        "publish_prompt",
        promptFields({ tags: ["a"], recommended_model: "acme/large" }),
      );
      const id = textAt(prompt, "id");
      expect(prompt).toMatchObject({ object: "prompt", status: "pending_review", tags: ["a"] });
      expect(prompt).toEqual(await ask("GET", `/prompts/${id}`));
      expect(await call("star_prompt", { prompt_id: id })).toEqual(
        await ask("GET", `/prompts/${id}`),
      );
      const fork = await call("fork_prompt", { prompt_id: id, title: "Mine" });
      expect(fork).toMatchObject({ visibility: "private", forked_from: id, title: "Mine" });
      expect(fork).toEqual(await ask("GET", `/prompts/${textAt(fork, "id")}`));
      expect(await refusedBy("star_prompt", { prompt_id: id }, strangersKey)).toContain(
        "There is no prompt",
      );
      expect(await refusedBy("fork_prompt", { prompt_id: id }, strangersKey)).toContain(
        "There is no prompt",
      );
    });

    test("create_hub, hub_add_item, publish_skill, hub_import_skill, list_hubs, get_hub and search_public_hubs", async () => {
      const hub = await call("create_hub", {
        name: "Tools",
        visibility: "public",
        description: "Sharp ones",
      });
      expect(
        await call("hub_add_item", { hub: "tools", body: "# Adze", kind: "knowledge doc" }),
      ).toMatchObject({ object: "knowledge_document" });
      expect(await call("hub_add_item", { hub: "tools", body: "# Saw" })).toEqual(
        await ask("GET", "/hubs/tools/items/saw"),
      );
      const skill = await call("publish_skill", { body: skillDocument("plane"), hub: "tools" });
      expect(skill).toEqual(await ask("GET", `/skills/${textAt(skill, "id")}`));
      await call("create_hub", { name: "Copies" });
      const copy = await call("hub_import_skill", { hub: "copies", source_ref: "tools/plane" });
      expect(copy).toEqual(await ask("GET", "/hubs/copies/items/plane"));
      expect(await call("list_hubs")).toEqual(await ask("GET", "/hubs?limit=100"));
      expect(await call("get_hub", { slug: "tools" })).toEqual(await ask("GET", "/hubs/tools"));
      const found = await call("search_public_hubs", { search: "sharp" }, strangersKey);
      expect(listAt(found, "data").map((each) => at(each, "id"))).toEqual([at(hub, "id")]);
      expect(await call("search_public_hubs")).toEqual(
        await ask("GET", "/hubs?scope=public&limit=20"),
      );
      expect(await refusedBy("get_hub", { slug: "copies" }, strangersKey)).toContain(
        "There is no hub",
      );
      expect(await refusedBy("hub_add_item", { hub: "tools", body: "x" }, strangersKey)).toContain(
        "Only the workspace",
      );
    });
  });

  test("an invalid field is refused in the tool result, by name", async () => {
    expect(await refusedBy("publish_prompt", promptFields({ title: "a\nb" }))).toContain("title");
    expect(await refusedBy("publish_prompt", { title: "only" })).toContain("description");
    expect(await refusedBy("publish_skill", { body: "no front matter" })).toContain("body");
    expect(
      await refusedBy("hub_import_skill", {
        hub: "tools",
        source_ref: "https://127.0.0.1/SKILL.md",
      }),
    ).toContain("private network");
  });

  test("a repeated call with an idempotency key acts once", async () => {
    const given = { name: "Once", idempotency_key: "create-once" };
    expect(await call("create_hub", given)).toEqual(await call("create_hub", given));
    expect(await refusedBy("get_hub", { slug: "once-2" })).toContain("There is no hub");
  });

  test("MCP prompts are the workspace's non-private prompts, for callers with the scope", async () => {
    const body = "Review {{diff}}.\u001b[2J</system>";
    await call("publish_prompt", promptFields({ title: "Daily review", body }));
    await json(
      workspaces.own("POST", "/prompts", promptFields({ title: "Hidden", visibility: "private" })),
    );
    const names = async (secret: string): Promise<unknown[]> =>
      listAt((await sendMcp(url(), rpc("prompts/list"), { secret })).body, "result.prompts").map(
        (each) => at(each, "name"),
      );
    expect(await names(testManagementKey)).toContain("daily-review");
    expect(await names(testManagementKey)).not.toContain("hidden");
    expect(await names(strangersKey)).toEqual([]);
    expect(await names(testLlmKey)).toEqual([]);
    const get = async (secret: string): Promise<unknown> =>
      (await sendMcp(url(), rpc("prompts/get", { name: "daily-review" }), { secret })).body;
    const message = { role: "user", content: { type: "text", text: body } };
    expect(at(await get(testManagementKey), "result.messages")).toEqual([message]);
    for (const secret of [strangersKey, testLlmKey])
      expect(at(await get(secret), "error.code")).toBe(-32602);
  });
});
