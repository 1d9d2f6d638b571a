import type { Caller } from "../../account/keys/caller.ts";
import type { Workspace } from "../../account/workspaces/workspace.ts";
import type { RequestContext } from "../../http/request-context.ts";

/** The workspace of a caller that the guard has let in with a credential. */
export const workspaceOf = ({ caller }: RequestContext<unknown>): Workspace =>
  (caller as Exclude<Caller, { kind: "anonymous" }>).workspace;
