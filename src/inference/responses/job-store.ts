import { sql, type Kysely } from "kysely";
import type { Leases } from "../../platform/shared-state/shared-leases.ts";
import type { ResponseEvent, EndedStatus, ResponseRecord } from "./stored-response.ts";
import { itemRows, type ResponseTables } from "./response-store.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";

/** A background response, ready to run. */
export interface BackgroundJob {
  responseId: string;
  createdAtMs: number;
  /** 1 for the first run; more where an earlier process ended before the job did. */
  run: number;
  /**
   * The caller that asked for it, with the key's present state; its workspace owns the response.
   */
  caller: LlmKeyCaller;
  /** The text that it was submitted with. */
  requestText: string;
  /** The preset that it named, whose settings are already in the text. */
  presetId: string | undefined;
  /** Whether an earlier run may have called a tool that does more than read. */
  mayHaveActed: boolean;
  /** Resolves when it is durable that this run calls such a tool. */
  beforeActing(): Promise<void>;
}

/** Receives a job's answer. Nothing is accepted any more once the job has ended. */
export interface BackgroundSink {
  /**
   * Takes the next event, with the JSON text of its data as it is to be sent. The data of an event
   * that ends the response contains the record.
   */
  event(name: string, data: string): void;
  /**
   * Takes how the response ended, where no event reports it or the record is to contain more; the
   * last call counts.
   */
  record(status: EndedStatus, record: ResponseRecord): void;
}

/**
 * Runs a job: the inference itself. Resolves when the answer is complete, rejects with its failure.
 * When `signal` is aborted it stops its upstream and settles; its result then counts only where the
 * answer was already complete.
 */
export type RunBackground = (
  job: BackgroundJob,
  sink: BackgroundSink,
  signal: AbortSignal,
) => Promise<void>;

/** The reason for which a job is stopped before its answer is complete. */
export type StopReason = "cancel" | "shutdown";

/** The stored facts from which a background job is run. */
export interface StoredJob {
  keyId: string;
  createdAtMs: number;
  requestText: string;
  presetId: string | undefined;
  /** The number of its starts, this one included. */
  run: number;
  mayHaveActed: boolean;
}

/** The end of a background response. */
interface JobEnd {
  status: EndedStatus;
  record: ResponseRecord;
  completedAtMs: number;
  /** Events that were not stored yet. */
  events: readonly ResponseEvent[];
}

/**
 * The condition of the partial index, word for word: a bound parameter would prevent the use of the
 * index.
 */
const underWay = sql<boolean>`status in ('queued', 'in_progress')`;

/**
 * Rows of events that are read at once: enough for a fast replay, few enough to hold for a slow
 * reader.
 */
const eventRowsMax = 8;

/** The events of one row: their sequence number, name and data. */
type PackedEvents = [sequenceNumber: number, name: string, data: string][];

/** Stores unfinished background responses and their events. Only the runner changes them. */
export class JobStore {
  private readonly leases: Leases | undefined;

  /** Opens the store; `leases` protect the jobs of other live gateways. */
  constructor(
    private readonly database: Kysely<ResponseTables>,
    leases?: Leases,
  ) {
    this.leases = leases;
  }

  /**
   * Resets what an earlier process left unfinished, without its events, and returns the ids of all
   * queued jobs, oldest first. Jobs that run in this process (`runsHere`) are not left, even where
   * their lease has expired while the shared state was away.
   */
  async recover(runsHere: (id: string) => boolean = () => false): Promise<string[]> {
    const jobs = await this.database
      .selectFrom("stored_responses")
      .select(["id", "status"])
      .where(underWay)
      .orderBy("id")
      .execute();
    const open: string[] = [];
    for (const { id, status } of jobs) {
      if (status === "in_progress") {
        if (runsHere(id) || !(await this.isLeftBehind(id))) continue;
        await this.requeue(id);
      }
      open.push(id);
    }
    return open;
  }

  /** Returns whether a job in progress has no gateway working on it. */
  private async isLeftBehind(id: string): Promise<boolean> {
    if (this.leases === undefined) return true;
    return !this.leases.holds(leaseOf(id)) && (await this.leases.take(leaseOf(id)));
  }

  /**
   * Marks a queued job as in progress; undefined when it is not queued any more, or another gateway
   * has it. `isAgain` says that an earlier answer was lost, so that a gateway without others may have
   * marked it then.
   */
  async take(id: string, { isAgain = false } = {}): Promise<StoredJob | undefined> {
    const mayBeMarked = isAgain && this.leases === undefined;
    if (this.leases !== undefined && !(await this.leases.take(leaseOf(id)))) return undefined;
    const row = await this.database
      .updateTable("stored_responses")
      .set({
        status: "in_progress",
        runs: sql<number>`runs + 1`,
        acted: sql<number | null>`case when runs = 0 then 0 else acted end`,
      })
      .where("id", "=", id)
      .where("status", "in", mayBeMarked ? ["queued", "in_progress"] : ["queued"])
      .returning(["key_id", "created_at_ms", "request", "preset_id", "runs", "acted"])
      .executeTakeFirst();
    if (row === undefined) return undefined;
    return {
      keyId: row.key_id,
      createdAtMs: row.created_at_ms,
      requestText: row.request ?? "",
      presetId: row.preset_id ?? undefined,
      run: row.runs,
      mayHaveActed: row.acted !== 0,
    };
  }

