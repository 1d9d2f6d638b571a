import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { Reply } from "../../http/reply.ts";
import type { SessionCaller } from "../../identity/people/sign-in/sessions.ts";
import { type AccountCaller, requireOperator } from "../../identity/keys/caller.ts";
import { coversScope } from "../../identity/keys/scopes.ts";
import {
  type ServerUser,
  type UpstreamServer,
  usesOauth,
} from "../../mcp/gateway/upstream-server.ts";
import { messagePage } from "../../pages/message-page.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { pageResponse } from "../pages/page-response.ts";

const shared = {
  base: "api",
  counting: "at-door",
  access: { session: true },
  tag: "MCP",
  encodeError: encodeContractError,
} as const;

type PersonContext = RequestContext<unknown, SessionCaller>;

const personOf = ({ caller }: PersonContext): ServerUser => ({
  session: `${caller.workspace.id} ${caller.user.id} tools`,
  workspaceId: caller.workspace.id,
  personId: caller.user.id,
});

/** Returns where authorization servers send people back to. */
export const redirectUrlOf = ({ publicUrl }: Pick<Dependencies, "publicUrl">): string =>
  `${publicUrl()}/api/v1/mcp-servers/callback`;

/** Returns a server that is used with OAuth. Throws `not_found`, `bad_request` and `forbidden`. */
async function serverOf(
  { caller }: PersonContext,
  { id, deps }: { id: string; deps: Pick<Dependencies, "upstreamServers"> },
): Promise<UpstreamServer> {
  const server = await deps.upstreamServers.find(caller.workspace.id, id);
  if (server === undefined)
    throw new GatewayError("not_found", "There is no MCP server with this id.");
  if (!usesOauth(server))
    throw new GatewayError("bad_request", "This MCP server is not used with OAuth.");
  const mayShare =
    server.workspaceId === null
      ? caller.user.operator
      : coversScope(caller.scopes, "write:connections");
  if (server.auth.type === "oauth" && !mayShare)
    throw new GatewayError(
      "forbidden",
      "Everyone uses the tokens of this server, so only those who may register servers connect it.",
    );
  return server;
}

/** Sends a person to a server's authorization server, to let the gateway use it for them. */
export const connectMcpServer = defineEndpoint({
  ...shared,
  method: "GET",
  path: "/mcp-servers/:id/connect",
  summary: "Connect an MCP server as the person who is signed in.",
  redirects: true,
  async handle(context, deps: Pick<Dependencies, "upstreamServers" | "mcpGrants" | "publicUrl">) {
    const server = await serverOf(context, { id: context.param("id"), deps });
    const location = await deps.mcpGrants.begin(server, {
      user: personOf(context),
      userId: context.caller.user.id,
      redirectUrl: redirectUrlOf(deps),
    });
    return new Reply("", { status: 302, headers: { ...context.headers, location } });
  },
});

const connectedPage = ({ name }: UpstreamServer) =>
  messagePage({
    title: `${name} is connected`,
    done: `${name} is connected for you.`,
    sentences: ["Go back to your agent and call the tool again."],
    links: [{ href: "/dashboard/mcp-servers", label: "MCP servers", plain: true }],
  });

/** Takes the answer of a server's authorization server, and keeps the tokens. */
export const finishMcpConnection = defineEndpoint({
  ...shared,
  method: "GET",
  path: "/mcp-servers/callback",
  summary: "Finish connecting an MCP server.",
  otherResponseTypes: ["text/html"],
  query: z.object({
    code: z.string().max(4_000).optional(),
    state: z.string().max(500),
    iss: z.string().max(2_000).optional(),
    error: z.string().max(500).optional(),
    error_description: z.string().max(2_000).optional(),
  }),
  response: () => z.object({ connected: z.literal(true), id: z.string() }),
  async handle(context, deps: Pick<Dependencies, "upstreamServers" | "mcpGrants">) {
    const { query } = context;
    const [state, code, iss, error] = ["state", "code", "iss", "error"].map((name) =>
      query.get(name),
    );
    const { user } = context.caller;
    const taken = await deps.mcpGrants.take(state ?? "", user.id);
    if (typeof code !== "string")
      throw new GatewayError(
        "bad_request",
        `The MCP server was not connected: ${(error ?? "no code came").slice(0, 100)}.`,
      );
    const server = await deps.upstreamServers.find(taken.workspaceId, taken.serverId);
    if (server === undefined || !usesOauth(server))
      throw new GatewayError("not_found", "The MCP server was removed meanwhile.");
    await deps.mcpGrants.finish(server, {
      user: { ...personOf(context), workspaceId: taken.workspaceId },
      consent: taken.consent,
      code,
      iss: iss ?? undefined,
    });
    if (context.request.headers.get("accept")?.includes("text/html"))
      return pageResponse(context, connectedPage(server));
    return context.json({ connected: true, id: server.id });
  },
});

