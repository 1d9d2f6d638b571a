import type { Scope } from "../../../src/account/keys/scopes.ts";

/** A tool as the contract has it: the scope that it needs (null for none), and what it is given in tests. */
export interface ToolRow {
  scope: Scope | null;
  operators?: true;
  /** Arguments of a bare call. */
  given?: Record<string, unknown>;
}

/** Contract, last table of the endpoint reference; each tool of the registry has its row here. */
export const toolContract: Record<string, ToolRow> = {
  list_keys: { scope: "read:llm-keys" },
  get_credits: { scope: "read:credits" },
  get_system_status: { scope: null },
};
