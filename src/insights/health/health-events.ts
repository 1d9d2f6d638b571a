import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import { newId } from "../../platform/kernel/ids.ts";
import type { StatusChange, UpstreamStatus } from "./provider-health.ts";
import { healthThresholds } from "./thresholds.ts";

/** The stored status changes. */
export interface HealthEventTables {
  health_events: {
    id: string;
    at_ms: number;
    upstream_id: string;
    from_status: string;
    to_status: string;
    message: string | null;
  };
}

/** A status change as it is kept. */
export interface HealthEvent extends StatusChange {
  atMs: number;
}

/** A period in which an upstream was not healthy. */
export interface Incident {
  upstreamId: string;
  startedMs: number;
  /** Undefined while it lasts. */
  endedMs: number | undefined;
  worst: "degraded" | "down";
  /** The distinct messages about it, oldest first. */
  messages: string[];
}

const { eventsShown, eventsKept } = healthThresholds;

/**
 * Status changes, newest first. They are shown from memory, and stored so that a restart loses
 * none.
 */
export class HealthEvents {
  private readonly options: {
    database: Kysely<HealthEventTables>;
    clock: Clock;
    onError(error: unknown): void;
  };
  private readonly newestFirst: HealthEvent[];
  private writing: Promise<void> = Promise.resolve();

  private constructor(options: HealthEvents["options"], newestFirst: HealthEvent[]) {
    this.options = options;
    this.newestFirst = newestFirst;
  }

  /** Loads the stored changes, and deletes those beyond the limit. */
  static async open(options: HealthEvents["options"]): Promise<HealthEvents> {
    const rows = await options.database
      .selectFrom("health_events")
      .selectAll()
      .orderBy("id", "desc")
      .limit(eventsKept)
      .execute();
    const oldest = rows.at(-1);
    if (oldest !== undefined && rows.length === eventsKept) {
      await options.database.deleteFrom("health_events").where("id", "<", oldest.id).execute();
    }
    return new HealthEvents(
      options,
      rows.map((row) => ({
        atMs: row.at_ms,
        upstreamId: row.upstream_id,
        from: row.from_status as UpstreamStatus,
        to: row.to_status as UpstreamStatus,
        message: row.message ?? undefined,
      })),
    );
  }

  /** Adds a change, which is shown at once and written in the background. */
  add(change: StatusChange): void {
    // Ids begin with the time, so events of one moment are given different times to keep their
    // order.
    const atMs = Math.max(this.options.clock.nowMs(), (this.newestFirst[0]?.atMs ?? 0) + 1);
    this.newestFirst.unshift({ ...change, atMs });
    this.newestFirst.length = Math.min(this.newestFirst.length, eventsKept);
    this.writing = this.writing
      .then(() => this.write(change, atMs))
      .catch((error: unknown) => this.options.onError(error));
  }

  /** Returns the newest changes, as many as the snapshot shows. */
  shown(): readonly HealthEvent[] {
    return this.newestFirst.slice(0, eventsShown);
  }

  /**
   * Returns the periods in which an upstream was not healthy, newest first, from all changes that
   * are kept.
   */
  incidents(): Incident[] {
    const found: Incident[] = [];
    const open = new Map<string, Incident>();
    for (const { atMs, upstreamId, to, message } of this.newestFirst.toReversed()) {
      const current = open.get(upstreamId);
      if (to === "healthy" || to === "unknown") {
        if (current !== undefined) current.endedMs = atMs;
        open.delete(upstreamId);
      } else if (current === undefined) {
        const messages = message === undefined ? [] : [message];
        const incident: Incident = {
          upstreamId,
          startedMs: atMs,
          endedMs: undefined,
          worst: to,
          messages,
        };
        open.set(upstreamId, incident);
        found.push(incident);
      } else {
        if (to === "down") current.worst = "down";
        if (message !== undefined && !current.messages.includes(message))
          current.messages.push(message);
      }
    }
    return found.toReversed();
  }

  /** Returns the last known status of each upstream. */
  lastStatuses(): ReadonlyMap<string, UpstreamStatus> {
    return new Map(this.newestFirst.toReversed().map(({ upstreamId, to }) => [upstreamId, to]));
  }

  /** Resolves when every change was written or could not be. */
  written(): Promise<void> {
    return this.writing;
  }

  private async write(
    { upstreamId, from, to, message }: StatusChange,
    atMs: number,
  ): Promise<void> {
    await this.options.database
      .insertInto("health_events")
      .values({
        id: newId("hev", atMs),
        at_ms: atMs,
        upstream_id: upstreamId,
        from_status: from,
        to_status: to,
        message: message ?? null,
      })
      .execute();
  }
}
