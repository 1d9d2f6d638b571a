import type {
  AuthorizationServerMetadata,
  FetchLike,
  OAuthClientInformationMixed,
  OAuthClientMetadata,
} from "@modelcontextprotocol/client";
import { brand } from "../../../platform/kernel/brand.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { UpstreamServer } from "../upstream-server.ts";

/** The client that the gateway is at the authorization server of an MCP server. */
export interface KnownClient {
  issuer: string;
  metadata?: AuthorizationServerMetadata | undefined;
  client: OAuthClientInformationMixed;
  /** What tokens are for, in the words of the MCP server (RFC 8707). */
  resource: string;
  /** The address that tokens may be sent to; absent in old rows, where it is the resource. */
  url?: string | undefined;
}

/** Where the gateway describes itself as a client (OAuth Client ID Metadata Documents). */
export const clientDocumentPath = "/client-metadata.json";

/** Returns the address of that; undefined where the gateway is not reached over HTTPS. */
export const clientDocumentUrl = (publicUrl: string): string | undefined =>
  publicUrl.startsWith("https:") ? `${publicUrl}${clientDocumentPath}` : undefined;

/** Returns what the gateway says of itself as a client. */
export const clientMetadata = (redirectUrl: string): OAuthClientMetadata => ({
  client_name: brand.productName,
  application_type: "web",
  redirect_uris: [redirectUrl],
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
  token_endpoint_auth_method: "none",
});

/** How the gateway is reached by an authorization server. */
interface DiscoveryParts {
  redirectUrl: string;
  /** Where it describes itself; absent where it is not reached over HTTPS. */
  documentUrl: string | undefined;
  fetchFn: FetchLike;
}

/**
 * Asks an MCP server something without a token, and returns what its refusal says: where its
 * metadata are, and the scope that it wants (MCP, "Scope Selection Strategy").
 */
async function challengeOf(
  url: string,
  { fetchFn }: Pick<DiscoveryParts, "fetchFn">,
): Promise<{ resourceMetadataUrl?: URL | undefined; scope?: string | undefined }> {
  const sdk = await import("@modelcontextprotocol/client");
  try {
    const response = await fetchFn(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
    });
    await response.body?.cancel();
    return response.status === 401 ? sdk.extractWWWAuthenticateParams(response) : {};
  } catch {
    // The discovery that follows names what is wrong.
    return {};
  }
}

/**
 * Finds the authorization server of an MCP server and the client that the gateway is there: the one
 * that is configured, its own document where the server takes those, or one that it registers. Throws
 * `bad_request` where none can be used, and where the server says that tokens are for another one.
 */
export async function discoverClient(
  { target, auth }: UpstreamServer,
  parts: DiscoveryParts,
): Promise<KnownClient & { scope: string | undefined }> {
  if (target.transport !== "streamable_http" || auth.type === "none" || auth.type === "headers")
    throw new GatewayError("bad_request", "This MCP server is not used with OAuth.");
  const sdk = await import("@modelcontextprotocol/client");
  const { fetchFn } = parts;
  try {
    const { resourceMetadataUrl, scope: challenged } = await challengeOf(target.url, parts);
    const info = await sdk.discoverOAuthServerInfo(target.url, {
      fetchFn,
      ...(resourceMetadataUrl && { resourceMetadataUrl }),
    });
    const { resourceMetadata, authorizationServerMetadata: metadata } = info;
    const requestedResource = sdk.resourceUrlFromServerUrl(target.url);
    const configuredResource = resourceMetadata?.resource ?? target.url;
    if (!sdk.checkResourceAllowed({ requestedResource, configuredResource }))
      throw new Error("The server's metadata are those of another resource.");
    const issuer = String(info.authorizationServerUrl);
    const scope = auth.scope ?? challenged ?? resourceMetadata?.scopes_supported?.join(" ");
    const client = await clientAt(issuer, { ...parts, auth, metadata, scope });
    const lasting = scope && metadata?.scopes_supported?.includes("offline_access");
    return {
      issuer,
      metadata,
      client,
      resource: configuredResource,
      url: target.url,
      scope: lasting ? sdk.computeScopeUnion(scope, "offline_access") : scope || undefined,
    };
  } catch (error) {
    throw new GatewayError(
      "bad_request",
      "The MCP server's authorization server cannot be used: its metadata cannot be read or are those of another server, or it " +
        "registers no clients.",
      { cause: error },
    );
  }
}

/** Returns the gateway's client at an authorization server. */
async function clientAt(
  issuer: string,
  {
    auth,
    metadata,
    scope,
    redirectUrl,
    documentUrl,
    fetchFn,
  }: DiscoveryParts & {
    auth: { clientId?: string | undefined; clientSecret?: string | undefined };
    metadata: AuthorizationServerMetadata | undefined;
    scope: string | undefined;
  },
): Promise<OAuthClientInformationMixed> {
  const { clientId, clientSecret } = auth;
  if (clientId !== undefined)
    return {
      client_id: clientId,
      ...(clientSecret !== undefined && { client_secret: clientSecret }),
    };
  const takesDocuments = Object(metadata) as { client_id_metadata_document_supported?: unknown };
  if (documentUrl !== undefined && takesDocuments.client_id_metadata_document_supported === true)
    return { client_id: documentUrl };
  const sdk = await import("@modelcontextprotocol/client");
  return sdk.registerClient(issuer, {
    ...(metadata && { metadata }),
    ...(scope && { scope }),
    clientMetadata: clientMetadata(redirectUrl),
    fetchFn,
  });
}
