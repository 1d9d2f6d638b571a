import type { Kysely } from "kysely";
import type { AddStatement, CommitQueue, CommitUnit } from "../../platform/storage/commit-queue.ts";
import type { GatewayTables } from "../../platform/storage/database-epoch.ts";
import { generationInsert } from "../generation-record.ts";

/** The records that wait for the archive. */
export interface OutboxTables {
  archive_outbox: {
    generation_id: string;
    workspace_id: string;
    records: number;
    /** The insert that a record belongs to; null until that is decided. */
    batch: string | null;
  };
}

/**
 * Adds a record to the outbox by means of the sums: a commit carries the record's name in the row
 * of growth that it appends anyway, and the fold turns it into a row of the outbox. So a record is
 * in the outbox if and only if it was committed, by any gateway and at any time.
 */
export const archiveOutboxAdd: AddStatement = {
  name: "archive-outbox",
  table: "archive_outbox",
  keyColumns: ["generation_id", "workspace_id"],
  sumColumns: ["records"],
};

/** The name of the fact that an archive has been given every record of the database. */
export const archiveFilledName = "archive_filled";

const idAt = generationInsert.columns.indexOf("id");
const workspaceAt = generationInsert.columns.indexOf("workspace_id");

function withOutbox(unit: CommitUnit): CommitUnit {
  const records = unit.inserts.filter(({ statement }) => statement === generationInsert);
  if (records.length === 0) return unit;
  const waiting = records.map(({ values }) => ({
    statement: archiveOutboxAdd,
    key: [values[idAt] ?? null, values[workspaceAt] ?? null],
    sums: [1],
  }));
  return { inserts: unit.inserts, adds: [...unit.adds, ...waiting] };
}

/** Returns a queue whose commits add their generation records to the outbox. */
export const archivingCommits = (commits: CommitQueue): CommitQueue => ({
  commit: (unit, options) => commits.commit(withOutbox(unit), options),
  flush: () => commits.flush(),
  admits: () => commits.admits(),
  get pendingCount() {
    return commits.pendingCount;
  },
  get rejectedCount() {
    return commits.rejectedCount;
  },
  get stalled() {
    return commits.stalled;
  },
});

/**
 * Clears what waits for an archive that is no longer configured. A later archive is given every
 * record that the database has then. Prompts and answers that waited stay, and are kept here.
 */
export async function forgetOutbox(database: Kysely<OutboxTables & GatewayTables>): Promise<void> {
  const { numDeletedRows } = await database
    .deleteFrom("gateway_facts")
    .where("name", "=", archiveFilledName)
    .executeTakeFirst();
  if (numDeletedRows === 0n) return;
  await database.deleteFrom("archive_outbox").execute();
}
