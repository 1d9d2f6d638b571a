import { actorOf } from "../../access/audit/audit-log.ts";
import type { RequestContext } from "../../access/define-endpoint.ts";
import { operatorScope, type AccountCaller, type Caller } from "../../identity/keys/caller.ts";
import type { LlmKey, OperatorRights } from "../../identity/keys/llm-key-store.ts";
import { scopes } from "../../identity/keys/scopes.ts";
import { isFresh, type SessionCaller } from "../../identity/people/sign-in/sessions.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";

const refused = (problem: string): GatewayError =>
  new GatewayError("forbidden", `operator: ${problem}`, { param: "operator" });

/** Returns whether a caller is a person in their own personal workspace. */
const isAtHome = (caller: AccountCaller): caller is SessionCaller =>
  caller.kind === "session" && caller.workspace.ownerUserId === caller.user.id;

/**
 * Returns the operator who may give a key of their own an operator's rights. Throws `forbidden` for
 * every other caller, and for a session that is not fresh.
 */
export function givingOperator(
  caller: AccountCaller,
  { clock }: Pick<Dependencies, "clock">,
): string {
  if (caller.kind !== "session" || !caller.user.operator) {
    throw refused(
      "only an operator of this service who has signed in can give a key an operator's rights.",
    );
  }
  if (!isAtHome(caller)) {
    throw refused(
      "only keys of your personal workspace can have it. Create the key there, since others use the keys of an organisation.",
    );
  }
  if (!isFresh(caller, clock.nowMs()))
    throw refused("sign in again first: this needs a session of at most 15 minutes.");
  return caller.user.id;
}

/** Refuses operator's rights for keys that no operator creates. Throws `forbidden`. */
export function assertNoRights(wanted: boolean | null | undefined): void {
  if (wanted === true)
    throw refused("keys that a key or an app creates cannot have an operator's rights.");
}

/**
 * Returns what becomes of a key's rights by a change: given where the caller asks for it, kept where
 * the operator who gave them makes the change; otherwise undefined, and they are lost. Throws
 * `forbidden`, and `conflict` where the operator does not hold the key's secret alone.
 */
export function rightsAfterChange(
  caller: AccountCaller,
  {
    key,
    wanted,
    deps,
  }: { key: LlmKey; wanted: boolean | null | undefined; deps: Pick<Dependencies, "clock"> },
): OperatorRights | undefined {
  if (wanted === true) {
    const operatorId = givingOperator(caller, deps);
    if (key.parentKeyId !== undefined || key.holderUserId !== operatorId) {
      throw new GatewayError(
        "conflict",
        "operator: the secret of this key was shown to another program or person. Rotate it first, or create another key.",
        { param: "operator" },
      );
    }
    return { gives: operatorId };
  }
  if (wanted === false || key.operatorUserId === undefined) return undefined;
  const keeps =
    isAtHome(caller) && caller.user.operator && isFresh(caller, deps.clock.nowMs())
      ? caller.user.id
      : undefined;
  return keeps === undefined ? undefined : { keeps };
}

/** The scopes that a management key of the first workspace may hold without being an operator's. */
const scopesOfOthers = scopes.filter((scope) => scope !== operatorScope);

/**
 * Takes an operator's rights from all keys of a person who is no operator any more: LLM keys that
 * they gave them to, and management keys that they created in the first workspace.
 */
export async function withdrawRightsOf(
  context: RequestContext<unknown>,
  deps: Pick<
    Dependencies,
    "operatorWorkspaceId" | "llmKeys" | "managementKeyEditor" | "directory" | "security" | "clock"
  >,
  userId: string,
): Promise<void> {
  const { llmKeys, directory, clock, managementKeyEditor, operatorWorkspaceId } = deps;
  for (const key of await llmKeys.withdrawRights(userId, clock.nowMs())) {
    directory.putLlmKey(key);
    await tellRights(context, deps, { before: { ...key, operatorUserId: userId }, after: key });
  }
  await managementKeyEditor.narrow(
    { workspaceId: operatorWorkspaceId, creatorUserId: userId },
    { bound: scopesOfOthers, reason: "The person who made it is no operator any more." },
  );
}

/** The user who receives the secret that is shown to a caller; none where no person does. */
export const holderOf = (caller: Caller): { holderUserId?: string } =>
  caller.kind === "session" ? { holderUserId: caller.user.id } : {};

/**
 * Audits that a key obtained or lost an operator's rights, in its own workspace and in the
 * operators'.
 */
export async function tellRights(
  context: RequestContext<unknown>,
  { security, operatorWorkspaceId }: Pick<Dependencies, "operatorWorkspaceId" | "security">,
  { before, after }: { before: LlmKey | undefined; after: LlmKey },
): Promise<void> {
  const [had, has] = [before?.operatorUserId !== undefined, after.operatorUserId !== undefined];
  const actor = actorOf(context.caller);
  if (had === has || actor === undefined) return;
  const change = {
    actor,
    address: context.clientAddress(),
    action: has ? "give a key operator's rights" : "take operator's rights from a key",
    target: after.id,
    fields: ["operator"],
  };
  const places = new Set([after.workspaceId, operatorWorkspaceId]);
  for (const workspaceId of places)
    await security.auditLog.tell({ ...change, workspaceId }, { status: 200, target: after.id });
}
