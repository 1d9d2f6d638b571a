import type { Kysely } from "kysely";
import type { AllowedRange, IpAllowlistRow, IpAllowlistTables } from "./ip-allowlist.ts";

const fromRow = (row: IpAllowlistRow): AllowedRange => ({
  id: row.id,
  workspaceId: row.workspace_id,
  cidr: row.cidr,
  description: row.description,
  createdAtMs: row.created_at_ms,
});

/** Stores allowlists. */
export class IpAllowlistStore {
  constructor(private readonly database: Kysely<IpAllowlistTables>) {}

  /** Returns every entry of every workspace, newest first. */
  async loadAll(): Promise<AllowedRange[]> {
    return (await this.newestFirst().execute()).map(fromRow);
  }

  /** Returns the entries of one workspace, newest first. */
  async list(workspaceId: string): Promise<AllowedRange[]> {
    const own = this.newestFirst().where("workspace_id", "=", workspaceId);
    return (await own.execute()).map(fromRow);
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

  private newestFirst() {
    return this.database
      .selectFrom("ip_allowlist")
      .selectAll()
      .orderBy("created_at_ms", "desc")
      .orderBy("id", "desc");
  }
}
