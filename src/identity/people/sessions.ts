import { timingSafeEqual } from "node:crypto";
import type { Kysely } from "kysely";
import { brand } from "../../platform/kernel/brand.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { mayBeId } from "../../platform/kernel/ids.ts";
import type { Scope } from "../keys/scopes.ts";
import type { Workspace } from "../workspaces/workspace-store.ts";
import { isRole, scopesOf, type Role } from "./organizations.ts";
import type { PeopleTables } from "./people-tables.ts";

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

/** A signed-in user, in the workspace that the session is active in. */
export interface SessionCaller {
  kind: "session";
  session: { id: string; expiresAtMs: number };
  user: Person;
  workspace: Workspace;
  /** What the user is in that workspace at this moment. */
  role: Role;
  scopes: readonly Scope[];
}

const pattern = new RegExp(`(?:^|;\\s*)${brand.sessionCookie}=([^;]*)`);

/** The session cookie of a `Cookie` header, as it was sent; undefined where there is none. */
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
 * The token of a session cookie, `token.signature`, where the signature is ours: HMAC-SHA256 in
 * base64 under the secret for sign-in. The database has the tokens alone, so a reader of it has
 * no session.
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
 * The header by which a request of a session names its workspace: each tab of a browser stays in
 * its own.
 */
export const workspaceHeader = `${brand.headerPrefix}-Workspace`;

/** What reading sessions needs; workspaces are in memory. */
interface SessionReaderOptions {
  database: Kysely<PeopleTables>;
  /** What the library signs cookies with. */
  secret: string;
  workspace(id: string): Workspace | undefined;
}

/**
 * Finds who a session cookie belongs to. Asks the database each time, so that a session that was
 * revoked, a role that was taken and a member that was removed are in force with the next request.
 */
export class SessionReader {
  private readonly options: SessionReaderOptions;

  constructor(options: SessionReaderOptions) {
    this.options = options;
  }

  /**
   * The caller, or undefined where the cookie is not ours or its session has ended. A request may
   * name the workspace that it is about, whichever the session is active in; throws `forbidden`
   * where the user may not enter that one.
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
    if (namedWorkspaceId !== undefined && place.workspace.id !== namedWorkspaceId) {
      throw new GatewayError(
        "forbidden",
        `You may not enter the workspace that ${workspaceHeader} names. GET /workspaces lists yours.`,
      );
    }
    return {
      kind: "session",
      session: { id: row.id, expiresAtMs: Date.parse(row.expires_at) },
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
      .select([
        "session.id",
        "session.expires_at",
        "user.id as user_id",
        "user.name as user_name",
        "user.email",
        "user.email_verified",
        "user.operator",
        "own.id as own_id",
        "active.id as active_id",
        "member.role",
      ])
      .where("session.token", "=", token)
      .where("user.blocked_at_ms", "is", null)
      .executeTakeFirst();
  }

  /**
   * The active workspace while its user may enter it and it is not blocked, else the personal
   * one.
   */
  private placeOf(row: {
    own_id: string | null;
    active_id: string | null;
    role: string | null;
  }): { workspace: Workspace; role: Role } | undefined {
    const active = row.active_id === null ? undefined : this.options.workspace(row.active_id);
    if (active !== undefined && !active.blocked && row.role !== null && isRole(row.role))
      return { workspace: active, role: row.role };
    const own = row.own_id === null ? undefined : this.options.workspace(row.own_id);
    return own === undefined ? undefined : { workspace: own, role: "owner" };
  }
}

/** A session as its user sees it. */
export interface SessionRecord {
  /** `ses_` id. */
  id: string;
  createdAt: string;
  /** When it was prolonged last. */
  updatedAt: string;
  expiresAt: string;
  address: string | null;
  userAgent: string | null;
}

/** Sessions at rest, by their users. */
export class SessionStore {
  private readonly database: Kysely<PeopleTables>;

  constructor(database: Kysely<PeopleTables>) {
    this.database = database;
  }

  /** The sessions of a user that have not ended, newest first. */
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

  /** Ends one session of a user; false when they have none with this id. */
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

  /** Ends all sessions of a user; tells how many. */
  async revokeAll(userId: string): Promise<number> {
    return (
      await this.database
        .deleteFrom("user_sessions")
        .where("user_id", "=", userId)
        .returning("id")
        .execute()
    ).length;
  }

  /** Ends all sessions of a user but one; tells how many. */
  async revokeOthers({ userId, keptId }: { userId: string; keptId: string }): Promise<number> {
    const rows = await this.database
      .deleteFrom("user_sessions")
      .where("user_id", "=", userId)
      .where("id", "!=", keptId)
      .returning("id")
      .execute();
    return rows.length;
  }

  /** The workspace that every user has of their own. */
  async personalWorkspaceId(userId: string): Promise<string | undefined> {
    const row = await this.database
      .selectFrom("workspaces")
      .select("id")
      .where("owner_user_id", "=", userId)
      .executeTakeFirst();
    return row?.id;
  }

  /** Chooses the workspace that a session is active in; null is the personal one. */
  async activate(id: string, workspaceId: string | null): Promise<void> {
    await this.database
      .updateTable("user_sessions")
      .set({ workspace_id: workspaceId })
      .where("id", "=", id)
      .execute();
  }

  /**
   * Deletes the ended sessions of all users, and verifications that were never completed.
   */
  async removeEnded(nowMs: number): Promise<void> {
    const now = new Date(nowMs).toISOString();
    await this.database.deleteFrom("user_sessions").where("expires_at", "<=", now).execute();
    await this.database.deleteFrom("user_verifications").where("expires_at", "<=", now).execute();
  }

  async renameUser(userId: string, name: string): Promise<void> {
    await this.database.updateTable("users").set({ name }).where("id", "=", userId).execute();
  }
}
