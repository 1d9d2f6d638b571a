import { z } from "zod";
import { countedAddress } from "../../platform/rate-windows/named-windows.ts";
import { cleanName, isNativeRedirect, redirectProblem } from "../../consent/oauth-clients.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { deviceGrant, oauthRoute, readOauthBody } from "./oauth-body.ts";

const redirectsMax = 20;
const redirectsMissing = "is required: the URIs that codes are sent to";

const webUri = z
  .string()
  .max(2_000)
  .regex(/^https?:\/\/\P{Cc}*$/u, "must be an http or https URL")
  .nullish();

const registrationSchema = z.looseObject({
  redirect_uris: z
    .array(z.string().max(2_000), redirectsMissing)
    .min(1, "must name a redirect URI")
    .max(redirectsMax, `must name at most ${redirectsMax} redirect URIs`)
    .nullish(),
  client_name: z.string().max(100, "must have at most 100 characters").nullish(),
  client_uri: webUri,
  logo_uri: webUri,
  application_type: z.enum(["web", "native"], "must be web or native").nullish(),
  token_endpoint_auth_method: z.string().max(100).nullish(),
  grant_types: z.array(z.string().max(100)).max(20).nullish(),
  response_types: z.array(z.string().max(100)).max(20).nullish(),
  scope: z.string().max(2_000).nullish(),
});

type Registration = z.infer<typeof registrationSchema>;

/** Whether a client uses no flow that leads back to it (RFC 7591, section 2, `redirect_uris`). */
const isDeviceOnly = ({ grant_types: grants }: Registration): boolean =>
  grants?.includes(deviceGrant) === true && !grants.includes("authorization_code");

/**
 * The redirect URIs of a registration; none for a client of the device flow alone. Throws
 * `invalid_client_metadata` where they are missing, `invalid_redirect_uri` where one is not allowed.
 */
function redirectsOf(body: Registration): readonly string[] {
  const { redirect_uris: uris } = body;
  if (uris === null || uris === undefined) {
    if (isDeviceOnly(body)) return [];
    throw new GatewayError("invalid_client_metadata", `redirect_uris: ${redirectsMissing}`);
  }
  for (const uri of uris) {
    const problem = redirectProblem(uri);
    if (problem !== undefined)
      throw new GatewayError(
        "invalid_redirect_uri",
        `redirect_uris: ${uri.slice(0, 200)} ${problem}.`,
      );
  }
  return uris;
}

const clientSchema = lazily(() =>
  z.object({
    client_id: z.string(),
    client_id_issued_at: z.int(),
    client_name: z.string(),
    redirect_uris: z.array(z.string()),
    grant_types: z.array(z.string()),
    response_types: z.array(z.string()),
    token_endpoint_auth_method: z.literal("none"),
    application_type: z.enum(["web", "native"]),
    client_uri: z.string().optional(),
    logo_uri: z.string().optional(),
  }),
);

/**
 * Registers an OAuth client (RFC 7591). Clients are public: even those that ask for a secret are
 * given none.
 */
export const registerOauthClient = defineEndpoint({
  ...oauthRoute,
  method: "POST",
  path: "/mcp/oauth/register",
  summary: "Register an OAuth client.",
  description:
    "Dynamic registration of RFC 7591. Loopback redirects and custom schemes make a client native, even if it does not declare " +
    "that. A client whose grant_types include the device flow but not authorization_code needs no redirect_uris. Clients without a " +
    "connection are deleted after 30 days.",
  rawBody: registrationSchema,
  successStatus: 201,
  response: clientSchema,
  async handle(context, { consent }: Pick<Dependencies, "consent">) {
    const body = await readOauthBody(context, registrationSchema).catch((error: unknown) => {
      if (!(error instanceof GatewayError) || error.code !== "bad_request") throw error;
      throw new GatewayError("invalid_client_metadata", error.message, { cause: error });
    });
    const redirectUris = redirectsOf(body);
    const client = await consent.clients.register(
      {
        name: cleanName(body.client_name) || "An unnamed app",
        redirectUris,
        clientUri: body.client_uri ?? null,
        logoUri: body.logo_uri ?? null,
        applicationType: redirectUris.some(isNativeRedirect)
          ? "native"
          : (body.application_type ?? "web"),
      },
      countedAddress(context.clientAddress()),
    );
    if (client === undefined) {
      throw new GatewayError(
        "rate_limit_exceeded",
        "Too many clients were registered from this address. Try again tomorrow, or use a client id metadata document.",
        { retryAfterSeconds: 3_600 },
      );
    }
    return context.json(
      {
        client_id: client.id,
        client_id_issued_at: Math.floor(client.createdAtMs / 1_000),
        client_name: client.name,
        redirect_uris: client.redirectUris,
        ...(redirectUris.length === 0
          ? { grant_types: [deviceGrant], response_types: [] }
          : { grant_types: ["authorization_code", "refresh_token"], response_types: ["code"] }),
        token_endpoint_auth_method: "none",
        application_type: client.applicationType,
        ...(client.clientUri === null ? {} : { client_uri: client.clientUri }),
        ...(client.logoUri === null ? {} : { logo_uri: client.logoUri }),
      },
      { status: 201 },
    );
  },
});
