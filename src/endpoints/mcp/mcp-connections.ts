import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { Reply } from "../../http/request-context.ts";
import type { SessionCaller } from "../../identity/people/sessions.ts";
import { coversScope } from "../../identity/keys/scopes.ts";
import {
  type ServerUser,
  type UpstreamServer,
  usesOauth,
} from "../../mcp/gateway/upstream-server.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";

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

const redirectUrlOf = ({ publicUrl }: Pick<Dependencies, "publicUrl">): string =>
  `${publicUrl()}/api/v1/mcp-servers/callback`;

/** Returns a server that is used with OAuth. Throws `not_found`, `bad_request` and `forbidden`. */
async function serverOf(
  { caller }: PersonContext,
  { id, deps }: { id: string; deps: Dependencies },
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
  async handle(context, deps: Dependencies) {
    const server = await serverOf(context, { id: context.param("id"), deps });
    const location = await deps.mcpGrants.begin(server, {
      user: personOf(context),
      userId: context.caller.user.id,
      redirectUrl: redirectUrlOf(deps),
    });
    return new Reply("", { status: 302, headers: { ...context.headers, location } });
  },
});

/** Takes the answer of a server's authorization server, and keeps the tokens. */
export const finishMcpConnection = defineEndpoint({
  ...shared,
  method: "GET",
  path: "/mcp-servers/callback",
  summary: "Finish connecting an MCP server.",
  query: z.object({
    code: z.string().max(4_000).optional(),
    state: z.string().max(500),
    iss: z.string().max(2_000).optional(),
    error: z.string().max(500).optional(),
    error_description: z.string().max(2_000).optional(),
  }),
  response: () => z.object({ connected: z.literal(true), id: z.string() }),
  async handle(context, deps: Dependencies) {
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
    return context.json({ connected: true, id: server.id });
  },
});

/** Forgets the tokens of the person who is signed in. */
export const disconnectMcpServer = defineEndpoint({
  ...shared,
  method: "DELETE",
  path: "/mcp-servers/:id/connection",
  summary: "Disconnect an MCP server.",
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, deps: Dependencies) {
    const server = await serverOf(context, { id: context.param("id"), deps });
    await deps.mcpGrants.remove(server, personOf(context));
    return context.json({ deleted: true, id: server.id });
  },
});
