import type { Kysely } from "kysely";
import type { Privacy, PrivacyOwner } from "./privacy.ts";

/** Rows of privacy settings. */
export interface PrivacyTables {
  privacy_settings: {
    owner_id: string;
    workspace_id: string;
    zdr: number;
    blocked_providers: string;
    updated_at_ms: number;
  };
}

/** The demands of a workspace or a key. */
interface OwnedPrivacy {
  ownerId: string;
  privacy: Privacy;
}

/** Privacy settings at rest. */
export class PrivacyStore {
  private readonly database: Kysely<PrivacyTables>;

  constructor(database: Kysely<PrivacyTables>) {
    this.database = database;
  }

  /** The demands of every workspace and key that has any. */
  loadAll(): Promise<OwnedPrivacy[]> {
    return this.load(undefined);
  }

  /** The demands of a workspace and of its keys. */
  list(workspaceId: string): Promise<OwnedPrivacy[]> {
    return this.load(workspaceId);
  }

  private async load(workspaceId: string | undefined): Promise<OwnedPrivacy[]> {
    let query = this.database.selectFrom("privacy_settings").selectAll();
    if (workspaceId !== undefined) query = query.where("workspace_id", "=", workspaceId);
    const rows = await query.execute();
    return rows.map((row) => ({
      ownerId: row.owner_id,
      privacy: {
        zdr: row.zdr === 1,
        blockedProviders: JSON.parse(row.blocked_providers) as string[],
      },
    }));
  }

  /** Writes the demands of a workspace or a key as a whole. */
  async save(
    { ownerId, workspaceId }: PrivacyOwner,
    { privacy, nowMs }: { privacy: Privacy; nowMs: number },
  ): Promise<void> {
    const values = {
      zdr: privacy.zdr ? 1 : 0,
      blocked_providers: JSON.stringify(privacy.blockedProviders),
      updated_at_ms: nowMs,
    };
    await this.database
      .insertInto("privacy_settings")
      .values({ owner_id: ownerId, workspace_id: workspaceId, ...values })
      .onConflict((conflict) => conflict.column("owner_id").doUpdateSet(values))
      .execute();
  }
}
