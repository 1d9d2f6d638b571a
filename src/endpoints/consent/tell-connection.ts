import type { AuditActor } from "../../account/security/audit-log.ts";
import type { Connection } from "../../consent/connections.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Dependencies } from "../dependencies.ts";

/** Writes into the audit log of a workspace what a connected app obtained or lost; without an actor the app itself asked for it. */
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

/** Writes down that an app was connected, by the person who let it. */
export async function tellGrant(
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "security" | "people">,
  connection: Connection,
): Promise<void> {
  const person = await deps.people.users.find(connection.userId);
  const actor = { kind: "user", id: connection.userId, label: person?.email ?? connection.userId };
  await tellConnection(context, deps, { connection, action: `connect app (${connection.origin}): ${connection.clientName}`, actor });
}

/** Ends what a code made before: a code that comes twice was stolen by one of the two (OAuth 2.1, section 4.1.3). */
export async function endReplayed(context: RequestContext<unknown>, deps: Dependencies, keyId: string | null): Promise<void> {
  const connection = keyId === null ? undefined : await deps.consent.connections.ofKey(keyId);
  if (connection === undefined) return;
  if (!(await deps.consent.connections.end(connection, "Its authorization code was presented twice."))) return;
  await tellConnection(context, deps, { connection, action: "end app (authorization code replayed)" });
}
