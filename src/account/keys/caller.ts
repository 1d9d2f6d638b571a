import type { SessionCaller } from "../people/session-caller.ts";
import type { Workspace } from "../workspaces/workspace.ts";
import type { KeyConnection, LlmKey } from "./llm-key.ts";
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
  | { kind: "connection"; key: LlmKey; connection: KeyConnection; workspace: Workspace }
  | SessionCaller;

export type LlmKeyCaller = Extract<Caller, { kind: "llm-key" }>;
export type ManagementKeyCaller = Extract<Caller, { kind: "management-key" }>;
/** A connected app that administers a workspace with the scopes that a person granted. */
export type ConnectionCaller = Extract<Caller, { kind: "connection" }>;

/** A caller that administers a workspace: a management key, a connected app, or a person with a session. */
export type AccountCaller = ManagementKeyCaller | ConnectionCaller | SessionCaller;

/** The scopes that an administering caller holds. */
export function scopesHeld(caller: AccountCaller): readonly Scope[] {
  if (caller.kind === "session") return caller.scopes;
  return caller.kind === "connection" ? caller.connection.scopes : caller.key.scopes;
}

/** The creator of what an administering caller makes: the user, for a connected app the user who granted it, or the management key. */
export function creatorIdOf(caller: AccountCaller): string {
  if (caller.kind === "session") return caller.user.id;
  return caller.kind === "connection" ? caller.key.creatorUserId : caller.key.id;
}

/** A credential that can be found by its secret. */
export type Credential = LlmKeyCaller | ManagementKeyCaller;

const isBefore = (endMs: number | null, nowMs: number): boolean => endMs === null || endMs > nowMs;

const isLiveKey = ({ disabled, expiresAtMs }: LlmKey, nowMs: number): boolean =>
  !disabled && isBefore(expiresAtMs, nowMs);

/** Whether requests may be made with a credential at a wall time in milliseconds. A child ends with its parent. */
export function isLive(credential: Credential, nowMs: number): boolean {
  if (credential.workspace.blocked) return false;
  if (credential.kind === "management-key")
    return managementKeyStatus(credential.key, nowMs) === "active";
  const { key, parent } = credential;
  // A connection goes on when its access token ends, and so do the keys that it made.
  if (!isBefore(key.connection?.tokenExpiresAtMs ?? null, nowMs)) return false;
  return isLiveKey(key, nowMs) && (parent === undefined || isLiveKey(parent, nowMs));
}
