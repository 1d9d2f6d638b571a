import { expect, test } from "bun:test";
import { ImportPlan } from "../import-plan.ts";
import { LiteLlmImport } from "./litellm-import.ts";
import { SourceDocument } from "../source-document.ts";

test("an alias with the name of another model costs what the model behind it costs", () => {
  const plan = new ImportPlan(0);
  const source = new SourceDocument("config.yaml", {
    model_list: [
      {
        model_name: "gpt-4o",
        litellm_params: { model: "openai/gpt-4o", api_key: "os.environ/OPENAI_API_KEY" },
      },
    ],
    router_settings: { model_group_alias: { "gpt-4": "gpt-4o" } },
  });
  new LiteLlmImport(source, plan).run(undefined);
  const models = plan.providers.flatMap(({ models: list }) => list ?? []);
  expect(models.find(({ id }) => id === "openai/gpt-4")).toMatchObject({
    upstream_model: "gpt-4o",
    pricing: { prompt: "2.5", completion: "10" },
  });
});

const imported = (content: object, keys?: object) => {
  const plan = new ImportPlan(0);
  const source = new SourceDocument("config.yaml", content as Record<string, unknown>);
  const list =
    keys === undefined ? undefined : new SourceDocument("keys.json", JSON.stringify(keys));
  new LiteLlmImport(source, plan).run(list);
  return { plan, source, list };
};

test("entries of one name are one model of several providers", () => {
  const { plan } = imported({
    model_list: [
      { model_name: "smart", litellm_params: { model: "openai/gpt-4o" } },
      { model_name: "smart", litellm_params: { model: "anthropic/claude-haiku-4-5" } },
      { model_name: "smart", litellm_params: { model: "openai/gpt-4o-mini" } },
    ],
  });
  expect(plan.providers.map(({ id, models }) => [id, models?.[0]?.id])).toEqual([
    ["openai", "openai/smart"],
    ["anthropic", "openai/smart"],
    ["openai-2", "openai/smart"],
  ]);
  // Only the vendor's own id reads its usual variable by itself.
  expect(plan.providers[2]?.api_key).toBe("${OPENAI_API_KEY}");
});

test("a key keeps its routes, and of a budget for ever only what is left", () => {
  const { plan, list } = imported({ model_list: [] }, [
    { key_alias: "chat", allowed_routes: ["/v1/chat/completions", "/audio/speech"] },
    { key_alias: "admin", allowed_routes: ["management_routes"] },
    { key_alias: "all", allowed_routes: ["llm_api_routes"], max_budget: 5, spend: 4.6 },
    { key_alias: "spent", max_budget: 5, spend: 5.1 },
    { key_alias: "weekly", max_budget: 5, spend: 5.1, budget_duration: "7d" },
  ]);
  const [chat, admin, all, spent, weekly] = plan.keys;
  expect(chat?.["allowed_endpoints"]).toEqual(["/chat/completions"]);
  expect(admin).toEqual({ name: "admin", disabled: true });
  expect(all).toMatchObject({ limit: 0.4 });
  expect(all?.["allowed_endpoints"]).toContain("/messages");
  expect(spent).toMatchObject({ limit: 5, disabled: true });
  expect(weekly).toMatchObject({ limit: 5, limit_reset: "weekly" });
  const reported = list?.findings.map(({ path }) => path);
  for (const path of ["[0].allowed_routes", "[1].allowed_routes", "[2].spend", "[4].spend"])
    expect(reported).toContain(path);
});
