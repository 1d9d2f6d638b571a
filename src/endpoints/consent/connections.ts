import { z } from "zod";
import type { AccountCaller } from "../../identity/keys/caller.ts";
import type { Connection } from "../../consent/connections.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import { limitRemaining } from "../keys/llm-key-object.ts";
import { forOperators, pageFields, pageSchema } from "../admin/admin-fields.ts";
import type { Dependencies } from "../dependencies.ts";

/** What connected apps need. */
type ConnectionDependencies = Pick<Dependencies, "consent" | "directory" | "ledger" | "clock">;

const shared = {
  base: "api",
  counting: "at-door",
  tag: "Connected apps",
  encodeError: encodeContractError,
} as const;

const connectionSchema = lazily(() =>
  z.object({
    id: z.string(),
    object: z.literal("connection"),
    client: z.object({ id: z.string().nullable(), name: z.string() }),
    origin: z
      .enum(["device", "oauth", "key", "playground"])
      .describe(
        "How the app was connected: device by a device code, oauth in a browser, key by the page at /auth, with a key of its own; " +
          "playground is the dashboard itself.",
      ),
    scopes: z.array(z.string()),
    bundle: z
      .enum(["read_only", "standard"])
      .nullable()
      .describe("Consent bundle that equals the scopes; null if none does."),
    resource: z.string().nullable(),
    workspace_id: z.string(),
    user_id: z.string(),
    key_id: z
      .string()
      .describe(
        "The LLM key of the connection. It carries limits and spend, and records and usage name it.",
      ),
    limit: z.number().nullable(),
    limit_reset: z.enum(["daily", "weekly", "monthly"]).nullable(),
    limit_remaining: z.number().nullable(),
    usage: z.number().describe("Spend of the connection in USD."),
    allowed_models: z.array(z.string()).nullable(),
    created_at: z.string(),
    created_from: z.object({ address: z.string(), user_agent: z.string() }),
    refreshed_at: z.string().nullable(),
    last_used_at: z.string().nullable(),
    expires_at: z.string().nullable(),
  }),
);

function connectionObject(
  { directory, ledger, clock }: Pick<Dependencies, "ledger" | "directory" | "clock">,
  connection: Connection,
): AnswerOf<typeof connectionSchema> {
  const key = directory.llmKeyById(connection.keyId);
  const account = ledger.book.key(connection.keyId);
  return {
    id: connection.id,
    object: "connection",
    client: { id: connection.clientId, name: connection.clientName },
    origin: connection.origin,
    scopes: [...connection.scopes],
    bundle: connection.bundle as "read_only" | "standard" | null,
    resource: connection.resource,
    workspace_id: connection.workspaceId,
    user_id: connection.userId,
    key_id: connection.keyId,
    limit: key === undefined || key.limitNanoUsd === null ? null : usdFromNano(key.limitNanoUsd),
    limit_reset: key?.limitReset ?? null,
    limit_remaining:
      key === undefined ? null : limitRemaining(key, { account, nowMs: clock.nowMs() }),
    usage: usdFromNano(account.spend.total),
    allowed_models: key?.allowedModels ? [...key.allowedModels] : null,
    created_at: new Date(connection.createdAtMs).toISOString(),
    created_from: { address: connection.address, user_agent: connection.userAgent },
    refreshed_at: isoOrNull(connection.refreshedAtMs),
    last_used_at: isoOrNull(directory.uses.lastUsedAtMs(connection.keyId) ?? null),
    expires_at: isoOrNull(key?.expiresAtMs ?? null),
  };
}

/**
 * Returns which connections a caller may see: members their own, administrators all of the
 * workspace.
 */
function visibleTo(caller: AccountCaller): { workspaceId: string; userId?: string } {
  const {
    workspace: { id: workspaceId },
  } = caller;
  if (caller.kind === "session" && caller.role === "member")
    return { workspaceId, userId: caller.user.id };
  return caller.kind === "connection"
    ? { workspaceId, userId: caller.key.creatorUserId }
    : { workspaceId };
}

