import type { Kysely } from "kysely";
import { type Privacy, noPrivacy } from "./privacy.ts";

/** The owner of the settings: a workspace, or one of its keys. */
export interface PrivacyOwner {
  workspaceId: string;
  ownerId: string;
}

/** Rows of privacy settings. */
export interface PrivacyTables {
  privacy_settings: {
    owner_id: string;
    workspace_id: string;
    zdr: number;
    blocked_providers: string;
    updated_at_ms: number;
    contents_since_ms: number;
  };
}

/** The settings of a workspace or a key. */
interface OwnedPrivacy {
  ownerId: string;
  privacy: Privacy;
}

const fromRow = (row: PrivacyTables["privacy_settings"]): OwnedPrivacy => ({
  ownerId: row.owner_id,
  privacy: {
    zdr: row.zdr === 1,
    blockedProviders: JSON.parse(row.blocked_providers) as string[],
    ...(row.contents_since_ms > 0 && { contentsSinceMs: Number(row.contents_since_ms) }),
  },
});

/** Stores privacy settings. */
export class PrivacyStore {
  constructor(private readonly database: Kysely<PrivacyTables>) {}

  /** Returns the settings of every workspace and key that has any. */
  async loadAll(): Promise<OwnedPrivacy[]> {
    const rows = await this.database.selectFrom("privacy_settings").selectAll().execute();
    return rows.map(fromRow);
  }

  /** Returns the settings of a workspace and of its keys. */
  async list(workspaceId: string): Promise<OwnedPrivacy[]> {
    const rows = await this.database
      .selectFrom("privacy_settings")
      .selectAll()
      .where("workspace_id", "=", workspaceId)
      .execute();
    return rows.map(fromRow);
  }

  /** Returns the settings of a workspace or a key. */
  async find(ownerId: string): Promise<Privacy> {
    const row = await this.database
      .selectFrom("privacy_settings")
      .selectAll()
      .where("owner_id", "=", ownerId)
      .executeTakeFirst();
    return row === undefined ? noPrivacy : fromRow(row).privacy;
  }

  /**
   * Returns the workspaces that keep prompts and answers, each with the wall time since which it
   * does; none that requires zero data retention.
   */
  async contentsSince(): Promise<Map<string, number>> {
    const rows = await this.database
      .selectFrom("privacy_settings")
      .select(["workspace_id", "contents_since_ms"])
      .whereRef("owner_id", "=", "workspace_id")
      .where("contents_since_ms", ">", 0)
      .where("zdr", "=", 0)
      .execute();
    return new Map(rows.map((row) => [row.workspace_id, Number(row.contents_since_ms)]));
  }

  /** Writes all settings of a workspace or a key. */
  async save(
    { ownerId, workspaceId }: PrivacyOwner,
    { privacy, nowMs }: { privacy: Privacy; nowMs: number },
  ): Promise<void> {
    const values = {
      zdr: privacy.zdr ? 1 : 0,
      blocked_providers: JSON.stringify(privacy.blockedProviders),
      updated_at_ms: nowMs,
      contents_since_ms: privacy.contentsSinceMs ?? 0,
    };
    await this.database
      .insertInto("privacy_settings")
      .values({ owner_id: ownerId, workspace_id: workspaceId, ...values })
      .onConflict((conflict) => conflict.column("owner_id").doUpdateSet(values))
      .execute();
  }
}
