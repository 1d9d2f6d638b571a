import type { Kysely } from "kysely";
import { mayBeId } from "../../platform/lib/ids.ts";
import type { PeopleTables } from "./people-tables.ts";

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

  /** Deletes what has ended, of everybody: sessions, and what was asked of browsers and never answered. */
  async removeEnded(nowMs: number): Promise<void> {
    const now = new Date(nowMs).toISOString();
    await this.database.deleteFrom("user_sessions").where("expires_at", "<=", now).execute();
    await this.database.deleteFrom("user_verifications").where("expires_at", "<=", now).execute();
  }

  async renameUser(userId: string, name: string): Promise<void> {
    await this.database.updateTable("users").set({ name }).where("id", "=", userId).execute();
  }
}
