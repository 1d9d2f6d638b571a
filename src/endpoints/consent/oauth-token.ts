import { z } from "zod";
import { pkcePattern } from "../../consent/authorization-codes.ts";
import type { Connection, NewConnection, Terms } from "../../consent/connections.ts";
import { bundleOf } from "../../consent/granted-scopes.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { encodeOauthError } from "../../http/error-envelope.ts";
import { hourMs } from "../../platform/kernel/clock.ts";
import { badField, GatewayError, type ErrorCode } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { namesAccount, registeredClient } from "./device-code.ts";
import { deviceGrant, oauthRoute, readOauthBody } from "./oauth-body.ts";
import {
  endReplayed,
  endUngranted,
  mayStillGrant,
  tellConnection,
  tellGrant,
} from "./tell-connection.ts";

/** What grants of tokens need. */
type TokenDependencies = Pick<
  Dependencies,
  "directory" | "people" | "consent" | "security" | "clock"
>;

type Answer = ReturnType<RequestContext["json"]>;

/** Lifetime in milliseconds of an access token that can be refreshed. */
const accessTokenMs = hourMs;

const text = (charactersMax: number) =>
  z.string().max(charactersMax, `must have at most ${charactersMax} characters`).nullish();

const tokenSchema = z.looseObject({
  grant_type: z.string("is required"),
  device_code: text(200),
  client_id: text(2_000),
  code: text(200),
  redirect_uri: text(2_000),
  code_verifier: text(200),
  refresh_token: text(200),
  resource: text(2_000),
  scope: text(1_000),
});

type TokenRequest = z.infer<typeof tokenSchema>;

const responseSchema = lazily(() =>
  z.object({
    access_token: z.string(),
    token_type: z.literal("Bearer"),
    scope: z.string(),
    user_id: z.string(),
    expires_in: z.int().optional(),
    refresh_token: z.string().optional(),
    email: z
      .string()
      .optional()
      .describe(
        "E-mail address of the person who approved, for clients that let the person confirm it.",
      ),
  }),
);

const missing = (field: string): GatewayError =>
  badField(field, "is required for this grant_type.");

/** The messages for the outcomes of a poll. */
const pollWords = {
  authorization_pending: "The person has not decided yet. Poll again after the interval.",
  slow_down: "Polls come too fast. Wait five seconds longer between them.",
  access_denied: "The person declined. Stop polling.",
  expired_token: "The code is unknown, was used or has expired. Start over.",
} as const satisfies Partial<Record<ErrorCode, string>>;

const tokenBody = ({
  accessToken,
  refreshToken,
  connection,
}: {
  accessToken: string;
  refreshToken: string | undefined;
  connection: Connection;
}): AnswerOf<typeof responseSchema> => ({
  access_token: accessToken,
  token_type: "Bearer",
  scope: connection.scopes.join(" "),
  user_id: connection.userId,
  ...(refreshToken === undefined
    ? {}
    : { expires_in: accessTokenMs / 1_000, refresh_token: refreshToken }),
});

type Wanted = Pick<
  NewConnection,
  "clientId" | "clientName" | "userId" | "workspaceId" | "origin" | "resource" | "offline"
> & {
  terms: Terms;
  /** Sent with the tokens to agents that show it. */
  email?: string | undefined;
};

const badGrant = (message: string): GatewayError => new GatewayError("invalid_grant", message);

const noLongerGranted = (): GatewayError =>
  badGrant(
    "The person who approved is blocked, or no longer a member of the workspace. Connect the app again.",
  );

/** Connects an app, and returns its first tokens. */
async function connect(
  context: RequestContext<unknown>,
  deps: TokenDependencies,
  { email, ...wanted }: Wanted,
): Promise<{ answer: Answer; connection: Connection }> {
  if (!(await mayStillGrant(deps, wanted))) throw noLongerGranted();
  const { accessToken, connection } = await deps.consent.connections.create({
    ...wanted,
    bundle: bundleOf(wanted.terms.scopes),
    address: context.clientAddress(),
    userAgent: (context.request.headers.get("user-agent") ?? "").slice(0, 300),
    tokenExpiresAtMs: wanted.offline ? deps.clock.nowMs() + accessTokenMs : null,
  });
  const refreshToken = wanted.offline
    ? await deps.consent.refreshTokens.issue(connection.id)
    : undefined;
  await tellGrant(context, deps, connection);
  // Checked again: a person who was blocked or removed between the first check and the grant had no
  // connection to revoke yet.
  if (!(await mayStillGrant(deps, connection))) {
    await endUngranted(context, deps, connection);
    throw noLongerGranted();
  }
  const body = {
    ...tokenBody({ accessToken, refreshToken, connection }),
    ...(email === undefined ? {} : { email }),
  };
  return { answer: context.json(body), connection };
}

