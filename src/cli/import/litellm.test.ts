import { expect, test } from "bun:test";
import { ImportPlan } from "./import-plan.ts";
import { LiteLlmImport } from "./litellm.ts";
import { SourceDocument } from "./source-document.ts";

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
