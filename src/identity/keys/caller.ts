import { GatewayError } from "../../platform/kernel/errors.ts";
import type { SessionCaller } from "../people/sessions.ts";
import type { Workspace } from "../workspaces/workspace-store.ts";
import { limitWindowHours, type KeyConnection, type LlmKey } from "./llm-key-store.ts";
import { managementKeyStatus, type ManagementKey } from "./management-keys.ts";
import type { Scope } from "./scopes.ts";

/** Who sent a request without a credential. */
export interface AnonymousCaller {
  kind: "anonymous";
  address: string;
}

/** Who sent a request, as far as its credential proves. */
export type Caller =
  | AnonymousCaller
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

/** A caller with a credential. */
export type KnownCaller = Exclude<Caller, AnonymousCaller>;

/** A caller with an LLM key, which may use models. */
export type LlmKeyCaller = Extract<Caller, { kind: "llm-key" }>;
/** A caller with a management key, which administers its workspace within its scopes. */
export type ManagementKeyCaller = Extract<Caller, { kind: "management-key" }>;
/** A connected app that administers a workspace with the scopes that a person granted. */
export type ConnectionCaller = Extract<Caller, { kind: "connection" }>;

/**
 * A caller that administers a workspace: a management key, a connected app, or a person with a
 * session.
 */
export type AccountCaller = ManagementKeyCaller | ConnectionCaller | SessionCaller;

/** The scopes that an administering caller holds. */
export function scopesHeld(caller: AccountCaller): readonly Scope[] {
  if (caller.kind === "session") return caller.scopes;
  return caller.kind === "connection" ? caller.connection.scopes : caller.key.scopes;
}

/**
 * The creator of what an administering caller makes: the user, for a connected app the user who
 * granted it, or the management key.
 */
export function creatorIdOf(caller: AccountCaller): string {
  if (caller.kind === "session") return caller.user.id;
  return caller.kind === "connection" ? caller.key.creatorUserId : caller.key.id;
}

/**
 * Returns a caller as routing looks at it. One that administers a workspace counts as a key without
 * limits of its own: what the workspace demands and can pay holds, and nothing is charged to it.
 */
export function routedCaller(caller: KnownCaller): LlmKeyCaller {
  if (caller.kind === "llm-key") return caller;
  const { workspace } = caller;
  return {
    kind: "llm-key",
    workspace,
    key: {
      id: caller.kind === "session" ? caller.user.id : caller.key.id,
      hash: "",
      workspaceId: workspace.id,
      name: "",
      label: "",
      createdAtMs: 0,
      updatedAtMs: null,
      expiresAtMs: null,
      disabled: false,
      limitNanoUsd: null,
      limitReset: null,
      includeByokInLimit: false,
      rateLimitPerMinute: null,
      tokensPerMinute: null,
      allowedModels: null,
      allowedEndpoints: null,
      creatorUserId: creatorIdOf(caller),
    },
  };
}

/** A credential that can be found by its secret. */
export type Credential = LlmKeyCaller | ManagementKeyCaller;

const isBefore = (endMs: number | null, nowMs: number): boolean => endMs === null || endMs > nowMs;

const isLiveKey = ({ disabled, expiresAtMs }: LlmKey, nowMs: number): boolean =>
  !disabled && isBefore(expiresAtMs, nowMs);

/**
 * Whether requests may be made with a credential at a wall time in milliseconds. A child ends with
 * its parent.
 */
export function isLive(credential: Credential, nowMs: number): boolean {
  if (credential.workspace.blocked) return false;
  if (credential.kind === "management-key")
    return managementKeyStatus(credential.key, nowMs) === "active";
  const { key, parent } = credential;
  // A connection goes on when its access token ends, and so do the keys that it made.
  if (!isBefore(key.connection?.tokenExpiresAtMs ?? null, nowMs)) return false;
  return isLiveKey(key, nowMs) && (parent === undefined || isLiveKey(parent, nowMs));
}

/** The limits of a key, as charges count against them. */
interface KeyLimits {
  keyId: string;
  keyLimit: { limitNano: bigint; windowHours: number } | null;
  countsByok: boolean;
}

/** Returns the limits that charges of a key count against. */
export const spendingKeyOf = ({
  id,
  limitNanoUsd,
  limitReset,
  includeByokInLimit,
}: LlmKey): KeyLimits => ({
  keyId: id,
  keyLimit:
    limitNanoUsd === null
      ? null
      : { limitNano: limitNanoUsd, windowHours: limitWindowHours(limitReset) },
  countsByok: includeByokInLimit,
});

/**
 * Id of the operator that calls; undefined for other callers. Operators are people who are marked
 * so, in whichever workspace they are, and management keys of the first workspace, whose scope is
 * asked for beside this.
 */
export function operatorIdOf(caller: Caller, operatorWorkspaceId: string): string | undefined {
  if (caller.kind === "session") return caller.user.operator ? caller.user.id : undefined;
  return caller.kind === "management-key" && caller.workspace.id === operatorWorkspaceId
    ? caller.key.id
    : undefined;
}

/**
 * Id of the operator that calls. Throws `forbidden` for other callers: a right to grant credits is
 * a right to print money.
 */
export function requireOperator(caller: Caller, operatorWorkspaceId: string): string {
  const id = operatorIdOf(caller, operatorWorkspaceId);
  if (id !== undefined) return id;
  const who = "people who are operators, and management keys of the first workspace";
  throw new GatewayError("forbidden", `Only operators of this service may do this: ${who}.`);
}
