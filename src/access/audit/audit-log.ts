import type { Endpoint } from "../../http/endpoint.ts";
import type { Answer } from "../../http/reply.ts";
import type { RequestContext } from "../define-endpoint.ts";
import type { Caller } from "../../identity/keys/caller.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { newId } from "../../platform/kernel/ids.ts";
import {
  type CommitQueue,
  type CommitUnit,
  recordInsert,
} from "../../platform/storage/commit-queue.ts";
import { StorageUnavailableError } from "../../platform/storage/storage-error.ts";

/** The author of a change. */
export interface AuditActor {
  kind: string;
  /** The id of the credential or the person. */
  id: string;
  /** A label that people recognise: a masked secret, or an address. */
  label: string;
}

/** A change of the account plane: who requests what, and from where. */
interface AuditedChange {
  workspaceId: string;
  actor: AuditActor;
  address: string;
  /** The method and path pattern, such as `PATCH /keys/:hash`. */
  action: string;
  /** The id of the object that it changes, as far as it is known in advance. */
  target: string | null;
  /** The names of the fields that were sent, never their values. */
  fields: readonly string[];
}

/** A change that was recorded and is about to happen. */
interface OpenEntry {
  id: string;
  workspaceId: string;
}

/** The outcome of a change: the status of its answer, and the object that was changed. */
interface AuditOutcome {
  status: number;
  target: string | null;
}

/** The row of a requested change, written before it is made. */
export const auditEntry = recordInsert<
  AuditTables["audit_log"],
  AuditedChange & { id: string; atMs: number }
>({
  name: "audit",
  table: "audit_log",
  columns: {
    id: ({ id }) => id,
    workspace_id: ({ workspaceId }) => workspaceId,
    at_ms: ({ atMs }) => atMs,
    actor_kind: ({ actor }) => actor.kind,
    actor_id: ({ actor }) => actor.id,
    actor_label: ({ actor }) => actor.label,
    address: ({ address }) => address,
    action: ({ action }) => action,
    target: ({ target }) => target,
    fields: ({ fields }) => JSON.stringify(fields),
  },
});

/** The row of its outcome. */
export const auditOutcome = recordInsert<
  AuditTables["audit_outcomes"],
  OpenEntry & AuditOutcome & { atMs: number }
>({
  name: "audit-outcome",
  table: "audit_outcomes",
  columns: {
    audit_id: ({ id }) => id,
    workspace_id: ({ workspaceId }) => workspaceId,
    at_ms: ({ atMs }) => atMs,
    status: ({ status }) => status,
    target: ({ target }) => target,
  },
});

/** The insert of entries. The chained log reads its columns. */
export const auditInsert = auditEntry.statement;

/** The insert of outcomes. The chained log reads its columns. */
export const auditOutcomeInsert = auditOutcome.statement;

/**
 * The append-only log of changes. A change is recorded before it happens and its outcome after it.
 * Every change is therefore in the log, and one that a crash interrupted is shown as such.
 */
export class AuditLog {
  private readonly commits: Pick<CommitQueue, "commit" | "stalled">;
  private readonly clock: Clock;

  constructor(options: { commits: Pick<CommitQueue, "commit" | "stalled">; clock: Clock }) {
    this.commits = options.commits;
    this.clock = options.clock;
  }

  /**
   * Records a change; durable when it resolves. Rejects when the database refused it, and then the
   * change must not happen. Rejects at once while the database is known to take no commits.
   */
  async begin(change: AuditedChange): Promise<OpenEntry> {
    if (this.commits.stalled)
      throw new StorageUnavailableError("the database takes no commits at the moment");
    const { id, row } = this.entryOf(change);
    await this.commits.commit({ inserts: [row], adds: [] });
    return { id, workspaceId: change.workspaceId };
  }

  /** Records the outcome of a change. */
  async end(entry: OpenEntry, outcome: AuditOutcome): Promise<void> {
    await this.commits.commit({ inserts: [this.outcomeOf(entry, outcome)], adds: [] });
  }

  /** Records a change and its outcome for another workspace that it concerns. */
  async tell(change: AuditedChange, outcome: AuditOutcome): Promise<void> {
    const { id, row } = this.entryOf(change);
    await this.commits.commit({
      inserts: [row, this.outcomeOf({ id, workspaceId: change.workspaceId }, outcome)],
      adds: [],
    });
  }

