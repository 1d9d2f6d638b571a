import type { Kysely } from "kysely";
import type { AuditTables, AuditEntry } from "./audit-log.ts";

/** The part of a log that is read. */
interface AuditQuery {
  workspaceId: string;
  /** Only entries older than this one; undefined starts with the newest. */
  before: string | undefined;
  actorId: string | undefined;
  /** The method and path pattern, such as `PATCH /keys/:hash`. */
  action?: string | undefined;
  /** The id of the changed object. */
  target?: string | undefined;
  /** Wall times in milliseconds. The end is exclusive. */
  fromMs?: number | undefined;
  toMs?: number | undefined;
  /** The number of entries to leave out; counts only without `before`. */
  offset?: number | undefined;
  limit: number;
}

/** Reads the audit log. It is written through the commit queue only. */
export class AuditStore {
  constructor(private readonly database: Kysely<AuditTables>) {}

  /** Returns entries of a workspace, newest first. */
  async list({
    workspaceId,
    before,
    actorId,
    action,
    target,
    fromMs,
    toMs,
    offset = 0,
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
    const rows = await query
      .orderBy("entry.id", "desc")
      .limit(limit)
      .offset(before === undefined ? offset : 0)
      .execute();
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
