import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import type { Kysely } from "kysely";
import {
  type GenerationRecord,
  type GenerationTables,
  generationIdOf,
  generationIdPattern,
  lowestIdAt,
  recordOfRow,
} from "./generation-record.ts";

/** Reads generation records. They are written through the commit queue only. */
export class GenerationStore {
  private readonly database: Kysely<GenerationTables>;
  private readonly commits: CommitQueue;

  constructor(options: { database: Kysely<GenerationTables>; commits: CommitQueue }) {
    this.database = options.database;
    this.commits = options.commits;
  }

  /**
   * Returns a record of the workspace by any form of its id; undefined when the workspace has none.
   */
  async find(workspaceId: string, id: string): Promise<GenerationRecord | undefined> {
    const generationId = generationIdOf(id);
    if (!generationIdPattern.test(generationId)) return undefined;
    // Free requests do not wait for their row, so a client may ask for it before it is written.
    if (this.commits.pendingCount > 0) await this.commits.flush();
    const row = await this.database
      .selectFrom("generations")
      .selectAll()
      .where("id", "=", generationId)
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    return row && recordOfRow(row);
  }

  /**
   * Deletes at most `limit` records of a workspace that are older than a wall time, oldest first;
   * returns how many. Ids begin with the time, so the primary key finds them.
   */
  async deleteBefore({
    workspaceId,
    beforeMs,
    limit,
  }: {
    workspaceId: string;
    beforeMs: number;
    limit: number;
  }): Promise<number> {
    const oldestKept = lowestIdAt(beforeMs);
    const oldest = await this.database
      .selectFrom("generations")
      .select("id")
      .where("workspace_id", "=", workspaceId)
      .where("id", "<", oldestKept)
      .orderBy("id")
      .limit(limit)
      .execute();
    const last = oldest.at(-1);
    if (last === undefined) return 0;
    await this.database
      .deleteFrom("generations")
      .where("workspace_id", "=", workspaceId)
      .where("id", "<=", last.id)
      .execute();
    return oldest.length;
  }
}
