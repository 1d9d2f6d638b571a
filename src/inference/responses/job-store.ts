import { sql, type Kysely } from "kysely";
import type { Claims } from "../../platform/shared-state/shared-claims.ts";
import type { ResponseEvent } from "./response-event.ts";
import { itemRows, type ResponseTables } from "./response-store.ts";
import type { EndedStatus, ResponseRecord } from "./stored-response.ts";

/** What a background job is run from. */
export interface StoredJob {
  keyId: string;
  createdAtMs: number;
  requestText: string;
  presetId: string | undefined;
  /** How often it was begun, this time included. */
  run: number;
}

/** How a background response ended. */
export interface JobEnd {
  status: EndedStatus;
  record: ResponseRecord;
  completedAtMs: number;
  /** Events that were not kept yet. */
  events: readonly ResponseEvent[];
}

/**
 * The condition of the partial index, in its very words: a bound parameter would keep the index
 * from being used.
 */
const underWay = sql<boolean>`status in ('queued', 'in_progress')`;

/**
 * Rows of events that are read at once: enough for a fast replay, few enough to hold for a slow
 * reader.
 */
const eventRowsMax = 8;

/** Events of one row: their order, name and data. */
type PackedEvents = [sequenceNumber: number, name: string, data: string][];

/** Background responses under way, and their events. The runner alone changes them. */
export class JobStore {
  private readonly database: Kysely<ResponseTables>;
  private readonly claims: Claims | undefined;

  /** With claims, jobs of other gateways that live are left alone. */
  constructor(database: Kysely<ResponseTables>, claims?: Claims) {
    this.database = database;
    this.claims = claims;
  }

  /**
   * Puts back what an earlier process left half done, without its events, and gives the ids of all
   * queued jobs, oldest first.
   */
  async recover(): Promise<string[]> {
    const jobs = await this.database
      .selectFrom("stored_responses")
      .select(["id", "status"])
      .where(underWay)
      .orderBy("id")
      .execute();
    const open: string[] = [];
    for (const { id, status } of jobs) {
      if (status === "in_progress") {
        if (!(await this.isLeftBehind(id))) continue;
        await this.requeue(id);
      }
      open.push(id);
    }
    return open;
  }

  /** Whether no gateway works on a job that is in progress. */
  private async isLeftBehind(id: string): Promise<boolean> {
    if (this.claims === undefined) return true;
    return !this.claims.holds(claimOf(id)) && (await this.claims.take(claimOf(id)));
  }

  /**
   * Marks a queued job as in progress; undefined when it is not queued any more, or another gateway
   * has it.
   */
  async take(id: string): Promise<StoredJob | undefined> {
    if (this.claims !== undefined && !(await this.claims.take(claimOf(id)))) return undefined;
    const row = await this.database
      .updateTable("stored_responses")
      .set({ status: "in_progress", runs: sql<number>`runs + 1` })
      .where("id", "=", id)
      .where("status", "=", "queued")
      .returning(["key_id", "created_at_ms", "request", "preset_id", "runs"])
      .executeTakeFirst();
    if (row === undefined) return undefined;
    return {
      keyId: row.key_id,
      createdAtMs: row.created_at_ms,
      requestText: row.request ?? "",
      presetId: row.preset_id ?? undefined,
      run: row.runs,
    };
  }

  /** Puts a job that is in progress back in the queue, without its events. */
  async requeue(id: string): Promise<void> {
    await this.database.transaction().execute((transaction) => putBack(transaction, id));
    this.claims?.release(claimOf(id));
  }

  /** Lets other gateways have a job. */
  letGo(id: string): void {
    this.claims?.release(claimOf(id));
  }

  /** The record of a job that is under way; undefined when it has ended or is gone. */
  async record(id: string): Promise<ResponseRecord | undefined> {
    const row = await this.database
      .selectFrom("stored_responses")
      .select("record")
      .where("id", "=", id)
      .where(underWay)
      .executeTakeFirst();
    return row === undefined ? undefined : (JSON.parse(row.record) as ResponseRecord);
  }

  /** Keeps events in the order in which they came. */
  async append(id: string, events: readonly ResponseEvent[]): Promise<void> {
    await appendEvents(this.database, { id, events });
  }

  /**
   * Ends a response, with its last events and the items that can be referred to from now on;
   * nothing happens to one that has ended or is gone.
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

  /** The next stored events after a sequence number; none at the end of what is stored. */
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

const claimOf = (id: string): string => `response:${id}`;

async function putBack(database: Kysely<ResponseTables>, id: string): Promise<void> {
  await database.deleteFrom("stored_response_events").where("response_id", "=", id).execute();
  await database
    .updateTable("stored_responses")
    .set({ status: "queued" })
    .where("id", "=", id)
    .where("status", "=", "in_progress")
    .execute();
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
