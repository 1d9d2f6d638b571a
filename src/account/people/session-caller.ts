import type { Scope } from "../keys/scopes.ts";
import type { Workspace } from "../workspaces/workspace.ts";
import type { Role } from "./role.ts";

/** A user as the gateway shows one. */
export interface Person {
  /** `usr_` id. */
  id: string;
  name: string;
  /** In lower case. */
  email: string;
  /** Whether a link that was sent there came back. */
  emailVerified: boolean;
  /** Runs this installation: claimed the owner account, or was made an operator since. */
  operator: boolean;
}

/** Somebody who has signed in, in the workspace that the session is active in. */
export interface SessionCaller {
  kind: "session";
  session: { id: string; expiresAtMs: number };
  user: Person;
  workspace: Workspace;
  /** What the user is in that workspace at this moment. */
  role: Role;
  scopes: readonly Scope[];
}
