import { actorOf, type AuditActor } from "../../access/audit/audit-log.ts";
import type { RequestContext } from "../../access/define-endpoint.ts";
import type { Connection } from "../../consent/connections.ts";
import { workspacesOf } from "../account/workspace.ts";
import type { Dependencies } from "../dependencies.ts";

/**
 * Audits in a workspace what a connected app obtained or lost. Without an actor, the app itself
 * requested it.
 */
export const tellConnection = (
  context: RequestContext<unknown>,
  { security }: Pick<Dependencies, "security">,
  { connection, action, actor }: { connection: Connection; action: string; actor?: AuditActor },
): Promise<void> =>
  security.auditLog.tell(
    {
      workspaceId: connection.workspaceId,
      actor: actor ?? { kind: "app", id: connection.id, label: connection.clientName },
      address: context.clientAddress(),
      action,
      target: connection.id,
      fields: [...connection.scopes],
    },
    { status: 200, target: connection.id },
  );

/** Audits that an app was connected, by the person who approved it. */
export async function tellGrant(
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "security" | "people">,
  connection: Connection,
): Promise<void> {
  const person = await deps.people.users.find(connection.userId);
  const actor = { kind: "user", id: connection.userId, label: person?.email ?? connection.userId };
  await tellConnection(context, deps, {
    connection,
    action: `connect app (${connection.origin}): ${connection.clientName}`,
    actor,
  });
}

/**
 * Returns whether the person who approved may still grant: the account exists and is not blocked,
 * and the workspace is one of theirs. This ends approvals from minutes ago as well as connections
 * that were refreshed for months.
 */
export async function mayStillGrant(
  deps: Pick<Dependencies, "people" | "directory">,
  { userId, workspaceId }: Pick<Connection, "userId" | "workspaceId">,
): Promise<boolean> {
  const person = await deps.people.users.find(userId);
  if (person === undefined || person.blockedAtMs !== null) return false;
  const place = (await workspacesOf(deps, userId)).find(
    ({ workspace }) => workspace.id === workspaceId,
  );
  return place !== undefined && !place.workspace.blocked;
}

/** Ends every app that a person connected, in one workspace or in all, and audits each. */
export async function endConnectionsOf(
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "consent" | "security">,
  { reason, ...of }: { userId: string; workspaceId?: string; reason: string },
): Promise<void> {
  const actor = actorOf(context.caller);
  for (const connection of await deps.consent.connections.endAll(of, reason)) {
    await tellConnection(context, deps, {
      connection,
      action: `end app (${reason})`,
      ...(actor && { actor }),
    });
  }
}

/** Ends a connection whose person may no longer grant, and audits it. */
export async function endUngranted(
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "consent" | "security">,
  connection: Connection,
): Promise<void> {
  if (!(await deps.consent.connections.end(connection, "Its person may no longer grant."))) return;
  await tellConnection(context, deps, {
    connection,
    action: "end app (its person may no longer grant)",
  });
}

/**
 * Revokes what a code created: a code that is presented twice was stolen by one of the two (OAuth
 * 2.1, section 4.1.3).
 */
export async function endReplayed(
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "security" | "consent">,
  keyId: string | null,
): Promise<void> {
  const connection = keyId === null ? undefined : await deps.consent.connections.ofKey(keyId);
  if (connection === undefined) return;
  if (
    !(await deps.consent.connections.end(connection, "Its authorization code was presented twice."))
  )
    return;
  await tellConnection(context, deps, {
    connection,
    action: "end app (authorization code replayed)",
  });
}
