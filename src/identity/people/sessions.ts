import { timingSafeEqual } from "node:crypto";
import type { Kysely } from "kysely";
import { brand } from "../../platform/kernel/brand.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { mayBeId } from "../../platform/kernel/ids.ts";
import type { Scope } from "../keys/scopes.ts";
import type { Workspace } from "../workspaces/workspace-store.ts";
import { isRole, scopesOf, type Role } from "./organizations.ts";
import type { PeopleTables } from "./people-tables.ts";
import { hasSecondFactor, secondFactorMissing } from "./second-factors.ts";

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

const decoded = (value: string): string | undefined => {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
};

/**
 * Returns the token of a session cookie, `token.signature`, where the signature is valid:
 * HMAC-SHA256 in base64 under the sign-in secret. The database holds only tokens, so reading it
 * yields no session.
 */
function tokenOfCookie(value: string, secret: string): string | undefined {
  const text = decoded(value);
  const dot = text?.lastIndexOf(".") ?? -1;
  if (text === undefined || dot < 1) return undefined;
  const token = text.slice(0, dot);
  const expected = new Bun.CryptoHasher("sha256", secret).update(token).digest();
  const given = Buffer.from(text.slice(dot + 1), "base64");
  return given.length === expected.length && timingSafeEqual(given, expected) ? token : undefined;
}

/**
 * The header by which a request of a session names its workspace, so that each browser tab can stay
 * in its own.
 */
export const workspaceHeader = `${brand.headerPrefix}-Workspace`;

/** Dependencies of reading sessions. Workspaces are in memory. */
interface SessionReaderOptions {
  database: Kysely<PeopleTables>;
  /** The secret that the library signs cookies with. */
  secret: string;
  workspace(id: string): Workspace | undefined;
}

/**
 * Finds the caller of a session cookie. It queries the database each time, so that a revoked
 * session, a removed role or a removed member takes effect with the next request.
 */
export class SessionReader {
  private readonly options: SessionReaderOptions;

  constructor(options: SessionReaderOptions) {
    this.options = options;
  }

  /**
   * Returns the caller, or undefined where the cookie's signature is invalid or its session has
   * ended. A request may name its workspace, regardless of which is active in the session. Throws
   * `forbidden` where the user may not enter that one.
   */
  async find(
    cookie: string,
    nowMs: number,
    namedWorkspaceId?: string,
  ): Promise<SessionCaller | undefined> {
    const token = tokenOfCookie(cookie, this.options.secret);
    const row = token === undefined ? undefined : await this.rowOf(token, namedWorkspaceId);
    if (row === undefined || Date.parse(row.expires_at) <= nowMs) return undefined;
    const place = this.placeOf(row);
    if (place === undefined) return undefined;
    if (namedWorkspaceId !== undefined && place.barredFrom !== undefined)
      throw secondFactorMissing(place.barredFrom);
    if (namedWorkspaceId !== undefined && place.workspace.id !== namedWorkspaceId) {
      throw new GatewayError(
        "forbidden",
        `You may not enter the workspace that ${workspaceHeader} names. GET /workspaces lists yours.`,
      );
    }
    return {
      kind: "session",
      session: {
        id: row.id,
        startedAtMs: Date.parse(row.created_at),
        expiresAtMs: Date.parse(row.expires_at),
      },
      user: {
        id: row.user_id,
        name: row.user_name,
        email: row.email,
        emailVerified: row.email_verified === 1,
        operator: row.operator === 1,
      },
      ...place,
      scopes: scopesOf(place.role),
    };
  }

  private rowOf(token: string, namedWorkspaceId: string | undefined) {
    return this.options.database
      .selectFrom("user_sessions as session")
      .innerJoin("users as user", "user.id", "session.user_id")
      .leftJoin("workspaces as own", "own.owner_user_id", "user.id")
      .leftJoin("workspaces as active", (join) =>
        namedWorkspaceId === undefined
          ? join.onRef("active.id", "=", "session.workspace_id")
          : join.on("active.id", "=", namedWorkspaceId),
      )
      .leftJoin("organization_members as member", (join) =>
        join
          .onRef("member.organization_id", "=", "active.organization_id")
          .onRef("member.user_id", "=", "user.id"),
      )
      .leftJoin("organizations as organization", "organization.id", "active.organization_id")
      .select([
        "session.id",
        "session.created_at",
        "session.expires_at",
        "user.id as user_id",
        "user.name as user_name",
        "user.email",
        "user.email_verified",
        "user.operator",
        "own.id as own_id",
        "active.id as active_id",
        "member.role",
        "organization.name as organization_name",
        "organization.second_factor_required as factor_required",
        hasSecondFactor.as("factor"),
      ])
      .where("session.token", "=", token)
      .where("user.blocked_at_ms", "is", null)
      .executeTakeFirst();
  }

