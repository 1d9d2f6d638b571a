import type { Kysely } from "kysely";
import type { Workspace } from "../workspaces/workspace.ts";
import type { PeopleTables } from "./people-tables.ts";
import { isRole, scopesOf, type Role } from "./role.ts";
import { tokenOfCookie } from "./session-cookie.ts";
import type { SessionCaller } from "./session-caller.ts";

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

  /** The caller, or undefined where the cookie is not ours or its session has ended. */
  async find(cookie: string, nowMs: number): Promise<SessionCaller | undefined> {
    const token = tokenOfCookie(cookie, this.options.secret);
    const row = token === undefined ? undefined : await this.rowOf(token);
    if (row === undefined || Date.parse(row.expires_at) <= nowMs) return undefined;
    const place = this.placeOf(row);
    if (place === undefined) return undefined;
    return {
      kind: "session",
      session: { id: row.id, expiresAtMs: Date.parse(row.expires_at) },
      user: {
        id: row.user_id, name: row.user_name, email: row.email, emailVerified: row.email_verified === 1, operator: row.operator === 1,
      },
      ...place,
      scopes: scopesOf(place.role),
    };
  }

  private rowOf(token: string) {
    return this.options.database.selectFrom("user_sessions as session")
      .innerJoin("users as user", "user.id", "session.user_id")
      .leftJoin("workspaces as own", "own.owner_user_id", "user.id")
      .leftJoin("workspaces as active", "active.id", "session.workspace_id")
      .leftJoin("organization_members as member", (join) =>
        join.onRef("member.organization_id", "=", "active.organization_id").onRef("member.user_id", "=", "user.id"))
      .select([
        "session.id", "session.expires_at", "user.id as user_id", "user.name as user_name", "user.email", "user.email_verified",
        "user.operator", "own.id as own_id", "active.id as active_id", "member.role",
      ])
      .where("session.token", "=", token).where("user.blocked_at_ms", "is", null).executeTakeFirst();
  }

  /** The active workspace while its user may enter it and nobody has blocked it, else the personal one. */
  private placeOf(
    row: { own_id: string | null; active_id: string | null; role: string | null },
  ): { workspace: Workspace; role: Role } | undefined {
    const active = row.active_id === null ? undefined : this.options.workspace(row.active_id);
    if (active !== undefined && !active.blocked && row.role !== null && isRole(row.role)) return { workspace: active, role: row.role };
    const own = row.own_id === null ? undefined : this.options.workspace(row.own_id);
    return own === undefined ? undefined : { workspace: own, role: "owner" };
  }
}
