import type { Kysely } from "kysely";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { mayBeId, newId } from "../../platform/kernel/ids.ts";

/** How far an incident is understood. */
export const noticeStates = ["investigating", "identified", "monitoring", "resolved"] as const;
type NoticeState = (typeof noticeStates)[number];

/** What was said of an incident at one time. */
export interface NoticeUpdate {
  atMs: number;
  state: NoticeState;
  text: string;
}

/** An incident that operators describe by hand. */
export interface IncidentNotice {
  id: string;
  title: string;
  state: NoticeState;
  /** The newest one first. */
  updates: readonly NoticeUpdate[];
  startedAtMs: number;
  resolvedAtMs: number | null;
}

interface NoticeRow {
  id: string;
  title: string;
  state: string;
  updates: string;
  started_at_ms: number;
  resolved_at_ms: number | null;
}

/** The table of the incidents. */
export interface NoticeTables {
  incident_notices: NoticeRow;
}

const listMax = 100;

const noNotice = (): GatewayError =>
  new GatewayError("not_found", "There is no such incident. GET /admin/incidents lists them.");

const fromRow = (row: NoticeRow): IncidentNotice => ({
  id: row.id,
  title: row.title,
  state: noticeStates.find((state) => state === row.state) ?? "investigating",
  updates: JSON.parse(row.updates) as NoticeUpdate[],
  startedAtMs: Number(row.started_at_ms),
  resolvedAtMs: row.resolved_at_ms === null ? null : Number(row.resolved_at_ms),
});

/** Stores incidents that operators describe, with each update. */
export class IncidentNotices {
  constructor(private readonly database: Kysely<NoticeTables>) {}

  /** Returns those that last or ended after a time, the newest first; at most 100. */
  async since(sinceMs: number): Promise<IncidentNotice[]> {
    const rows = await this.database
      .selectFrom("incident_notices")
      .selectAll()
      .where((row) =>
        row.or([row("resolved_at_ms", "is", null), row("resolved_at_ms", ">=", sinceMs)]),
      )
      .orderBy("started_at_ms", "desc")
      .limit(listMax)
      .execute();
    return rows.map(fromRow);
  }

  /** Begins one. */
  async begin({
    title,
    ...update
  }: Omit<NoticeUpdate, "atMs"> & { title: string; atMs: number }): Promise<IncidentNotice> {
    const notice: IncidentNotice = {
      id: newId("inc", update.atMs),
      title,
      state: update.state,
      updates: [update],
      startedAtMs: update.atMs,
      resolvedAtMs: update.state === "resolved" ? update.atMs : null,
    };
    await this.database
      .insertInto("incident_notices")
      .values({ id: notice.id, title, started_at_ms: update.atMs, ...changedRow(notice) })
      .execute();
    return notice;
  }

  /** Adds an update, beside those that others add meanwhile. Throws `not_found`. */
  update(id: string, update: NoticeUpdate): Promise<IncidentNotice> {
    if (!mayBeId(id)) throw noNotice();
    return this.database.transaction().execute(async (transaction) => {
      // The write locks the row, so that another update waits and then reads this one.
      const row = await transaction
        .updateTable("incident_notices")
        .set(({ ref }) => ({ title: ref("title") }))
        .where("id", "=", id)
        .returningAll()
        .executeTakeFirst();
      if (row === undefined) throw noNotice();
      const before = fromRow(row);
      const after: IncidentNotice = {
        ...before,
        state: update.state,
        updates: [update, ...before.updates],
        resolvedAtMs: update.state === "resolved" ? update.atMs : null,
      };
      await transaction
        .updateTable("incident_notices")
        .set(changedRow(after))
        .where("id", "=", id)
        .execute();
      return after;
    });
  }

  /** Deletes one with its updates. Throws `not_found`. */
  async remove(id: string): Promise<void> {
    if (!mayBeId(id)) throw noNotice();
    const { numDeletedRows } = await this.database
      .deleteFrom("incident_notices")
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    if (numDeletedRows === 0n) throw noNotice();
  }
}

const changedRow = ({ state, updates, resolvedAtMs }: IncidentNotice) => ({
  state,
  updates: JSON.stringify(updates),
  resolved_at_ms: resolvedAtMs,
});
