import { sql, type Kysely } from "kysely";
import type { ErrorCode } from "../../platform/kernel/errors.ts";
import type { Leases } from "../../platform/shared-state/shared-leases.ts";

/** The states of a job: waiting, at the provider, and its two ends. */
type DocumentJobStatus = "queued" | "running" | "completed" | "failed";

/** The failure of a job, as its caller sees it. */
export interface ParseFailure {
  code: ErrorCode;
  message: string;
  /** The provider's own words and status, where it answered. */
  upstreamMessage: string | null;
  upstreamStatus: number | null;
  retryAfterSeconds?: number;
  /** Whether the same request would fail in the same way again. */
  final: boolean;
}

/** A request to parse a document, and its outcome. */
export interface DocumentJob {
  /** A `job_` id, which is also the key that the provider receives. */
  id: string;
  workspaceId: string;
  /** The SHA-256 of the request's body, in hexadecimal. */
  bodyHash: string;
  createdAtMs: number;
  status: DocumentJobStatus;
  /** The slug of the provider that was called; null before that. */
  providerId: string | null;
  /** The pages of the document; null while unknown. */
  pages: number | null;
  failure: ParseFailure | null;
  /** Whether the failure was answered once. After that, a repeated request is a new attempt. */
  failureShown: boolean;
}

/** A job before it is stored. */
export interface NewDocumentJob {
  id: string;
  workspaceId: string;
  /** The caller's own key, or the job's id. */
  idempotencyKey: string;
  bodyHash: string;
  /** The request's body, as it was received. */
  bodyText: string;
  createdAtMs: number;
}

/** The table of document jobs. */
export interface DocumentJobTables {
  document_jobs: {
    id: string;
    workspace_id: string;
    idempotency_key: string;
    body_hash: string;
    created_at_ms: number;
    ended_at_ms: number | null;
    status: string;
    provider: string | null;
    pages: number | null;
    failure: string | null;
    failure_told: number;
    body: string | null;
    result: string | null;
  };
}

/** A job that this gateway has taken, with all that is needed to run it. */
export interface TakenJob {
  workspaceId: string;
  createdAtMs: number;
  bodyText: string;
}

/** The end of a job; `text` is the provider's answer as it was received. */
export type JobEnd = { endedAtMs: number; providerId: string | null } & (
  | { kind: "completed"; text: string; pages: number | null }
  | { kind: "failed"; failure: ParseFailure }
);

const headColumns = [
  "id",
  "workspace_id",
  "body_hash",
  "created_at_ms",
  "status",
  "provider",
  "pages",
  "failure",
  "failure_told",
] as const satisfies readonly (keyof DocumentJobTables["document_jobs"])[];

type Head = Pick<DocumentJobTables["document_jobs"], (typeof headColumns)[number]>;

/** The condition of the partial index, word for word. */
const underWay = sql<boolean>`status in ('queued', 'running')`;

const leaseOf = (id: string): string => `document:${id}`;

/** Stores document jobs. Callers' requests are looked up within their workspace. */
export class DocumentJobStore {
  private readonly leases: Leases | undefined;

  /** Opens the store; `leases` protect the jobs of other live gateways. */
  constructor(
    private readonly database: Kysely<DocumentJobTables>,
    leases?: Leases,
  ) {
    this.leases = leases;
  }

  /** Stores a queued job. Returns false when the workspace has used its key before. */
  async insert({
    id,
    workspaceId,
    idempotencyKey,
    bodyHash,
    bodyText,
    createdAtMs,
  }: NewDocumentJob): Promise<boolean> {
    const inserted = await this.database
      .insertInto("document_jobs")
      .values({
        id,
        workspace_id: workspaceId,
        idempotency_key: idempotencyKey,
        body_hash: bodyHash,
        created_at_ms: createdAtMs,
        ended_at_ms: null,
        status: "queued",
        provider: null,
        pages: null,
        failure: null,
        failure_told: 0,
        body: bodyText,
        result: null,
      })
      .onConflict((conflict) => conflict.columns(["workspace_id", "idempotency_key"]).doNothing())
      .returning("id")
      .executeTakeFirst();
    return inserted !== undefined;
  }

  /** Returns the workspace's job of a key; undefined when it has none. */
  async findByKey(workspaceId: string, idempotencyKey: string): Promise<DocumentJob | undefined> {
    const row = await this.database
      .selectFrom("document_jobs")
      .select(headColumns)
      .where("workspace_id", "=", workspaceId)
      .where("idempotency_key", "=", idempotencyKey)
      .executeTakeFirst();
    return row === undefined ? undefined : jobOf(row);
  }

