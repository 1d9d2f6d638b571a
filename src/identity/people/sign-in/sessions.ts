import { brand } from "../../../platform/kernel/brand.ts";
import type { Scope } from "../../keys/scopes.ts";
import type { Workspace } from "../../workspaces/workspace-store.ts";
import type { Role } from "../roles.ts";

/** A user, in the form in which the API shows one. */
export interface Person {
  /** A `usr_` id. */
  id: string;
  name: string;
  /** The address in lower case. */
  email: string;
  /** Whether the address was confirmed by a link that was sent to it. */
  emailVerified: boolean;
  /**
   * Whether the user runs this installation: claimed the owner account, or was made an operator
   * later.
   */
  operator: boolean;
}

/** A signed-in user, in the session's active workspace. */
export interface SessionCaller {
  kind: "session";
  session: { id: string; startedAtMs: number; expiresAtMs: number };
  user: Person;
  workspace: Workspace;
  /** The user's present role in that workspace. */
  role: Role;
  scopes: readonly Scope[];
  /**
   * The organisation that the session would be in, and is not: it requires a second factor, which
   * the user lacks.
   */
  barredFrom?: string | undefined;
}

/** Milliseconds after signing in for which a session counts as fresh. */
const freshMs = 15 * 60_000;

/** Returns whether the user of a session signed in a moment ago. */
export const isFresh = ({ session }: SessionCaller, nowMs: number): boolean =>
  nowMs - session.startedAtMs < freshMs;

const pattern = new RegExp(`(?:^|;\\s*)${brand.sessionCookie}=([^;]*)`);

/**
 * Returns the session cookie of a `Cookie` header, as it was sent; undefined where there is none.
 */
export const sessionCookieOf = (header: string | null): string | undefined =>
  header === null ? undefined : pattern.exec(header)?.[1] || undefined;

/**
 * The header by which a request of a session names its workspace, so that each browser tab can stay
 * in its own.
 */
export const workspaceHeader = `${brand.headerPrefix}-Workspace`;

/** A session as its user sees it. */
export interface SessionRecord {
  /** A `ses_` id. */
  id: string;
  createdAt: string;
  /** When it was last prolonged. */
  updatedAt: string;
  expiresAt: string;
  address: string | null;
  userAgent: string | null;
}
