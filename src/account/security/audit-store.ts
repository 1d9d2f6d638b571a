import type { Kysely } from "kysely";
import type { AuditedChange } from "./audit-log.ts";

/** Rows of the audit log. */
export interface AuditTables {
  audit_log: {
    id: string;
    workspace_id: string;
    at_ms: number;
    actor_kind: string;
    actor_id: string;
    actor_label: string;
    address: string;
    action: string;
    target: string | null;
    fields: string;
  };
  audit_outcomes: {
    audit_id: string;
    workspace_id: string;
    at_ms: number;
    status: number;
    target: string | null;
  };
}

/** A change as the log tells it. */
export interface AuditEntry extends AuditedChange {
  /** `aud_` id; sorts by time. */
  id: string;
  atMs: number;
  /** HTTP status of the answer; null while it is under way, and for ever where a crash cut it off. */
  status: number | null;
}

/** Which part of a log is read. */
export interface AuditQuery {
  workspaceId: string;
  /** Entries older than this one; undefined for the newest. */
  before: string | undefined;
  actorId: string | undefined;
  /** Method and path pattern, such as `PATCH /keys/:hash`. */
  action?: string | undefined;
  /** Id of what the change was about. */
  target?: string | undefined;
  /** Wall times in milliseconds; the end is exclusive. */
  fromMs?: number | undefined;
  toMs?: number | undefined;
  limit: number;
}

/** Reads of the audit log; it is written through the commit queue only. */
export class AuditStore {
  private readonly database: Kysely<AuditTables>;

  constructor(database: Kysely<AuditTables>) {
    this.database = database;
  }

  /** Entries of a workspace, the newest first. */
  async list({
    workspaceId,
    before,
    actorId,
    action,
    target,
    fromMs,
    toMs,
    limit,
  }: AuditQuery): Promise<AuditEntry[]> {
    let query = this.database
      .selectFrom("audit_log as entry")
      .leftJoin("audit_outcomes as outcome", (join) =>
        join
          .onRef("outcome.workspace_id", "=", "entry.workspace_id")
          .onRef("outcome.audit_id", "=", "entry.id"),
      )
      .selectAll("entry")
      .select(["outcome.status", "outcome.target as outcome_target"])
      .where("entry.workspace_id", "=", workspaceId);
    if (before !== undefined) query = query.where("entry.id", "<", before);
    if (actorId !== undefined) query = query.where("entry.actor_id", "=", actorId);
    if (action !== undefined) query = query.where("entry.action", "=", action);
    if (target !== undefined) {
      query = query.where((where) =>
        where.or([where("entry.target", "=", target), where("outcome.target", "=", target)]),
      );
    }
    if (fromMs !== undefined) query = query.where("entry.at_ms", ">=", fromMs);
    if (toMs !== undefined) query = query.where("entry.at_ms", "<", toMs);
    const rows = await query.orderBy("entry.id", "desc").limit(limit).execute();
    return rows.map((row) => ({
      id: row.id,
      atMs: row.at_ms,
      workspaceId: row.workspace_id,
      actor: { kind: row.actor_kind, id: row.actor_id, label: row.actor_label },
      address: row.address,
      action: row.action,
      target: row.outcome_target ?? row.target,
      fields: JSON.parse(row.fields) as string[],
      status: row.status,
    }));
  }
}
