import {
  actorOf,
  type AuditedChange,
  type AuditLog,
  type OpenEntry,
} from "../account/security/audit-log.ts";
import type { Caller } from "../account/keys/caller.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import type { Endpoint } from "./endpoint.ts";
import type { RequestContext } from "./request-context.ts";
import type { Answer } from "./reply.ts";

/** What auditing needs of the router. */
export interface Auditing {
  log: AuditLog;
  /** The workspace of whoever runs the service: its log has what operators do, wherever they are. */
  operatorWorkspaceId: string;
  /** Told when an outcome could not be written; the entry of the change stands all the same. */
  onError(error: unknown): void;
}

type AuditedEndpoint = Pick<Endpoint<never>, "method" | "path" | "access" | "tag" | "unaudited">;

/** Whether an endpoint changes the account plane: everything there that is no plain reading. */
export const isAudited = ({ method, access, tag, unaudited }: AuditedEndpoint): boolean =>
  method !== "GET" &&
  unaudited !== true &&
  (access.managementScope !== undefined || tag === "Account");

/** Values of the path's parameters: what a change is about, as far as the path says it. */
const targetOf = ({ request: { params } }: RequestContext): string | null =>
  Object.values(params).join(" ") || null;

const fieldsOf = (body: unknown): string[] =>
  typeof body === "object" && body !== null ? Object.keys(body) : [];

/**
 * Does the work of an endpoint; where that changes the account plane, the change is in the log before it
 * happens. Throws `service_unavailable` when the log could not be written, and then nothing was done.
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
