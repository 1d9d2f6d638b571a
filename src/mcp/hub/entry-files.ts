import type { Kysely, Transaction } from "kysely";
import type { Entry, FileBundle, HubTables, SkillFile } from "./entry.ts";

type EntryFileTables = Pick<HubTables, "hub_files">;

/** Stores files beside skills' documents. */
export class EntryFiles {
  constructor(private readonly database: Kysely<EntryFileTables>) {}

  /** Returns the files of a bundle, by path. */
  async read({ id }: FileBundle): Promise<SkillFile[]> {
    const rows = await this.database
      .selectFrom("hub_files")
      .select(["path", "data"])
      .where("bundle_id", "=", id)
      .orderBy("path")
      .execute();
    return rows.map(({ path, data }) => ({ path, data: Buffer.from(data, "base64") }));
  }

  /** Returns the bytes of all files of a workspace. */
  async bytesOf(workspaceId: string): Promise<number> {
    const { bytes } = await this.database
      .selectFrom("hub_files")
      .select(({ fn }) => fn.sum<number | null>("bytes").as("bytes"))
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirstOrThrow();
    return Number(bytes ?? 0);
  }

  /** Stores the files of a new entry's bundle. */
  async insert(
    transaction: Transaction<EntryFileTables>,
    { id, workspaceId, bundle }: Entry,
    files: readonly SkillFile[],
  ): Promise<void> {
    if (bundle === null) return;
    for (const { path, data } of files) {
      await transaction
        .insertInto("hub_files")
        .values({
          bundle_id: bundle.id,
          path,
          entry_id: id,
          workspace_id: workspaceId,
          bytes: data.length,
          data: data.toString("base64"),
        })
        .execute();
    }
  }

  /** Deletes the files of entries. */
  async remove(
    transaction: Transaction<EntryFileTables>,
    entryIds: readonly string[],
  ): Promise<void> {
    await transaction.deleteFrom("hub_files").where("entry_id", "in", entryIds).execute();
  }
}