const noConnection = (): GatewayError =>
  new GatewayError(
    "not_found",
    "There is no connected app with this id. GET /connections lists them.",
  );

async function visibleConnection(
  { caller }: RequestContext<unknown, AccountCaller>,
  { consent }: Pick<Dependencies, "consent">,
  id: string,
): Promise<Connection> {
  const { workspaceId, userId } = visibleTo(caller);
  const connection = await consent.connections.find(id);
  if (
    connection === undefined ||
    connection.endedAtMs !== null ||
    connection.workspaceId !== workspaceId
  )
    throw noConnection();
  if (userId !== undefined && userId !== connection.userId) throw noConnection();
  return connection;
}

const listSchema = lazily(() =>
  z.object({ object: z.literal("list"), data: z.array(connectionSchema()) }),
);
const endedSchema = lazily(() => z.object({ deleted: z.literal(true), id: z.string() }));

export const listConnections = defineEndpoint({
  ...shared,
  method: "GET",
  path: "/connections",
  access: { managementScope: "read:connections", session: true },
  summary: "List connected apps.",
  description:
    "Members see the apps that they connected. Owners, admins and management keys see all of the workspace.",
  response: listSchema,
  async handle(context, deps: ConnectionDependencies) {
    const connections = await deps.consent.connections.list(visibleTo(context.caller));
    await deps.ledger.refresh(context.caller.workspace.id);
    return context.json({
      object: "list",
      data: connections.map((connection) => connectionObject(deps, connection)),
    });
  },
});

export const getConnection = defineEndpoint({
  ...shared,
  method: "GET",
  path: "/connections/:id",
  access: { managementScope: "read:connections", session: true },
  summary: "Show a connected app.",
  response: connectionSchema,
  async handle(context, deps: ConnectionDependencies) {
    const connection = await visibleConnection(context, deps, context.param("id"));
    await deps.ledger.refresh(connection.workspaceId);
    return context.json(connectionObject(deps, connection));
  },
});

/** Disconnects an app; its tokens are revoked at once, on every gateway. */
export const endConnection = defineEndpoint({
  ...shared,
  method: "DELETE",
  path: "/connections/:id",
  access: { managementScope: "write:connections", session: true },
  summary: "Disconnect an app.",
  response: endedSchema,
  async handle(context, deps: Pick<Dependencies, "consent">) {
    const connection = await visibleConnection(context, deps, context.param("id"));
    await deps.consent.connections.end(connection, "Disconnected.");
    return context.json({ deleted: true, id: connection.id });
  },
});

const allQuerySchema = z.object({
  ...pageFields,
  workspace_id: z.string().optional(),
  user_id: z.string().optional(),
});

export const listAllConnections = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/connections",
  summary: "List the connected apps of all workspaces (operators).",
  description: "Newest first.",
  query: allQuerySchema,
  response: () => pageSchema(connectionSchema()),
  async handle(context, deps: ConnectionDependencies) {
    const {
      limit,
      offset,
      workspace_id: workspaceId,
      user_id: userId,
    } = checkBody(allQuerySchema, Object.fromEntries(context.query));
    const of = {
      ...(workspaceId === undefined ? {} : { workspaceId }),
      ...(userId === undefined ? {} : { userId }),
    };
    const [connections, total] = await Promise.all([
      deps.consent.connections.list({ ...of, limit, offset }),
      deps.consent.connections.count(of),
    ]);
    const data = connections.map((connection) => connectionObject(deps, connection));
    return context.json({ object: "list", data, total, has_more: offset + limit < total });
  },
});

export const endAnyConnection = defineEndpoint({
  ...forOperators,
  method: "DELETE",
  path: "/admin/connections/:id",
  summary: "Disconnect an app of any workspace (operators).",
  response: endedSchema,
  async handle(context, { consent }: Pick<Dependencies, "consent">) {
    const connection = await consent.connections.find(context.param("id"));
    if (connection === undefined || connection.endedAtMs !== null) throw noConnection();
    context.changedIn = connection.workspaceId;
    await consent.connections.end(connection, "Disconnected by an operator.");
    return context.json({ deleted: true, id: connection.id });
  },
});
