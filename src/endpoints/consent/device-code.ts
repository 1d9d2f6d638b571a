import { z } from "zod";
import { cleanName, type OauthClient } from "../../consent/oauth-clients.ts";
import { readScopes } from "../../consent/granted-scopes.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { countedAddress } from "../../platform/rate-windows/named-windows.ts";
import type { Dependencies } from "../dependencies.ts";
import { oauthRoute, readOauthBody } from "./oauth-body.ts";

const text = (charactersMax: number) =>
  z.string().max(charactersMax, `must have at most ${charactersMax} characters`).nullish();

const deviceSchema = z.looseObject({
  client_id: text(300).describe("Id of a registered client. Optional."),
  client_name: text(100).describe(
    "Name shown to the person who approves; ignored if client_id is sent.",
  ),
  scope: text(1_000).describe(
    "Scopes, separated by spaces. Default: all that apps can be granted.",
  ),
  key_label: text(200).describe("Name of the connection's key."),
  surface: text(100).describe("Kind of the client, as coding agents send it."),
});

const responseSchema = lazily(() =>
  z.object({
    device_code: z.string(),
    user_code: z.string(),
    verification_uri: z.string(),
    verification_uri_complete: z.string(),
    expires_in: z.int(),
    interval: z.int(),
    login_notice: z.string().optional().describe("Shown beside the code, for agents that send it."),
  }),
);

/** Agents that name only their surface. They send inference requests and need refresh tokens. */
const surfaces: Readonly<Record<string, { name: string; scope: string }>> = {
  claude_code: { name: "Claude Code", scope: "inference offline_access" },
};

/** Returns whether a client asks the person to confirm which account approved it. */
export const namesAccount = (clientName: string): boolean =>
  Object.values(surfaces).some(({ name }) => name === clientName);

/** Returns the client with this id. Throws `invalid_client` where none is registered. */
export async function registeredClient(
  { consent }: Pick<Dependencies, "consent">,
  id: string,
): Promise<OauthClient> {
  const client = await consent.clients.find(id);
  if (client !== undefined) return client;
  throw new GatewayError(
    "invalid_client",
    "client_id: is not a registered client. Register it, or leave it out.",
  );
}

async function clientOf(
  deps: Pick<Dependencies, "consent">,
  { client_id: id, client_name: name, surface }: z.infer<typeof deviceSchema>,
) {
  if (!id)
    return {
      clientId: null,
      clientName: surfaces[surface ?? ""]?.name ?? (cleanName(name) || "An unnamed app"),
    };
  const client = await registeredClient(deps, id);
  return { clientId: client.id, clientName: client.name };
}

async function startDevice(
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "consent" | "claudeCode" | "publicUrl">,
) {
  const body = await readOauthBody(context, deviceSchema);
  const client = await clientOf(deps, body);
  const wanted = readScopes(body.scope ?? surfaces[body.surface ?? ""]?.scope);
  if (wanted === undefined)
    throw new GatewayError("invalid_scope", "scope: holds no scope that apps can be granted.");
  const started = await deps.consent.devices.start({
    ...client,
    ...wanted,
    keyLabel: cleanName(body.key_label) || null,
    address: countedAddress(context.clientAddress()),
    userAgent: cleanName(context.request.headers.get("user-agent")).slice(0, 300),
  });
  if (started === undefined) {
    throw new GatewayError(
      "rate_limit_exceeded",
      "Too many device codes of this address wait for a person. Try again later.",
      {
        retryAfterSeconds: 60,
      },
    );
  }
  const page = `${deps.publicUrl()}/device`;
  return context.json({
    device_code: started.deviceCode,
    user_code: started.userCode,
    verification_uri: page,
    verification_uri_complete: `${page}?user_code=${started.userCode}`,
    expires_in: started.expiresInS,
    interval: started.intervalS,
    ...(surfaces[body.surface ?? ""] === undefined || deps.claudeCode.loginNotice === undefined
      ? {}
      : { login_notice: deps.claudeCode.loginNotice }),
  });
}

const declared = {
  ...oauthRoute,
  method: "POST",
  summary: "Start the connection of a device.",
  description:
    "The device flow of RFC 8628. The device shows user_code and verification_uri, and polls POST /oauth/token. Neither a client id " +
    "nor a scope is required.",
  rawBody: deviceSchema,
  formBody: deviceSchema,
  bodyOptional: true,
  response: responseSchema,
  handle: startDevice,
} as const;

/** Starts to connect a device (RFC 8628, section 3.1). */
export const startDeviceFlow = defineEndpoint({
  ...declared,
  path: "/oauth/device/code",
});

/** The same at the path of coding agents that know only the gateway's address. */
export const startAgentFlow = defineEndpoint({
  ...declared,
  path: "/oauth/device_authorization",
  alsoAtRoot: true,
});
