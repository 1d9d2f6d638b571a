import type { Kysely } from "kysely";

/** Rows of requests with an idempotency key. */
export interface IdempotencyTables {
  idempotent_requests: {
    workspace_id: string;
    /** Id of the credential or the person that asked. */
    actor_id: string;
    /** Keyed hashes of the idempotency key and of the request. */
    key_hash: string;
    fingerprint: string;
    started_at_ms: number;
    state: "started" | "answered" | "unknown";
    /** The answer, sealed; null until there is one. */
    answer: string | null;
  };
}

type Row = IdempotencyTables["idempotent_requests"];

/** What names a row. */
export type RequestName = Pick<Row, "workspace_id" | "actor_id" | "key_hash">;

/** Requests with an idempotency key at rest. */
export class IdempotentRequestStore {
  private readonly database: Kysely<IdempotencyTables>;

  constructor(database: Kysely<IdempotencyTables>) {
    this.database = database;
  }

  /** Whether this request is the first with its name; of several at once, on whichever gateways, one is. */
  async start(row: RequestName & Pick<Row, "fingerprint" | "started_at_ms">): Promise<boolean> {
    const started = await this.database
      .insertInto("idempotent_requests")
      .values({ ...row, state: "started", answer: null })
      .onConflict((conflict) => conflict.doNothing())
      .returning("key_hash")
      .executeTakeFirst();
    return started !== undefined;
  }

  find({ workspace_id, actor_id, key_hash }: RequestName): Promise<Row | undefined> {
    return this.database
      .selectFrom("idempotent_requests")
      .selectAll()
      .where("workspace_id", "=", workspace_id)
      .where("actor_id", "=", actor_id)
      .where("key_hash", "=", key_hash)
      .executeTakeFirst();
  }

  async end(
    { workspace_id, actor_id, key_hash }: RequestName,
    outcome: Pick<Row, "state" | "answer">,
  ): Promise<void> {
    await this.database
      .updateTable("idempotent_requests")
      .set(outcome)
      .where("workspace_id", "=", workspace_id)
      .where("actor_id", "=", actor_id)
      .where("key_hash", "=", key_hash)
      .execute();
  }

  /** Deletes one row, or where `startedBeforeMs` is named, only if it is that old. */
  async remove(
    { workspace_id, actor_id, key_hash }: RequestName,
    startedBeforeMs = Number.MAX_SAFE_INTEGER,
  ): Promise<void> {
    await this.database
      .deleteFrom("idempotent_requests")
      .where("workspace_id", "=", workspace_id)
      .where("actor_id", "=", actor_id)
      .where("key_hash", "=", key_hash)
      .where("started_at_ms", "<", startedBeforeMs)
      .execute();
  }

  async removeOlder(startedBeforeMs: number): Promise<void> {
    await this.database
      .deleteFrom("idempotent_requests")
      .where("started_at_ms", "<", startedBeforeMs)
      .execute();
  }
}