  /**
   * Returns the active workspace while its user may enter it and it is not blocked, or else the
   * personal one, with the organisation that requires a second factor where that is the reason.
   */
  private placeOf(row: {
    own_id: string | null;
    active_id: string | null;
    role: string | null;
    organization_name: string | null;
    factor_required: number | null;
    factor: number;
  }): Pick<SessionCaller, "workspace" | "role" | "barredFrom"> | undefined {
    const active = row.active_id === null ? undefined : this.options.workspace(row.active_id);
    const role = row.role !== null && isRole(row.role) ? row.role : undefined;
    const entered = active?.blocked === true || role === undefined ? undefined : active;
    const isBarred = row.factor_required === 1 && Number(row.factor) !== 1;
    if (entered !== undefined && role !== undefined && !isBarred)
      return { workspace: entered, role, barredFrom: undefined };
    const own = row.own_id === null ? undefined : this.options.workspace(row.own_id);
    const barredFrom = entered && (row.organization_name ?? entered.name);
    return own === undefined ? undefined : { workspace: own, role: "owner", barredFrom };
  }
}

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

/** Stores sessions, by user. */
export class SessionStore {
  private readonly database: Kysely<PeopleTables>;

  constructor(database: Kysely<PeopleTables>) {
    this.database = database;
  }

  /** Returns the sessions of a user that have not ended, newest first. */
  async list(userId: string, nowMs: number): Promise<SessionRecord[]> {
    const rows = await this.database
      .selectFrom("user_sessions")
      .selectAll()
      .where("user_id", "=", userId)
      .where("expires_at", ">", new Date(nowMs).toISOString())
      .orderBy("created_at", "desc")
      .orderBy("id", "desc")
      .execute();
    return rows.map((row) => ({
      id: row.id,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
      expiresAt: row.expires_at,
      address: row.ip_address,
      userAgent: row.user_agent,
    }));
  }

  /** Ends one session of a user. Returns false when they have none with this id. */
  async revoke({ userId, id }: { userId: string; id: string }): Promise<boolean> {
    if (!mayBeId(id)) return false;
    const row = await this.database
      .deleteFrom("user_sessions")
      .where("id", "=", id)
      .where("user_id", "=", userId)
      .returning("id")
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Ends all sessions of a user; returns how many. */
  async revokeAll(userId: string): Promise<number> {
    return (
      await this.database
        .deleteFrom("user_sessions")
        .where("user_id", "=", userId)
        .returning("id")
        .execute()
    ).length;
  }

  /** Ends all sessions of a user but one; returns how many. */
  async revokeOthers({ userId, keptId }: { userId: string; keptId: string }): Promise<number> {
    const rows = await this.database
      .deleteFrom("user_sessions")
      .where("user_id", "=", userId)
      .where("id", "!=", keptId)
      .returning("id")
      .execute();
    return rows.length;
  }

  /** Returns the personal workspace of a user. */
  async personalWorkspaceId(userId: string): Promise<string | undefined> {
    const row = await this.database
      .selectFrom("workspaces")
      .select("id")
      .where("owner_user_id", "=", userId)
      .executeTakeFirst();
    return row?.id;
  }

  /** Sets the active workspace of a session; null is the personal one. */
  async activate(id: string, workspaceId: string | null): Promise<void> {
    await this.database
      .updateTable("user_sessions")
      .set({ workspace_id: workspaceId })
      .where("id", "=", id)
      .execute();
  }

  /** Deletes the ended sessions of all users, and verifications that were never completed. */
  async removeEnded(nowMs: number): Promise<void> {
    const now = new Date(nowMs).toISOString();
    await this.database.deleteFrom("user_sessions").where("expires_at", "<=", now).execute();
    await this.database.deleteFrom("user_verifications").where("expires_at", "<=", now).execute();
  }

  async renameUser(userId: string, name: string): Promise<void> {
    await this.database.updateTable("users").set({ name }).where("id", "=", userId).execute();
  }
}