  private entryOf(change: AuditedChange): { id: string; row: CommitUnit["inserts"][number] } {
    const atMs = this.clock.nowMs();
    const id = newId("aud", atMs);
    return { id, row: auditEntry.rowOf({ ...change, id, atMs }) };
  }

  private outcomeOf(entry: OpenEntry, outcome: AuditOutcome): CommitUnit["inserts"][number] {
    return auditOutcome.rowOf({ ...entry, ...outcome, atMs: this.clock.nowMs() });
  }
}

/** Returns the actor that a caller is; undefined for callers without a credential. */
export function actorOf(caller: Caller): AuditActor | undefined {
  if (caller.kind === "anonymous") return undefined;
  if (caller.kind === "session")
    return { kind: "user", id: caller.user.id, label: caller.user.email };
  return { kind: caller.kind, id: caller.key.id, label: caller.key.label };
}

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

/** A change as the log returns it. */
export interface AuditEntry extends AuditedChange {
  /** An `aud_` id; sorts by time. */
  id: string;
  atMs: number;
  /**
   * The HTTP status of the answer; null while the change is in progress, and permanently where a
   * crash interrupted it.
   */
  status: number | null;
}

/** The dependencies of the router for auditing. */
export interface Auditing {
  log: AuditLog;
  /** The operator's workspace. Its log also holds what operators change in other workspaces. */
  operatorWorkspaceId: string;
  /** Called when an outcome could not be written. The entry of the change remains. */
  onError(error: unknown): void;
}

type AuditedEndpoint = Pick<Endpoint<never>, "method" | "path" | "access" | "tag" | "unaudited">;

/**
 * Returns whether an endpoint changes the account plane: every endpoint there that is not a plain
 * read.
 */
export const isAudited = ({ method, access, tag, unaudited }: AuditedEndpoint): boolean =>
  method !== "GET" &&
  unaudited !== true &&
  (access.managementScope !== undefined || tag === "Account");

/**
 * Returns the values of the path's parameters, which identify the changed object as far as the path
 * does.
 */
const targetOf = ({ request: { params } }: RequestContext): string | null =>
  Object.values(params).join(" ") || null;

const fieldsOf = (body: unknown): string[] =>
  typeof body === "object" && body !== null ? Object.keys(body) : [];

/**
 * Runs an endpoint's handler. Where that changes the account plane, the change is recorded first.
 * Throws `service_unavailable` when the log could not be written, and then nothing was changed.
 */
export async function auditChange(
  auditing: Auditing,
  { endpoint, context }: { endpoint: AuditedEndpoint; context: RequestContext },
  work: () => Answer | Promise<Answer>,
): Promise<Answer> {
  const actor = actorOf(context.caller);
  if (actor === undefined || !isAudited(endpoint)) return await work();
  const change: AuditedChange = {
    workspaceId: (context.caller as Exclude<Caller, { kind: "anonymous" }>).workspace.id,
    actor,
    address: context.clientAddress(),
    action: `${endpoint.method} ${endpoint.path}`,
    target: targetOf(context),
    fields: fieldsOf(context.body),
  };
  const entry = await begin(auditing, change);
  let status = 500;
  try {
    const response = await work();
    status = response.status;
    return response;
  } catch (error) {
    if (error instanceof GatewayError) status = error.status;
    throw error;
  } finally {
    const outcome = { status, target: context.changed ?? null };
    const concerned = new Set([
      context.changedIn ?? change.workspaceId,
      endpoint.access.operator ? auditing.operatorWorkspaceId : "",
    ]);
    const others = [...concerned].filter((id) => id !== "" && id !== change.workspaceId);
    await Promise.all([
      auditing.log.end(entry, outcome),
      ...others.map((workspaceId) => auditing.log.tell({ ...change, workspaceId }, outcome)),
    ]).catch((error: unknown) => auditing.onError(error));
  }
}

async function begin({ log }: Auditing, change: AuditedChange): Promise<OpenEntry> {
  try {
    return await log.begin(change);
  } catch (cause) {
    throw new GatewayError(
      "service_unavailable",
      "The change could not be written to the audit log, so it was not made. Try again.",
      {
        retryAfterSeconds: 1,
        cause,
      },
    );
  }
}
