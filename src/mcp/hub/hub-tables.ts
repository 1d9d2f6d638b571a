import type { EntryKind, ReviewStatus, Visibility, Entry, FileBundle, SkillFile } from "./entry.ts";
import type { Kysely, Transaction } from "kysely";

/** Rows of files beside skills' documents. */
interface EntryFileTables {
  hub_files: {
    bundle_id: string;
    path: string;
    entry_id: string;
    workspace_id: string;
    bytes: number;
    data: string;
  };
}

/** Files beside skills' documents at rest. */
export class EntryFiles {
  private readonly database: Kysely<EntryFileTables>;

  constructor(database: Kysely<EntryFileTables>) {
    this.database = database;
  }

  /** Files of a bundle, by path. */
  async read({ id }: FileBundle): Promise<SkillFile[]> {
    const rows = await this.database
      .selectFrom("hub_files")
      .select(["path", "data"])
      .where("bundle_id", "=", id)
      .orderBy("path")
      .execute();
    return rows.map(({ path, data }) => ({ path, data: Buffer.from(data, "base64") }));
  }

  /** Bytes of all files that a workspace keeps. */
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

/** Rows of entries, their versions and stars, and of hubs. */
export interface HubTables extends EntryFileTables {
  hubs: {
    id: string;
    workspace_id: string;
    person_id: string;
    slug: string;
    name: string;
    description: string | null;
    visibility: Visibility;
    created_at_ms: number;
    updated_at_ms: number;
  };
  hub_entries: {
    id: string;
    kind: EntryKind;
    workspace_id: string;
    person_id: string;
    hub_id: string | null;
    slug: string | null;
    visibility: Visibility;
    status: ReviewStatus | null;
    version: number;
    public_version: number | null;
    stars: number;
    forks: number;
    forked_from: string | null;
    source_ref: string | null;
    review_note: string | null;
    reviewed_by: string | null;
    reviewed_at_ms: number | null;
    created_at_ms: number;
    updated_at_ms: number;
  };
  hub_versions: {
    entry_id: string;
    version: number;
    person_id: string;
    created_at_ms: number;
    title: string;
    description: string | null;
    category: string | null;
    tags: string;
    details: string;
    body: string;
  };
  hub_stars: { person_id: string; workspace_id: string; entry_id: string; created_at_ms: number };
  workspaces: { id: string; blocked_at_ms: number | null };
}
