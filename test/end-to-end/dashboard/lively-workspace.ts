import type { AppSettings } from "../../../src/app/settings-of.ts";
import { provider } from "../../support/gateway.ts";
import type { FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { textAt } from "../api/at.ts";
import type { DashboardScene } from "./dashboard-scene.ts";

type Ask = DashboardScene["ask"];

/** The keys of a lively workspace, each with the team that it belongs to. */
const livelyKeys = [
  ["Website", undefined],
  ["Support desk", "Support"],
  ["Nightly reports", "Research"],
  ["Code review", "Research"],
  ["Mobile app", undefined],
] as const;

const livelyTeams = [
  { name: "Support", limit: 250 },
  { name: "Research", limit: 120, allowed_models: ["contoso/coder", "acme/large", "acme/small"] },
  { name: "Website", limit: null },
] as const;

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

const aliases = [
  ["fast", "acme/small", "Short answers"],
  ["best", ["acme/large", "northwind/sonar-mini"], "The most careful one, with another behind it"],
  [
    "trial",
    [
      { model: "acme/large", weight: 9 },
      { model: "contoso/coder", weight: 1 },
    ],
    "A tenth tries the new one",
  ],
  [
    "reports",
    [
      { model: "contoso/coder", when: { tag: "nightly" } },
      { model: ["northwind/sonar-mini", "acme/large"] },
    ],
    null,
  ],
] as const;

const customers = [
  ["customer-017", "Harbour Books", { type: "postpaid", allowance: 5, cap: 200, markup: 0.25 }],
  ["customer-204", "Alpine Tours", { type: "prepaid", markup: 0.25 }],
  ["customer-391", "Mill & Daughters", { type: "free", allowance: 40 }],
  ["customer-402", "Lantern Films", { type: "free", allowance: 5 }],
] as const;

/** Adds names of its own for models, and its customers. */
async function furnishBuilding(ask: Ask): Promise<void> {
  for (const [name, target, description] of aliases)
    await ask("developer", "POST", "/aliases", { name, target, description });
  for (const [id, name, plan] of customers)
    await ask("owner", "POST", "/customers", { external_id: id, name, plan });
  await ask("owner", "POST", "/customers/customer-204/credits", { amount: 100 });
}

const prompts = [
  ["Polite refusal", "Says no to a customer without closing the door.", "Support", "acme/large"],
  [
    "Meeting minutes",
    "Decisions, who does what, and until when.",
    "Writing",
    "northwind/sonar-mini",
  ],
  ["Review of a change", "Risks first, then style.", "Engineering", "contoso/coder"],
] as const;
const skill = `---
name: release-notes
description: Writes release notes from a list of commits.
---

Group the commits by what users notice. Leave out what they do not.
`;
const serverTools = [
  { id: "documents", name: "Documents", price_per_call: "0.002" },
  { id: "tickets", name: "Tickets", price_per_call: "0" },
];

/** Adds what its people share, keys of their own at providers, and tools of MCP servers. */
async function furnishShelves(ask: Ask, toolsUrl: string): Promise<void> {
  for (const [title, description, category, model] of prompts)
    await ask("developer", "POST", "/prompts", {
      ...{ title, description, category, recommended_model: model },
      body: `${description} Answer in the language of {{customer}}.`,
      visibility: "workspace",
    });
  await ask("developer", "POST", "/skills", { body: skill, visibility: "workspace" });
  await ask("developer", "POST", "/hubs", {
    name: "Handbook",
    description: "How we write and review.",
    visibility: "workspace",
  });
  for (const [provider_id, label, enabled] of [
    ["fabrikam", "Pictures", true],
    ["contoso", "Old contract", false],
  ])
    await ask("owner", "POST", "/auth/byok", {
      ...{ provider_id, label, enabled },
      api_key: `key-of-${String(provider_id)}-0123456789`,
    });
  for (const server of serverTools)
    await ask("owner", "POST", "/mcp-servers", { ...server, url: toolsUrl });
  const { id } = Object(
    await ask("operator", "POST", "/admin/incidents", {
      title: "Slow answers of Fabrikam",
      text: "Pictures take twice as long as usual. We ask other providers where there are any.",
    }),
  ) as { id: string };
  await ask("operator", "PATCH", `/admin/incidents/${id}`, {
    text: "Fabrikam answers as usual again.",
    state: "resolved",
  });
}

/** Gives a lively workspace what its people have set up: credits, budgets, presets and more. */
export async function furnish(
  ask: Ask,
  { workspaceId, toolsUrl }: { workspaceId: string; toolsUrl: string },
): Promise<void> {
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
  await furnishBuilding(ask);
  await furnishShelves(ask, toolsUrl);
}

/**
 * Makes the keys that ask in a lively workspace beside its first one, and returns the ids of all
 * with the teams of those that have one.
 */
export async function makeLivelyKeys(
  ask: Ask,
  firstId: string,
): Promise<{ keyIds: string[]; teams: Map<string, string> }> {
  const teamIds = new Map<string, string>();
  for (const team of livelyTeams)
    teamIds.set(team.name, textAt(await ask("owner", "POST", "/teams", team), "id"));
  for (const email of ["developer@example.com", "member@example.com"])
    await ask("owner", "POST", `/teams/${teamIds.get("Research")}/members`, { email });
  const made = { keyIds: [firstId], teams: new Map<string, string>() };
  for (const [name, team] of livelyKeys) {
    const teamId = teamIds.get(team ?? "");
    const body = { name, limit: 200, ...(teamId !== undefined && { team_id: teamId }) };
    const id = textAt(await ask("developer", "POST", "/keys", body), "data.id");
    made.keyIds.push(id);
    if (teamId !== undefined) made.teams.set(id, teamId);
  }
  return made;
}