const connectionSchema = z.object({
  object: z.literal("mcp_connection"),
  user_id: z.string().nullable(),
  name: z.string(),
  connected_at: z.string().nullable(),
});

/** Returns a server of a workspace that is used with OAuth. Throws `not_found`. */
async function oauthServer(
  context: RequestContext<unknown, AccountCaller>,
  { upstreamServers }: Pick<Dependencies, "upstreamServers">,
): Promise<UpstreamServer> {
  const server = await upstreamServers.find(context.caller.workspace.id, context.param("id"));
  if (server !== undefined && usesOauth(server)) return server;
  const message = "There is no MCP server with this id that is used with OAuth.";
  throw new GatewayError("not_found", message);
}

/** Lists who has connected a server. Tokens are never shown. */
export const listMcpConnections = defineEndpoint({
  ...shared,
  method: "GET",
  path: "/mcp-servers/:id/connections",
  access: { managementScope: "read:connections", session: true },
  summary: "List the people who have connected an MCP server.",
  response: () => z.object({ object: z.literal("list"), data: z.array(connectionSchema) }),
  async handle(context, deps: Dependencies) {
    const server = await oauthServer(context, deps);
    const rows = await deps.mcpGrants.peopleOf(server, context.caller.workspace.id);
    const data = rows.map(async ({ personId, connectedAtMs }) => ({
      object: "mcp_connection" as const,
      user_id: personId,
      name: await nameOf(personId, deps),
      connected_at: isoOrNull(connectedAtMs),
    }));
    return context.json({ object: "list", data: await Promise.all(data) });
  },
});

async function nameOf(personId: string | null, { people }: Dependencies): Promise<string> {
  if (personId === null) return "Everyone";
  return (await people.users.find(personId))?.name ?? personId;
}

export const removeMcpConnection = defineEndpoint({
  ...shared,
  method: "DELETE",
  path: "/mcp-servers/:id/connections/:user_id",
  access: { managementScope: "write:connections", session: true },
  summary: "End a person's connection to an MCP server.",
  description:
    "Forgets the person's tokens and revokes them at the authorization server. The user_id everyone is that of shared tokens.",
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, deps: Dependencies) {
    const server = await oauthServer(context, deps);
    if (server.auth.type === "oauth" && server.workspaceId === null)
      requireOperator(context.caller, deps.operatorWorkspaceId);
    const userId = context.param("user_id");
    const workspaceId = context.caller.workspace.id;
    const isEnded = await deps.mcpGrants.remove(server, {
      session: "",
      workspaceId,
      personId: userId,
    });
    if (!isEnded) throw new GatewayError("not_found", "This person has not connected the server.");
    return context.json({ deleted: true, id: userId });
  },
});

/** Forgets the tokens of the person who is signed in. */
export const disconnectMcpServer = defineEndpoint({
  ...shared,
  method: "DELETE",
  path: "/mcp-servers/:id/connection",
  summary: "Disconnect an MCP server.",
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, deps: Pick<Dependencies, "upstreamServers" | "mcpGrants">) {
    const server = await serverOf(context, { id: context.param("id"), deps });
    await deps.mcpGrants.remove(server, personOf(context));
    return context.json({ deleted: true, id: server.id });
  },
});
