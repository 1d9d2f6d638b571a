import type { Kysely } from "kysely";
import { brand } from "../../platform/lib/brand.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Workspace } from "../workspaces/workspace.ts";
import type { PeopleTables } from "./people-tables.ts";
import { isRole, scopesOf, type Role } from "./role.ts";
import { tokenOfCookie } from "./session-cookie.ts";
import type { SessionCaller } from "./session-caller.ts";

/** The header by which a request of a session names its workspace: each tab of a browser stays in its own. */
export const workspaceHeader = `${brand.headerPrefix}-Workspace`;

/** What reading sessions needs; workspaces are in memory. */
export interface SessionReaderOptions {
  database: Kysely<PeopleTables>;
  /** What the library signs cookies with. */
  secret: string;
  workspace(id: string): Workspace | undefined;
}

/**
 * Finds who a session cookie belongs to. Asks the database each time, so that a session that was revoked, a
 * role that was taken and a member that was removed are in force with the next request.
 */
export class SessionReader {
  private readonly options: SessionReaderOptions;

  constructor(options: SessionReaderOptions) {
    this.options = options;
  }

  /**
   * The caller, or undefined where the cookie is not ours or its session has ended. A request may name the workspace that it is
   * about, whichever the session is active in; throws `forbidden` where the user may not enter that one.
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

  /** The active workspace while its user may enter it and nobody has blocked it, else the personal one. */
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
