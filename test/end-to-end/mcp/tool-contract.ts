import { pixelPng } from "../clients/support/pixel-png.ts";
import type { Scope } from "../../../src/identity/keys/scopes.ts";

/**
 * A tool as the contract has it: the scope that it needs (null for none), and what it is given in
 * tests.
 */
export interface ToolRow {
  scope: Scope | null;
  operators?: true;
  /** Arguments of a bare call, which changes nothing. */
  given?: Record<string, unknown>;
  /** The bare call is refused in band, since what it names is not there or not valid. */
  refused?: true;
  /** Required arguments, each refused by its name where it is left out. */
  required?: readonly string[];
}

const refusedWrite = { scope: "write:hub", refused: true } as const;
const operators = { scope: null, operators: true } as const;

/** Whether a management key with every scope may use a tool: inference needs another credential. */
export const isForManagementKeys = ({ scope }: ToolRow): boolean => scope !== "inference";

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
  list_aliases: { scope: "read:presets" },
  get_alias: { scope: "read:presets", refused: true, given: { name: "none" }, required: ["name"] },
  get_run: { scope: null, refused: true, given: { id: "run_none" } },
  list_customers: { scope: "read:llm-keys" },
  get_customer: {
    scope: "read:llm-keys",
    refused: true,
    given: { id: "none" },
    required: ["id"],
  },
  list_teams: { scope: "read:llm-keys" },
  get_team: { scope: "read:llm-keys", refused: true, given: { id: "none" }, required: ["id"] },
  get_system_status: { scope: null },
  list_conversations: { scope: "read:llm-keys" },
  publish_prompt: {
    ...refusedWrite,
    given: { title: "", description: "d", body: "b", category: "c" },
    required: ["title", "description", "body", "category"],
  },
  star_prompt: { ...refusedWrite, given: { prompt_id: "prm_none" }, required: ["prompt_id"] },
  fork_prompt: { ...refusedWrite, given: { prompt_id: "prm_none" }, required: ["prompt_id"] },
  publish_skill: { ...refusedWrite, given: { body: "no skill" }, required: ["body"] },
  list_hubs: { scope: "read:hub" },
  get_hub: { scope: "read:hub", refused: true, given: { slug: "none" }, required: ["slug"] },
  search_public_hubs: { scope: "read:hub" },
  create_hub: { ...refusedWrite, given: { name: "" }, required: ["name"] },
  hub_add_item: { ...refusedWrite, given: { hub: "none", body: "b" }, required: ["hub", "body"] },
  hub_import_skill: {
    ...refusedWrite,
    given: { hub: "none", source_ref: "none/none" },
    required: ["hub", "source_ref"],
  },
  generate_image: {
    scope: "inference",
    given: { model: "sandbox/image:free", prompt: "a cat", size: "512x512" },
    required: ["model", "prompt"],
  },
  edit_image: {
    scope: "inference",
    given: {
      model: "sandbox/image:free",
      prompt: "at night",
      images: [`data:image/png;base64,${pixelPng}`],
    },
    required: ["model", "prompt", "images"],
  },
  generate_speech: {
    scope: "inference",
    given: { model: "sandbox/speech:free", input: "Hello", response_format: "wav" },
    required: ["model", "input"],
  },
  transcribe_audio: {
    scope: "inference",
    given: { model: "sandbox/transcribe:free", audio: "AAAA" },
    required: ["model"],
  },
  admin_list_endpoints: operators,
  admin_request: {
    ...operators,
    given: { method: "GET", path: "/admin/plans" },
    required: ["method", "path"],
  },
  admin_overview: operators,
  admin_usage_summary: operators,
  admin_north_star: operators,
  admin_list_users: operators,
  admin_get_user: { ...operators, given: { user_id: "usr_none" }, required: ["user_id"] },
  admin_errors_overview: operators,
  admin_smoke_test: operators,
  admin_upstream_health: operators,
  admin_grant_credits: {
    ...operators,
    given: { user_id: "usr_none", amount: 1, description: "test", confirm: false },
    required: ["user_id", "amount", "description", "confirm"],
  },
};
