import { z } from "zod";
import { grantableScopes, offlineScope } from "../../consent/granted-scopes.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { brand } from "../../platform/kernel/brand.ts";
import type { Dependencies } from "../dependencies.ts";
import { deviceGrant } from "./oauth-body.ts";

const shared = {
  base: "root",
  method: "GET",
  access: { open: true },
  counting: "at-door",
  anyOrigin: true,
  tag: "Key minting",
  encodeError: encodeContractError,
} as const;

const publicly = { "cache-control": "public, max-age=3600" } as const;

const serverSchema = lazily(() =>
  z.looseObject({
    issuer: z.string(),
    authorization_endpoint: z.string(),
    token_endpoint: z.string(),
  }),
);

/**
 * Returns the metadata of the authorization server (RFC 8414, section 2). The issuer is the address
 * where people reach the service.
 */
function authorizationServer(publicUrl: string): AnswerOf<typeof serverSchema> {
  const api = `${publicUrl}/api/v1`;
  return {
    issuer: publicUrl,
    authorization_endpoint: `${api}/mcp/oauth/authorize`,
    token_endpoint: `${api}/oauth/token`,
    device_authorization_endpoint: `${api}/oauth/device/code`,
    registration_endpoint: `${api}/mcp/oauth/register`,
    revocation_endpoint: `${api}/oauth/revoke`,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: ["authorization_code", "refresh_token", deviceGrant],
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: ["none"],
    revocation_endpoint_auth_methods_supported: ["none"],
    scopes_supported: [...grantableScopes, offlineScope],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: true,
    service_documentation: `${publicUrl}/docs`,
  };
}

const answerServer = (
  context: RequestContext<unknown>,
  { publicUrl }: Pick<Dependencies, "publicUrl">,
) => context.json(authorizationServer(publicUrl()), { headers: publicly });

/** Describes the authorization server (RFC 8414). */
export const authorizationServerMetadata = defineEndpoint({
  ...shared,
  path: "/.well-known/oauth-authorization-server",
  summary: "Describe the authorization server.",
  response: serverSchema,
  handle: answerServer,
});

/**
 * Paths of resources below the service, which clients append to a well-known name (RFC 8414,
 * section 3.1).
 */
const resourcePaths = ["/mcp", "/v1/mcp", "/api/v1/mcp", "/api/v1", "/api", "/v1"] as const;

/** The same for clients that append the path of the resource to the well-known name. */
export const authorizationServerMetadataBelow = resourcePaths.map((path) =>
  defineEndpoint({
    ...shared,
    path: `/.well-known/oauth-authorization-server${path}`,
    summary: `Describe the authorization server of ${path}.`,
    response: serverSchema,
    handle: answerServer,
  }),
);

/** The same under the name that OpenID Connect clients request. There are no ID tokens. */
export const openIdMetadata = defineEndpoint({
  ...shared,
  path: "/.well-known/openid-configuration",
  summary: "Describe the authorization server.",
  response: serverSchema,
  handle: answerServer,
});

const resourceSchema = lazily(() =>
  z.object({
    resource: z.string(),
    authorization_servers: z.array(z.string()),
    scopes_supported: z.array(z.string()),
    bearer_methods_supported: z.array(z.string()),
    resource_name: z.string(),
    resource_documentation: z.string(),
  }),
);

/** Returns the metadata of a protected resource (RFC 9728, section 2). */
const protectedResource = (
  resource: string,
  publicUrl: string,
): AnswerOf<typeof resourceSchema> => ({
  resource,
  authorization_servers: [publicUrl],
  scopes_supported: [...grantableScopes],
  bearer_methods_supported: ["header"],
  resource_name: brand.productName,
  resource_documentation: `${publicUrl}/docs`,
});

/** Describes the service as a protected resource (RFC 9728). */
export const protectedResourceMetadata = defineEndpoint({
  ...shared,
  path: "/.well-known/oauth-protected-resource",
  summary: "Describe the service as a protected resource.",
  response: resourceSchema,
  handle: (context, { publicUrl }: Pick<Dependencies, "publicUrl">) =>
    context.json(protectedResource(publicUrl(), publicUrl()), { headers: publicly }),
});

/** The paths below which upstream MCP servers are resources. */
const serverPaths = ["/mcp", "/v1/mcp", "/api/v1/mcp"] as const;

/** Describes the address of an upstream MCP server, such as `/mcp/docs`, as a protected resource. */
export const serverResourceMetadata = serverPaths.map((path) =>
  defineEndpoint({
    ...shared,
    path: `/.well-known/oauth-protected-resource${path}/:server`,
    summary: `Describe a server below ${path} as a protected resource.`,
    response: resourceSchema,
    handle: (context, { publicUrl }: Pick<Dependencies, "publicUrl">) =>
      context.json(
        protectedResource(`${publicUrl()}${path}/${context.param("server")}`, publicUrl()),
        { headers: publicly },
      ),
  }),
);

/** The same for clients that ask for the authorization server below it. */
export const serverAuthorizationMetadata = serverPaths.map((path) =>
  defineEndpoint({
    ...shared,
    path: `/.well-known/oauth-authorization-server${path}/:server`,
    summary: `Describe the authorization server of a server below ${path}.`,
    response: serverSchema,
    handle: answerServer,
  }),
);

/** Describes a resource below the service, such as `/mcp` (RFC 9728, section 3.1). */
export const protectedResourceMetadataBelow = resourcePaths.map((path) =>
  defineEndpoint({
    ...shared,
    path: `/.well-known/oauth-protected-resource${path}`,
    summary: `Describe ${path} as a protected resource.`,
    response: resourceSchema,
    handle: (context, { publicUrl }: Pick<Dependencies, "publicUrl">) =>
      context.json(protectedResource(publicUrl() + path, publicUrl()), { headers: publicly }),
  }),
);