async function byDevice(
  context: RequestContext<unknown>,
  deps: TokenDependencies,
  { device_code: code, client_id: presented }: TokenRequest,
): Promise<Answer> {
  if (!code) throw missing("device_code");
  const outcome = await deps.consent.devices.poll(code, presented || undefined);
  if (outcome.state !== "approved") throw new GatewayError(outcome.state, pollWords[outcome.state]);
  const { clientId, clientName, offline, userId, workspaceId, terms } = outcome.device;
  const wanted = {
    clientId,
    clientName,
    offline,
    userId,
    workspaceId,
    terms,
    origin: "device",
    resource: null,
  } as const;
  const email =
    clientId === null && namesAccount(clientName)
      ? (await deps.people.users.find(userId))?.email
      : undefined;
  return (await connect(context, deps, { ...wanted, email })).answer;
}

async function byCode(
  context: RequestContext<unknown>,
  deps: TokenDependencies,
  request: TokenRequest,
): Promise<Answer> {
  const {
    code,
    code_verifier: verifier,
    redirect_uri: callbackUrl,
    client_id: clientId,
    resource,
  } = request;
  if (!code) throw missing("code");
  if (!verifier) throw missing("code_verifier");
  if (!clientId) throw missing("client_id");
  if (!pkcePattern.test(verifier))
    throw badGrant("code_verifier: is not the verifier of this code.");
  const taken = await deps.consent.codes.take({
    code,
    verifier,
    clientId,
    purposes: ["oauth"],
    ...(callbackUrl ? { callbackUrl } : {}),
  });
  if (!taken.ok) {
    if (taken.reason === "replayed") await endReplayed(context, deps, taken.madeKeyId);
    throw badGrant(
      "The code is unknown, was used or has expired, or is for another client, redirect_uri or verifier.",
    );
  }
  const { terms, userId, workspaceId, clientName, resource: granted } = taken.code;
  if (resource && granted !== null && resource !== granted)
    throw new GatewayError("invalid_target", "resource: is not the one that was granted.");
  const wanted = {
    clientId,
    clientName,
    terms,
    userId,
    workspaceId,
    resource: granted,
    origin: "oauth",
    offline: true,
  } as const;
  const { answer, connection } = await connect(context, deps, wanted);
  await deps.consent.codes.noteMade(code, connection.keyId);
  await deps.consent.clients.noteUse(clientId);
  return answer;
}

async function byRefreshToken(
  context: RequestContext<unknown>,
  deps: TokenDependencies,
  request: TokenRequest,
): Promise<Answer> {
  const { refresh_token: token, client_id: clientId, resource } = request;
  if (!token) throw missing("refresh_token");
  const connectionId = await deps.consent.refreshTokens.connectionOf(token);
  const connection =
    connectionId === undefined ? undefined : await deps.consent.connections.find(connectionId);
  const gone = badGrant(
    "The refresh token is unknown, was used or has expired. Connect the app again.",
  );
  if (connection === undefined || connection.endedAtMs !== null) throw gone;
  if (clientId && connection.clientId !== null && clientId !== connection.clientId) throw gone;
  if (resource && connection.resource !== null && resource !== connection.resource) {
    throw new GatewayError("invalid_target", "resource: is not the one that was granted.");
  }
  if (!(await mayStillGrant(deps, connection))) {
    await endUngranted(context, deps, connection);
    throw noLongerGranted();
  }
  const rotated = await deps.consent.refreshTokens.rotate(token);
  if (!rotated.ok) {
    if (rotated.reason === "reused") {
      await deps.consent.connections.end(connection, "A refresh token was used twice.");
      await tellConnection(context, deps, { connection, action: "end app (refresh token reused)" });
    }
    throw gone;
  }
  const accessToken = await deps.consent.connections.renew(connection, {
    tokenExpiresAtMs: deps.clock.nowMs() + accessTokenMs,
    address: context.clientAddress(),
  });
  if (accessToken === undefined) throw gone;
  await tellConnection(context, deps, { connection, action: "refresh app" });
  return context.json(tokenBody({ accessToken, refreshToken: rotated.refreshToken, connection }));
}

const grants: Readonly<
  Record<
    string,
    (
      context: RequestContext<unknown>,
      deps: TokenDependencies,
      request: TokenRequest,
    ) => Promise<Answer>
  >
> = {
  [deviceGrant]: byDevice,
  authorization_code: byCode,
  refresh_token: byRefreshToken,
};

