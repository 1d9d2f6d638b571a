import { operatorIdOf, type Caller } from "../identity/keys/caller.ts";
import type { SessionCaller } from "../identity/people/sessions.ts";
import { coversScope } from "../identity/keys/scopes.ts";
import { GatewayError } from "../platform/kernel/errors.ts";
import type { Tool } from "./tool.ts";

/** Who calls tools: an LLM key, a management key or a connected app. */
export type ToolCaller = Extract<Caller, { kind: "llm-key" | "management-key" | "connection" }>;

/** A caller, and what it is to the service. */
export interface KnownCaller {
  caller: ToolCaller;
  /** The workspace whose management keys are operators'. */
  operatorWorkspaceId: string;
  /** The operator whose LLM key calls; undefined for every other credential. */
  operator: SessionCaller | undefined;
}

/** Scope by which endpoints of operators accept management keys. */
const operatorScope = "write:management-keys";

/**
 * Whether a caller runs the service: an operator's own LLM key, or a management key of the first
 * workspace with the scope.
 */
const isOperator = ({ caller, operatorWorkspaceId, operator }: KnownCaller): boolean =>
  operator !== undefined ||
  (operatorIdOf(caller, operatorWorkspaceId) !== undefined &&
    caller.kind === "management-key" &&
    coversScope(caller.key.scopes, operatorScope));

/** Whether a caller may use a tool; those that it may not are left out of its list. */
export function mayUse(
  { scope, operators }: Pick<Tool, "scope" | "operators">,
  known: KnownCaller,
): boolean {
  if (operators) return isOperator(known);
  if (scope === null) return true;
  const { caller } = known;
  if (caller.kind === "llm-key") return false;
  return coversScope(
    caller.kind === "connection" ? caller.connection.scopes : caller.key.scopes,
    scope,
  );
}

/** The refusal of a caller that lacks the scope of a tool, with the way out. */
export function permissionDenied(
  { name, scope }: Pick<Tool, "name" | "scope">,
  { caller }: KnownCaller,
): GatewayError {
  const needed = `Permission denied: ${name} needs the scope ${scope}`;
  if (caller.kind === "llm-key") {
    return new GatewayError(
      "insufficient_scope",
      `${needed}, and LLM keys hold none. Connect with OAuth or a management key that has it.`,
    );
  }
  const way =
    caller.kind === "connection"
      ? "Connect this app again and grant it."
      : "Use a management key that has it.";
  return new GatewayError("insufficient_scope", `${needed}. ${way}`);
}
