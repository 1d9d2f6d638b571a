import { GatewayError } from "../../platform/kernel/errors.ts";
import type { SessionCaller } from "../people/sign-in/sessions.ts";
import type { Workspace } from "../workspaces/workspace-store.ts";
import { limitWindowHours, type KeyConnection, type LlmKey } from "./llm-key-store.ts";
import type { Run } from "./run.ts";
import { managementKeyStatus, type ManagementKey } from "./management-keys.ts";
import type { Scope } from "./scopes.ts";

/** A caller without a credential. */
export interface AnonymousCaller {
  kind: "anonymous";
  address: string;
}

/** The sender of a request, as far as its credential proves. */
export type Caller =
  | AnonymousCaller
  | {
      kind: "llm-key";
      key: LlmKey;
      workspace: Workspace;
      /** The key that created this one, where one did. Its limits and its expiry apply to both. */
      parent?: LlmKey;
      /**
       * The run that the request belongs to; absent for nearly all. `key` is then the run's, and
       * `parent` the key that its tree of runs began with.
       */
      run?: Run;
      /** The key that created `parent`, for runs of a child key. */
      grandparent?: LlmKey;
      /** The ids of the runs around `run`, innermost first; absent where there are none. */
      outerRunIds?: readonly string[];
      /**
       * The key as it is stored, where its team or a key above it narrows the models of `key`; absent
       * for all others.
       */
      own?: LlmKey;
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

/** Returns the scopes that an administering caller holds. */
export function scopesHeld(caller: AccountCaller): readonly Scope[] {
  if (caller.kind === "session") return caller.scopes;
  return caller.kind === "connection" ? caller.connection.scopes : caller.key.scopes;
}

/**
 * Returns the creator of what an administering caller creates: the user, for a connected app the
 * user who granted it, or the management key.
 */
export function creatorIdOf(caller: AccountCaller): string {
  if (caller.kind === "session") return caller.user.id;
  return caller.kind === "connection" ? caller.key.creatorUserId : caller.key.id;
}

/**
 * Returns a caller as routing sees it. A caller that administers a workspace counts as a key
 * without limits of its own: the workspace's restrictions and balance apply, and nothing is charged
 * to it.
 */
export function routedCaller(caller: KnownCaller): LlmKeyCaller {
  if (caller.kind === "llm-key") return caller;
  const { workspace } = caller;
  const key = unlimitedKey({
    id: caller.kind === "session" ? caller.user.id : caller.key.id,
    workspaceId: workspace.id,
    creatorUserId: creatorIdOf(caller),
  });
  return { kind: "llm-key", workspace, key };
}

/** Returns an LLM key without limits, name or secret. */
export const unlimitedKey = (
  owned: Pick<LlmKey, "id" | "workspaceId" | "creatorUserId">,
): LlmKey => ({
  hash: "",
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
  ...owned,
});

/** A credential that can be found by its secret. */
export type Credential = LlmKeyCaller | ManagementKeyCaller;

const isBefore = (endMs: number | null, nowMs: number): boolean => endMs === null || endMs > nowMs;

const isLiveKey = ({ disabled, expiresAtMs }: LlmKey, nowMs: number): boolean =>
  !disabled && isBefore(expiresAtMs, nowMs);

/**
 * Returns whether a credential may be used at a wall time in milliseconds. A child key ends with
 * its parent.
 */
export function isLive(credential: Credential, nowMs: number): boolean {
  if (credential.workspace.blocked) return false;
  if (credential.kind === "management-key")
    return managementKeyStatus(credential.key, nowMs) === "active";
  const { key, parent, grandparent } = credential;
  // A connection outlives its access token, and so do the keys that it created.
  if (!isBefore(key.connection?.tokenExpiresAtMs ?? null, nowMs)) return false;
  if (grandparent !== undefined && !isLiveKey(grandparent, nowMs)) return false;
  return isLiveKey(key, nowMs) && (parent === undefined || isLiveKey(parent, nowMs));
}

/**
 * Returns the keys whose rate windows count a caller's requests: its own and that of the key which
 * created it. A run's requests count in those of the key that it began with.
 */
export function windowKeysOf({
  key,
  parent,
  run,
  grandparent,
}: Pick<LlmKeyCaller, "key" | "parent" | "run" | "grandparent">): readonly [LlmKey, ...LlmKey[]] {
  if (run === undefined) return parent === undefined ? [key] : [key, parent];
  if (parent === undefined) return [key];
  return grandparent === undefined ? [parent] : [parent, grandparent];
}

/** The limits of a key, as charges count towards them. */
interface KeyLimits {
  keyId: string;
  keyLimit: { limitNano: bigint; windowHours: number } | null;
  countsByok: boolean;
}

/** Returns the limits that charges of a key count towards. */
export const spendingKeyOf = ({
  id,
  limitNanoUsd,
  limitReset,
  presentLimit,
  includeByokInLimit,
}: LlmKey): KeyLimits => ({
  keyId: id,
  keyLimit:
    presentLimit ??
    (limitNanoUsd === null
      ? null
      : { limitNano: limitNanoUsd, windowHours: limitWindowHours(limitReset) }),
  countsByok: includeByokInLimit,
});

/**
 * Returns the limits of the key above a caller's that its charges count towards as well. What a run
 * may spend is set aside there already.
 */
export const spendingParentOf = ({
  parent,
  run,
}: Pick<LlmKeyCaller, "parent" | "run">): KeyLimits | undefined =>
  parent === undefined || run !== undefined ? undefined : spendingKeyOf(parent);

/**
 * Returns the keys whose bounds apply to a caller: its own, that which created it, and for a run of
 * a child key the one above that.
 */
export const keysOf = ({
  key,
  parent,
  grandparent,
}: Pick<LlmKeyCaller, "key" | "parent" | "grandparent">): readonly LlmKey[] => {
  if (parent === undefined) return [key];
  return grandparent === undefined ? [key, parent] : [key, parent, grandparent];
};

/** Returns the ids of the keys and runs whose budgets count a caller's requests. */
export const budgetKeyIdsOf = ({
  outerRunIds = [],
  ...caller
}: Pick<LlmKeyCaller, "key" | "parent" | "grandparent" | "outerRunIds">): string[] => [
  ...keysOf(caller).map(({ id }) => id),
  ...outerRunIds,
];

/**
 * Returns the customer that a caller's key belongs to, which comes before the one that its requests
 * name; undefined for keys of no customer.
 */
export const customerOfKey = ({
  key,
  parent,
  grandparent,
}: Pick<LlmKeyCaller, "key" | "parent" | "grandparent">): string | undefined =>
  key.customer ?? parent?.customer ?? grandparent?.customer;

/** Returns the team that a caller's key belongs to; undefined for keys of no team. */
export const teamOfKey = ({
  key,
  parent,
  grandparent,
}: Pick<LlmKeyCaller, "key" | "parent" | "grandparent">): string | undefined =>
  key.teamId ?? parent?.teamId ?? grandparent?.teamId ?? undefined;

/** The scope with which management keys of the first workspace are operators' keys. */
export const operatorScope = "write:management-keys" satisfies Scope;

/** Returns whether a management key is an operators' key. */
export const isOperatorsKey = (
  { workspaceId, scopes }: Pick<ManagementKey, "workspaceId" | "scopes">,
  operatorWorkspaceId: string,
): boolean => workspaceId === operatorWorkspaceId && scopes.includes(operatorScope);

/**
 * Returns the id of the operator that calls; undefined for other callers. Operators are people who
 * are marked as such, in any workspace, and management keys of the first workspace, whose scope is
 * checked separately.
 */
function operatorIdOf(caller: Caller, operatorWorkspaceId: string): string | undefined {
  if (caller.kind === "session") return caller.user.operator ? caller.user.id : undefined;
  return caller.kind === "management-key" && caller.workspace.id === operatorWorkspaceId
    ? caller.key.id
    : undefined;
}

/**
 * Returns the id of the operator that calls. Throws `forbidden` for other callers, since the right
 * to grant credits is a right to print money.
 */
export function requireOperator(caller: Caller, operatorWorkspaceId: string): string {
  const id = operatorIdOf(caller, operatorWorkspaceId);
  if (id !== undefined) return id;
  const who = "people who are operators, and management keys of the first workspace";
  throw new GatewayError("forbidden", `Only operators of this service may do this: ${who}.`);
}