const token = async (context: RequestContext<unknown>, deps: TokenDependencies): Promise<Answer> =>
  granted(context, deps, await readOauthBody(context, tokenSchema));

async function granted(
  context: RequestContext<unknown>,
  deps: TokenDependencies,
  request: TokenRequest,
): Promise<Answer> {
  const grant = grants[request.grant_type];
  if (grant === undefined) {
    throw new GatewayError(
      "unsupported_grant_type",
      `grant_type: must be one of ${Object.keys(grants).join(", ")}.`,
    );
  }
  const { client_id: clientId } = request;
  // Clients register again on `invalid_client` alone. Those that are a document have no registration.
  if (clientId && !deps.consent.documents.isDocumentId(clientId))
    await registeredClient(deps, clientId);
  return await grant(context, deps, request);
}

/**
 * Returns whether a refresh is of a coding agent, which ends its session on 401 alone, where RFC
 * 6749 (section 5.2) has 400. Agents have no client id; of an unknown token, no more is known.
 */
async function isOfAgent(
  { consent }: Pick<Dependencies, "consent">,
  { refresh_token: token, client_id: clientId }: TokenRequest,
): Promise<boolean> {
  if (clientId || !token) return false;
  const id = await consent.refreshTokens.connectionOf(token);
  const connection = id === undefined ? undefined : await consent.connections.find(id);
  return connection === undefined || namesAccount(connection.clientName);
}

/** Answers devices: agents with 401 where they have to sign in again. */
async function tokenForDevices(
  context: RequestContext<unknown>,
  deps: TokenDependencies,
): Promise<Answer> {
  const request = await readOauthBody(context, tokenSchema);
  try {
    return await granted(context, deps, request);
  } catch (error) {
    const isDead =
      error instanceof GatewayError &&
      error.code === "invalid_grant" &&
      request.grant_type === "refresh_token";
    if (!isDead || !(await isOfAgent(deps, request))) throw error;
    return context.json(encodeOauthError(error, { traceId: context.traceId }), { status: 401 });
  }
}

const declared = {
  ...oauthRoute,
  method: "POST",
  rawBody: tokenSchema,
  formBody: tokenSchema,
  response: responseSchema,
  summary: "Obtain an access token.",
  description:
    "Polls a device code (RFC 8628), exchanges an authorization code with PKCE (RFC 7636), or refreshes a token. Pending and final " +
    "states are 400 with authorization_pending, slow_down, access_denied or expired_token.",
} as const;

/** Issues an access token (contract: "Device authorization"). */
export const oauthToken = defineEndpoint({
  ...declared,
  path: "/oauth/token",
  alsoAtRoot: true,
  handle: tokenForDevices,
});

/** Issues an access token for MCP and other OAuth 2.1 clients. */
export const mcpOauthToken = defineEndpoint({
  ...declared,
  path: "/mcp/oauth/token",
  handle: token,
});

const revokeSchema = z.looseObject({
  token: z.string("is required").max(300),
  token_type_hint: text(100),
  client_id: text(2_000),
});

/**
 * Ends the connection of a token (RFC 7009). An unknown token is not an error. The token of a client
 * is refused to every other one.
 */
async function revoke(
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "llmKeyEditor" | "security" | "consent">,
): Promise<Answer> {
  const { token: presented, client_id: clientId } = await readOauthBody(context, revokeSchema);
  const key = await deps.llmKeyEditor.currentOf(presented);
  const connectionId =
    key === undefined
      ? await deps.consent.refreshTokens.connectionOf(presented)
      : key.connection?.id;
  const connection =
    connectionId === undefined ? undefined : await deps.consent.connections.find(connectionId);
  if (connection !== undefined && connection.clientId !== (clientId || null))
    throw new GatewayError("invalid_client", "client_id: is not the client of this token.", {
      param: "client_id",
    });
  if (
    connection !== undefined &&
    (await deps.consent.connections.end(connection, "The app gave it back."))
  ) {
    await tellConnection(context, deps, { connection, action: "end app (revoked by the app)" });
  }
  return context.json({});
}

const revocation = {
  ...oauthRoute,
  method: "POST",
  rawBody: revokeSchema,
  formBody: revokeSchema,
  response: () => z.object({}),
  handle: revoke,
  summary: "Revoke an access or refresh token and end its connection.",
  description:
    "client_id has to be the client that the token was issued to; apps without a client id send none.",
} as const;

/** Ends a connection by one of its tokens. */
export const revokeOauthToken = defineEndpoint({
  ...revocation,
  path: "/oauth/revoke",
});

/** The same for MCP clients. */
export const revokeMcpToken = defineEndpoint({
  ...revocation,
  path: "/mcp/oauth/revoke",
});