  /** Writes down that a job may call a tool that does more than read. */
  async markActed(id: string): Promise<void> {
    await this.database
      .updateTable("stored_responses")
      .set({ acted: 1 })
      .where("id", "=", id)
      .execute();
  }

  /**
   * Returns a job in progress to the queue, without its events; of this gateway alone where it
   * `keeps` it. Does nothing for any other job.
   */
  async requeue(id: string, { keeps = false } = {}): Promise<void> {
    await this.database.transaction().execute((transaction) => putBack(transaction, id));
    if (!keeps) this.release(id);
  }

  /** Releases a job for other gateways. */
  release(id: string): void {
    this.leases?.release(leaseOf(id));
  }

  /** Returns the record of an unfinished job; undefined when it has ended or was deleted. */
  async record(id: string): Promise<ResponseRecord | undefined> {
    const row = await this.database
      .selectFrom("stored_responses")
      .select("record")
      .where("id", "=", id)
      .where(underWay)
      .executeTakeFirst();
    return row === undefined ? undefined : (JSON.parse(row.record) as ResponseRecord);
  }

  /** Whether other gateways may work on jobs of the same database. */
  get isShared(): boolean {
    return this.leases !== undefined;
  }

  /** Returns whether a job is queued or in progress, at any gateway. */
  async isUnderWay(id: string): Promise<boolean> {
    const row = await this.database
      .selectFrom("stored_responses")
      .select("id")
      .where("id", "=", id)
      .where(underWay)
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Returns the number of the last stored event of a job; -1 where there is none. */
  async lastSequence(id: string): Promise<number> {
    const row = await this.database
      .selectFrom("stored_response_events")
      .select("last_sequence")
      .where("response_id", "=", id)
      .orderBy("last_sequence", "desc")
      .limit(1)
      .executeTakeFirst();
    return row === undefined ? -1 : Number(row.last_sequence);
  }

  /** Stores events in the order in which they came. */
  async append(id: string, events: readonly ResponseEvent[]): Promise<void> {
    await appendEvents(this.database, { id, events });
  }

  /**
   * Ends a response, with its last events and the items that can be referred to from now on. Does
   * nothing for one that has ended or was deleted.
   */
  async settle(id: string, { status, record, completedAtMs, events }: JobEnd): Promise<void> {
    const text = JSON.stringify(record);
    await this.database.transaction().execute(async (transaction) => {
      const row = await transaction
        .updateTable("stored_responses")
        .set({
          status,
          record: text,
          completed_at_ms: completedAtMs,
          model: String(record["model"]),
          request: null,
          size_bytes: sql<number>`octet_length(input_items) + ${Buffer.byteLength(text)}`,
        })
        .where("id", "=", id)
        .where(underWay)
        .returning("workspace_id")
        .executeTakeFirst();
      if (row === undefined) return;
      await appendEvents(transaction, { id, events });
      const items = itemRows({ id, workspaceId: row.workspace_id, record });
      if (items.length > 0)
        await transaction.insertInto("stored_response_items").values(items).execute();
    });
  }

  /** Returns the next stored events after a sequence number; none at the end of what is stored. */
  async eventsAfter(id: string, sequenceNumber: number): Promise<ResponseEvent[]> {
    const rows = await this.database
      .selectFrom("stored_response_events")
      .select("events")
      .where("response_id", "=", id)
      .where("last_sequence", ">", sequenceNumber)
      .orderBy("last_sequence")
      .limit(eventRowsMax)
      .execute();
    return rows
      .flatMap(({ events }) => JSON.parse(events) as PackedEvents)
      .filter(([number]) => number > sequenceNumber)
      .map(([number, name, data]) => ({ sequenceNumber: number, name, data }));
  }
}

const leaseOf = (id: string): string => `response:${id}`;

async function putBack(database: Kysely<ResponseTables>, id: string): Promise<void> {
  const { numUpdatedRows } = await database
    .updateTable("stored_responses")
    .set({ status: "queued" })
    .where("id", "=", id)
    .where("status", "=", "in_progress")
    .executeTakeFirstOrThrow();
  // A response that has ended in the meantime keeps its events, which clients may still replay.
  if (numUpdatedRows === 0n) return;
  await database.deleteFrom("stored_response_events").where("response_id", "=", id).execute();
}

async function appendEvents(
  database: Kysely<ResponseTables>,
  { id, events }: { id: string; events: readonly ResponseEvent[] },
): Promise<void> {
  const last = events.at(-1);
  if (last === undefined) return;
  const packed: PackedEvents = events.map(({ sequenceNumber, name, data }) => [
    sequenceNumber,
    name,
    data,
  ]);
  await database
    .insertInto("stored_response_events")
    .values({ response_id: id, last_sequence: last.sequenceNumber, events: JSON.stringify(packed) })
    .execute();
}
