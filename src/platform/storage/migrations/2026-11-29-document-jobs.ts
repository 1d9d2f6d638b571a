import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

/** Document jobs; the long texts stand last, so that a look at a job's state reads what is before them and no more. */
export const documentJobs: Migration = {
  name: "2026-11-29-document-jobs",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "document_jobs",
      columns: {
        id: "text not null primary key",
        workspace_id: "text not null",
        idempotency_key: "text not null",
        body_hash: "text not null",
        created_at_ms: "integer not null",
        ended_at_ms: "integer",
        status: "text not null",
        provider: "text",
        pages: "integer",
        failure: "text",
        failure_told: "integer not null",
        body: "text",
        result: "text",
      },
      constraints: ["unique (workspace_id, idempotency_key)"],
    });
    await sql`create index document_jobs_under_way on document_jobs (id) where status in ('queued', 'running')`.execute(
      database,
    );
    await sql`create index document_jobs_by_end on document_jobs (ended_at_ms) where ended_at_ms is not null`.execute(
      database,
    );
  },
};
