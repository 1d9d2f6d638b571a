import { GatewayError } from "../../platform/lib/errors.ts";
import type { Caller } from "../keys/caller.ts";

/**
 * Id of the operator that calls; undefined for everybody else. Operators are people who are marked so, in whichever
 * workspace they are, and management keys of the first workspace, whose scope is asked for beside this.
 */
export function operatorIdOf(caller: Caller, operatorWorkspaceId: string): string | undefined {
  if (caller.kind === "session") return caller.user.operator ? caller.user.id : undefined;
  return caller.kind === "management-key" && caller.workspace.id === operatorWorkspaceId
    ? caller.key.id
    : undefined;
}

/** Id of the operator that calls. Throws `forbidden` for everybody else: whoever may grant may print money. */
export function requireOperator(caller: Caller, operatorWorkspaceId: string): string {
  const id = operatorIdOf(caller, operatorWorkspaceId);
  if (id !== undefined) return id;
  const who = "people who are operators, and management keys of the first workspace";
  throw new GatewayError("forbidden", `Only operators of this service may do this: ${who}.`);
}
