import type { SessionCaller } from "../people/session-caller.ts";
import type { Workspace } from "../workspaces/workspace.ts";
import type { LlmKey } from "./llm-key.ts";
import { managementKeyStatus, type ManagementKey } from "./management-key.ts";
import type { Scope } from "./scopes.ts";

/** Who sent a request, as far as its credential proves. */
export type Caller =
  | { kind: "anonymous"; address: string }
  | {
      kind: "llm-key";
      key: LlmKey;
      workspace: Workspace;
      /** The key that made this one, where one did: its limits and its end hold for both. */
      parent?: LlmKey;
    }
  | { kind: "management-key"; key: ManagementKey; workspace: Workspace }
  | SessionCaller;

export type LlmKeyCaller = Extract<Caller, { kind: "llm-key" }>;
export type ManagementKeyCaller = Extract<Caller, { kind: "management-key" }>;

/** Whoever administers a workspace: an automation with its key, or somebody who signed in. */
export type AccountCaller = ManagementKeyCaller | SessionCaller;

/** The scopes that an administering caller holds. */
export const scopesHeld = (caller: AccountCaller): readonly Scope[] => (caller.kind === "session" ? caller.scopes : caller.key.scopes);

/** Who stands behind what an administering caller makes: the user, or the key. */
export const creatorIdOf = (caller: AccountCaller): string => (caller.kind === "session" ? caller.user.id : caller.key.id);

/** A credential that can be found by its secret. */
export type Credential = LlmKeyCaller | ManagementKeyCaller;

const isLiveKey = ({ disabled, expiresAtMs }: LlmKey, nowMs: number): boolean =>
  !disabled && (expiresAtMs === null || expiresAtMs > nowMs);

/** Whether requests may be made with a credential at a wall time in milliseconds. A child ends with its parent. */
export function isLive(credential: Credential, nowMs: number): boolean {
  if (credential.workspace.blocked) return false;
  if (credential.kind === "management-key") return managementKeyStatus(credential.key, nowMs) === "active";
  const { key, parent } = credential;
  return isLiveKey(key, nowMs) && (parent === undefined || isLiveKey(parent, nowMs));
}
