import type { Kysely } from "kysely";
import type { AllowedRange } from "./ip-allowlist.ts";

interface IpAllowlistRow {
  id: string;
  workspace_id: string;
  cidr: string;
  description: string | null;
  created_at_ms: number;
}

/** Rows of allowlists. */
export interface IpAllowlistTables {
  ip_allowlist: IpAllowlistRow;
}

const fromRow = (row: IpAllowlistRow): AllowedRange => ({
  id: row.id,
  workspaceId: row.workspace_id,
  cidr: row.cidr,
  description: row.description,
  createdAtMs: row.created_at_ms,
});

/** Allowlists at rest. */
export class IpAllowlistStore {
  private readonly database: Kysely<IpAllowlistTables>;

  constructor(database: Kysely<IpAllowlistTables>) {
    this.database = database;
  }

  /** Every entry of every workspace, the newest first. */
  async loadAll(): Promise<AllowedRange[]> {
    const rows = await this.database
      .selectFrom("ip_allowlist")
      .selectAll()
      .orderBy("created_at_ms", "desc")
      .orderBy("id", "desc")
      .execute();
    return rows.map(fromRow);
  }

  /** The entries of one workspace, the newest first. */
  async list(workspaceId: string): Promise<AllowedRange[]> {
    const rows = await this.database
      .selectFrom("ip_allowlist")
      .selectAll()
      .where("workspace_id", "=", workspaceId)
      .orderBy("created_at_ms", "desc")
      .orderBy("id", "desc")
      .execute();
    return rows.map(fromRow);
  }

  async insert(entry: AllowedRange): Promise<void> {
    await this.database
      .insertInto("ip_allowlist")
      .values({
        id: entry.id,
        workspace_id: entry.workspaceId,
        cidr: entry.cidr,
        description: entry.description,
        created_at_ms: entry.createdAtMs,
      })
      .execute();
  }

  async remove(id: string): Promise<void> {
    await this.database.deleteFrom("ip_allowlist").where("id", "=", id).execute();
  }
}
