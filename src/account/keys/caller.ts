import type { Workspace } from "../workspaces/workspace.ts";
import type { LlmKey } from "./llm-key.ts";
import type { ManagementKey } from "./management-key.ts";

/** Who sent a request, as far as its credential proves. */
export type Caller =
  | { kind: "anonymous"; address: string }
  | { kind: "llm-key"; key: LlmKey; workspace: Workspace }
  | { kind: "management-key"; key: ManagementKey; workspace: Workspace };

export type LlmKeyCaller = Extract<Caller, { kind: "llm-key" }>;
export type ManagementKeyCaller = Extract<Caller, { kind: "management-key" }>;

/** A credential that can be found by its secret. */
export type Credential = LlmKeyCaller | ManagementKeyCaller;
