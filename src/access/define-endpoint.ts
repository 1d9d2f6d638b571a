import type {
  AccessRule as DeclaredAccess,
  Endpoint as DeclaredEndpoint,
} from "../http/endpoint.ts";
import type { RequestContext as HttpContext } from "../http/request-context.ts";
import type {
  AnonymousCaller,
  Caller,
  ConnectionCaller,
  LlmKeyCaller,
  ManagementKeyCaller,
} from "../identity/keys/caller.ts";
import type { Scope } from "../identity/keys/scopes.ts";
import type { SessionCaller } from "../identity/people/sign-in/sessions.ts";

/** The credentials that may use an endpoint, with the scopes of this service. */
export type AccessRule = DeclaredAccess<Scope>;

/** A request and its caller, as a handler receives them. */
export type RequestContext<Body = unknown, By extends Caller = Caller> = HttpContext<Body, By>;

/** A row of the route table, for callers of this service. */
export type Endpoint<Dependencies, Body = unknown, By extends Caller = Caller> = DeclaredEndpoint<
  Dependencies,
  Body,
  By
>;

/** Whether an access rule sets one of these members. */
type Sets<Access, Name extends keyof AccessRule> = Access extends {
  [Member in Name]: true | Scope;
}
  ? true
  : false;

type When<Condition, By> = Condition extends true ? By : never;

/** The callers that hold a scope, without those that a rule excludes. */
type ScopedCaller<Access> =
  | ManagementKeyCaller
  | (Sets<Access, "keyHeldDirectly"> extends true ? never : ConnectionCaller);

/**
 * The callers that the guard admits under this access rule. A rule that the compiler does not know
 * in full admits every caller.
 */
export type CallerOf<Access> = AccessRule extends Access
  ? Caller
  :
      | When<Sets<Access, "llmKey">, LlmKeyCaller>
      | When<Sets<Access, "managementScope">, ScopedCaller<Access>>
      | When<Sets<Access, "anyScope">, ScopedCaller<Access>>
      | When<Sets<Access, "session">, SessionCaller>
      | When<Sets<Access, "anonymous">, AnonymousCaller | LlmKeyCaller | ManagementKeyCaller>
      | When<Sets<Access, "open">, AnonymousCaller>;

/**
 * Declares an endpoint; the table in `endpoints/index.ts` lists them all. The caller's type follows
 * from `access` and the body's from its schema; `Parts` names the dependencies that the handler
 * uses.
 */
export const defineEndpoint = <
  Parts,
  Body = undefined,
  const Access extends AccessRule = AccessRule,
>(
  endpoint: Endpoint<Parts, Body, CallerOf<Access>> & { access: Access },
): Endpoint<Parts> => endpoint as unknown as Endpoint<Parts>;