  /** Returns a job by its id; undefined when it was deleted. */
  async find(id: string): Promise<DocumentJob | undefined> {
    const row = await this.database
      .selectFrom("document_jobs")
      .select(headColumns)
      .where("id", "=", id)
      .executeTakeFirst();
    return row === undefined ? undefined : jobOf(row);
  }

  /**
   * Returns the provider's answer to a completed job, as it was received; undefined when it was
   * deleted.
   */
  async resultText(id: string): Promise<string | undefined> {
    const row = await this.database
      .selectFrom("document_jobs")
      .select("result")
      .where("id", "=", id)
      .executeTakeFirst();
    return row?.result ?? undefined;
  }

  /**
   * Returns ids and workspaces of all unfinished jobs, oldest first. Those that an earlier process
   * was working on are queued again.
   */
  async recover(): Promise<{ id: string; workspaceId: string }[]> {
    const rows = await this.database
      .selectFrom("document_jobs")
      .select(["id", "workspace_id", "status"])
      .where(underWay)
      .orderBy("id")
      .execute();
    const open: { id: string; workspaceId: string }[] = [];
    for (const { id, workspace_id: workspaceId, status } of rows) {
      if (status === "running") {
        if (!(await this.isLeftBehind(id))) continue;
        await this.database
          .updateTable("document_jobs")
          .set({ status: "queued" })
          .where("id", "=", id)
          .where("status", "=", "running")
          .execute();
      }
      open.push({ id, workspaceId });
    }
    return open;
  }

  /** Returns whether a running job has no gateway working on it. */
  private async isLeftBehind(id: string): Promise<boolean> {
    if (this.leases === undefined) return true;
    return !this.leases.holds(leaseOf(id)) && (await this.leases.take(leaseOf(id)));
  }

  /** Releases a job for other gateways. */
  release(id: string): void {
    this.leases?.release(leaseOf(id));
  }

  /**
   * Marks an unfinished job as running; undefined when it has ended or was deleted, or another
   * gateway has it.
   */
  async take(id: string): Promise<TakenJob | undefined> {
    if (this.leases !== undefined && !(await this.leases.take(leaseOf(id)))) return undefined;
    const row = await this.database
      .updateTable("document_jobs")
      .set({ status: "running" })
      .where("id", "=", id)
      .where(underWay)
      .returning(["workspace_id", "created_at_ms", "body"])
      .executeTakeFirst();
    return row === undefined
      ? undefined
      : { workspaceId: row.workspace_id, createdAtMs: row.created_at_ms, bodyText: row.body ?? "" };
  }

  /** Ends an unfinished job. Its body is kept only where it may be retried. */
  async settle(id: string, end: JobEnd): Promise<void> {
    const outcome =
      end.kind === "completed"
        ? { pages: end.pages, result: end.text, body: null }
        : { failure: JSON.stringify(end.failure), ...(end.failure.final ? { body: null } : {}) };
    await this.database
      .updateTable("document_jobs")
      .set({ status: end.kind, ended_at_ms: end.endedAtMs, provider: end.providerId, ...outcome })
      .where("id", "=", id)
      .where(underWay)
      .execute();
  }

  /** Notes that a failure was answered. */
  async markFailureShown(id: string): Promise<void> {
    await this.database
      .updateTable("document_jobs")
      .set({ failure_told: 1 })
      .where("id", "=", id)
      .execute();
  }

  /** Queues a failed job for another attempt; other jobs are not changed. */
  async requeue(id: string): Promise<void> {
    await this.database
      .updateTable("document_jobs")
      .set({ status: "queued", failure: null, failure_told: 0, ended_at_ms: null })
      .where("id", "=", id)
      .where("status", "=", "failed")
      .where("body", "is not", null)
      .execute();
  }

  /** Deletes at most `limit` jobs that ended before a wall time; returns how many. */
  async deleteEndedBefore({
    beforeMs,
    limit,
  }: {
    beforeMs: number;
    limit: number;
  }): Promise<number> {
    const rows = await this.database
      .selectFrom("document_jobs")
      .select("id")
      .where("ended_at_ms", "<", beforeMs)
      .orderBy("ended_at_ms")
      .limit(limit)
      .execute();
    if (rows.length > 0)
      await this.database
        .deleteFrom("document_jobs")
        .where(
          "id",
          "in",
          rows.map(({ id }) => id),
        )
        .execute();
    return rows.length;
  }
}

const jobOf = (row: Head): DocumentJob => ({
  id: row.id,
  workspaceId: row.workspace_id,
  bodyHash: row.body_hash,
  createdAtMs: row.created_at_ms,
  status: row.status as DocumentJobStatus,
  providerId: row.provider,
  pages: row.pages,
  failure: row.failure === null ? null : (JSON.parse(row.failure) as ParseFailure),
  failureShown: row.failure_told === 1,
});
