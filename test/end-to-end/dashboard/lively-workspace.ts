import type { AppSettings } from "../../../src/app/settings-of.ts";
import { provider } from "../../support/gateway.ts";
import type { FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { textAt } from "../api/at.ts";
import type { DashboardScene } from "./dashboard-scene.ts";

type Ask = DashboardScene["ask"];

const livelyKeys = ["Website", "Support desk", "Nightly reports", "Code review", "Mobile app"];

const displayNames: Readonly<Record<string, string>> = {
  "acme/large": "Acme Large",
  "acme/small": "Acme Small",
  "northwind/sonar-mini": "Sonar Mini",
  "contoso/coder": "Contoso Coder",
  "fabrikam/vision": "Fabrikam Vision",
};

/** The providers of a lively installation, with the models that its records name. */
export const livelyProviders = (serving: FaultUpstream): AppSettings["providers"] => {
  const model = (id: string, prompt: string, completion: string) => ({
    id,
    display_name: displayNames[id],
    upstream_model: id,
    context_length: 131_072,
    pricing: { prompt, completion },
  });
  const large = model("acme/large", "5.00", "15.00");
  const small = model("acme/small", "0.60", "2.40");
  const sonar = model("northwind/sonar-mini", "3.00", "9.00");
  const coder = model("contoso/coder", "4.00", "16.00");
  const provide = (id: string, name: string, models: readonly object[]) =>
    provider({
      ...{ id, name, models, base_url: serving.baseUrl, dialect: "openai-chat" },
      api_key: "upstream-secret",
    });
  return [
    provide("acme", "Acme Inference", [large, small]),
    provide("northwind", "Northwind AI", [sonar, large, small]),
    provide("contoso", "Contoso Models", [coder, sonar]),
    provide("fabrikam", "Fabrikam", [model("fabrikam/vision", "7.00", "21.00")]),
  ];
};

/** Gives a lively workspace what its people have set up: credits, budgets and presets. */
export async function furnish(ask: Ask, workspaceId: string): Promise<void> {
  const grant = { workspace_id: workspaceId, amount: 1_259.6, bucket: "topup" };
  await ask("operator", "POST", "/admin/grants", { ...grant, description: "Prepaid" });
  const budget = { period: "monthly", thresholds: [50, 80, 100] };
  const all = { name: "All spending", scope: "workspace", limit: 400, action: "alert" };
  await ask("owner", "POST", "/budgets", { ...budget, ...all });
  const coder = { name: "Coder", scope: "model", subject: "contoso/coder" };
  await ask("owner", "POST", "/budgets", { ...budget, ...coder, limit: 50, action: "block" });
  for (const [slug, name, model] of [
    ["support-reply", "Support reply", "acme/large"],
    ["code-review", "Code review", "contoso/coder"],
    ["summary", "Summary of a meeting", "northwind/sonar-mini"],
  ])
    await ask("developer", "POST", "/presets", {
      slug,
      name,
      config: { model, temperature: 0.2 },
    });
}

/** Makes the keys that ask in a lively workspace, and returns their ids. */
export async function makeLivelyKeys(ask: Ask): Promise<string[]> {
  const ids: string[] = [];
  for (const name of livelyKeys)
    ids.push(textAt(await ask("developer", "POST", "/keys", { name, limit: 200 }), "data.id"));
  return ids;
}
