import type { Scope } from "../../../src/account/keys/scopes.ts";

/** A tool as the contract has it: the scope that it needs (null for none), and what it is given in tests. */
export interface ToolRow {
  scope: Scope | null;
  operators?: true;
  /** Arguments of a bare call, which changes nothing. */
  given?: Record<string, unknown>;
  /** Required arguments, each refused by its name where it is left out. */
  required?: readonly string[];
}

const operators = { scope: null, operators: true } as const;

/** Contract, last table of the endpoint reference; each tool of the registry has its row here. */
export const toolContract: Record<string, ToolRow> = {
  list_models: { scope: null },
  recommend_model: { scope: null, given: { task: "coding" }, required: ["task"] },
  get_usage: { scope: "read:analytics" },
  list_byok_keys: { scope: "read:byok" },
  list_okf_concepts: { scope: null },
  get_okf_concept: { scope: null, given: { id: "term/hold" }, required: ["id"] },
  get_credits: { scope: "read:credits" },
  list_keys: { scope: "read:llm-keys" },
  create_key: { scope: "write:llm-keys", given: {}, required: ["name"] },
  revoke_key: { scope: "write:llm-keys", given: { key_id: "key_of_nobody" }, required: ["key_id"] },
  list_presets: { scope: "read:presets" },
  get_system_status: { scope: null },
  admin_list_endpoints: operators,
  admin_request: { ...operators, given: { method: "GET", path: "/admin/plans" }, required: ["method", "path"] },
  admin_overview: operators,
  admin_usage_summary: operators,
  admin_north_star: operators,
  admin_list_users: operators,
  admin_get_user: { ...operators, given: { user_id: "usr_none" }, required: ["user_id"] },
  admin_errors_overview: operators,
  admin_smoke_test: operators,
  admin_upstream_health: operators,
  admin_grant_credits: {
    ...operators, given: { user_id: "usr_none", amount: 1, description: "test", confirm: false },
    required: ["user_id", "amount", "description", "confirm"],
  },
};
