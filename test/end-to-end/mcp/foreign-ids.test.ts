import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testManagementKey } from "../../support/gateway.ts";
import { listAt, textAt } from "../api/at.ts";
import {
  engines,
  startTwoWorkspaces,
  strangersKey,
  type TwoWorkspaces,
} from "../api/two-workspaces.ts";
import { json, promptFields, skillDocument } from "../hub/hub-scene.ts";
import { callTool, type ToolOutcome } from "./mcp-client.ts";
import { toolContract } from "./tool-contract.ts";

/** Records of the first workspace, none of them public. */
const real = {
  keyId: "",
  keyHash: "",
  prompt: "",
  customer: "",
  team: "",
  hub: "private-tools",
  skill: "plane",
};
let workspaces: TwoWorkspaces;
describe.each(engines)("another workspace's records over MCP on %s", (_engine, freshUrl) => {
  beforeAll(async () => {
    workspaces = await startTwoWorkspaces(freshUrl);
    const { own, stranger } = workspaces;
    const key = await json(own("POST", "/keys", { name: "private key" }));
    Object.assign(real, { keyId: textAt(key, "data.id"), keyHash: textAt(key, "data.hash") });
    real.prompt = textAt(
      await json(own("POST", "/prompts", promptFields({ title: "Private prompt" }))),
      "id",
    );
    real.customer = textAt(
      await json(own("POST", "/customers", { external_id: "private-customer" })),
      "id",
    );
    real.team = textAt(await json(own("POST", "/teams", { name: "private-team" })), "id");
    await json(own("POST", "/hubs", { name: "Private tools", slug: real.hub }));
    await json(own("POST", "/skills", { body: skillDocument(real.skill), hub: real.hub }));
    await json(stranger("POST", "/hubs", { name: "Own", slug: "strangers" }));
  }, 240_000);
  afterAll(() => workspaces.stop());

  const call = (
    name: string,
    given: Record<string, unknown>,
    secret: string,
  ): Promise<ToolOutcome> =>
    callTool(`${workspaces.gateway().origin}/mcp`, { name, given, secret });

  /** Each tool that takes an id, with a real one of the other workspace. */
  const calls: Record<string, () => Record<string, unknown>[]> = {
    revoke_key: () => [{ key_id: real.keyId }, { key_id: real.keyHash }],
    star_prompt: () => [{ prompt_id: real.prompt }],
    fork_prompt: () => [{ prompt_id: real.prompt }],
    get_customer: () => [{ id: real.customer }, { id: "private-customer" }],
    get_team: () => [{ id: real.team }, { id: "private-team" }],
    get_hub: () => [{ slug: real.hub }],
    publish_skill: () => [{ body: skillDocument("foreign"), hub: real.hub }],
    hub_add_item: () => [{ hub: real.hub, body: "# Foreign" }],
    hub_import_skill: () => [
      { hub: real.hub, source_ref: "strangers/none" },
      { hub: "strangers", source_ref: `${real.hub}/${real.skill}` },
    ],
  };

  test("every tool with a record id has a row in this table", () => {
    // A concept's id names no record of a workspace.
    const naming = Object.entries(toolContract)
      .filter(
        ([name, { required = [], operators }]) =>
          operators !== true &&
          name !== "get_okf_concept" &&
          required.some((field) => /(?:^|_)(?:id|slug|hub|source_ref)$/.test(field)),
      )
      .map(([name]) => name);
    expect(Object.keys(calls).sort()).toEqual([...naming, "publish_skill"].sort());
  });

  test.each(Object.entries(calls))(
    "%s returns not found for an id of another workspace",
    async (name, given) => {
      for (const each of given()) {
        const refused = (await call(name, each, strangersKey)) as { refused?: string };
        expect([each, refused.refused]).toEqual([
          each,
          expect.stringMatching(/There is no|no item|not found/i),
        ]);
        expect(refused.refused).not.toContain("Private");
      }
    },
  );

  test("lists contain nothing of another workspace", async () => {
    const lists = [
      "list_keys",
      "list_hubs",
      "list_presets",
      "list_aliases",
      "list_byok_keys",
      "list_conversations",
      "search_public_hubs",
      "get_usage",
    ];
    for (const name of lists) {
      const seen = JSON.stringify(await call(name, {}, strangersKey));
      for (const text of [real.keyId, real.prompt, real.hub, "private key"])
        expect([name, seen.includes(text)]).toEqual([name, false]);
    }
  });

  test("the attempts changed nothing", async () => {
    expect(JSON.stringify(await call("list_keys", {}, testManagementKey))).toContain(real.keyId);
    expect(await call("get_hub", { slug: real.hub }, testManagementKey)).toMatchObject({
      result: { item_count: 1 },
    });
    const prompts = listAt(await json(workspaces.own("GET", "/prompts")), "data");
    expect(prompts).toHaveLength(1);
    expect(prompts[0]).toMatchObject({ stars: 0, forks: 0 });
  });
});
