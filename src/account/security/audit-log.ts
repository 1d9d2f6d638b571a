import type { Clock } from "../../platform/lib/clock.ts";
import { newId } from "../../platform/lib/ids.ts";
import type {
  CommitQueue,
  CommitUnit,
  InsertStatement,
} from "../../platform/storage/commit-queue.ts";
import type { Caller } from "../keys/caller.ts";

/** Who made a change. */
export interface AuditActor {
  kind: string;
  /** Id of the credential or the person. */
  id: string;
  /** What people recognise it by: a masked secret, or an address. */
  label: string;
}

/** A change of the account plane: who wants what, and from where. */
export interface AuditedChange {
  workspaceId: string;
  actor: AuditActor;
  address: string;
  /** Method and path pattern, such as `PATCH /keys/:hash`. */
  action: string;
  /** What it is about, as far as it is known beforehand. */
  target: string | null;
  /** Names of the fields that were sent; never what was in them. */
  fields: readonly string[];
}

/** A change that was written down and is about to happen. */
export interface OpenEntry {
  id: string;
  workspaceId: string;
}

/** What became of a change: the status of its answer, and what it turned out to be about. */
export interface AuditOutcome {
  status: number;
  target: string | null;
}

type Row = CommitUnit["inserts"][number];

/** What is wanted, written before it is done. */
export const auditInsert: InsertStatement = {
  name: "audit",
  table: "audit_log",
  columns: [
    "id",
    "workspace_id",
    "at_ms",
    "actor_kind",
    "actor_id",
    "actor_label",
    "address",
    "action",
    "target",
    "fields",
  ],
};

/** What became of it. */
export const auditOutcomeInsert: InsertStatement = {
  name: "audit-outcome",
  table: "audit_outcomes",
  columns: ["audit_id", "workspace_id", "at_ms", "status", "target"],
};

/**
 * The append-only log of changes. A change is written down before it happens and its outcome after it: no
 * change can stand that the log does not know, and what a crash cut off is told as such.
 */
export class AuditLog {
  private readonly commits: Pick<CommitQueue, "commit">;
  private readonly clock: Clock;

  constructor(options: { commits: Pick<CommitQueue, "commit">; clock: Clock }) {
    this.commits = options.commits;
    this.clock = options.clock;
  }

  /** Writes a change down; durable when it resolves. Rejects when the database refused, and then the change must not happen. */
  async begin(change: AuditedChange): Promise<OpenEntry> {
    const { id, row } = this.entryOf(change);
    await this.commits.commit({ inserts: [row], adds: [] });
    return { id, workspaceId: change.workspaceId };
  }

  /** Writes down what became of a change. */
  async end(entry: OpenEntry, outcome: AuditOutcome): Promise<void> {
    await this.commits.commit({ inserts: [this.outcomeOf(entry, outcome)], adds: [] });
  }

  /** Writes down a change with its outcome for another workspace that it concerns. */
  async tell(change: AuditedChange, outcome: AuditOutcome): Promise<void> {
    const { id, row } = this.entryOf(change);
    await this.commits.commit({
      inserts: [row, this.outcomeOf({ id, workspaceId: change.workspaceId }, outcome)],
      adds: [],
    });
  }

  private entryOf({ workspaceId, actor, address, action, target, fields }: AuditedChange): {
    id: string;
    row: Row;
  } {
    const atMs = this.clock.nowMs();
    const id = newId("aud", atMs);
    const values = [
      id,
      workspaceId,
      atMs,
      actor.kind,
      actor.id,
      actor.label,
      address,
      action,
      target,
      JSON.stringify(fields),
    ];
    return { id, row: { statement: auditInsert, values } };
  }

  private outcomeOf({ id, workspaceId }: OpenEntry, { status, target }: AuditOutcome): Row {
    return {
      statement: auditOutcomeInsert,
      values: [id, workspaceId, this.clock.nowMs(), status, target],
    };
  }
}

/** The actor that a caller is; undefined for callers without a credential. */
export function actorOf(caller: Caller): AuditActor | undefined {
  if (caller.kind === "anonymous") return undefined;
  if (caller.kind === "session")
    return { kind: "user", id: caller.user.id, label: caller.user.email };
  return { kind: caller.kind, id: caller.key.id, label: caller.key.label };
}
