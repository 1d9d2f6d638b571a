import { isLive, type Caller, type Credential, type LlmKeyCaller } from "../account/keys/caller.ts";
import type { CredentialDirectory } from "../account/keys/credential-directory.ts";
import type { KeyConnection } from "../account/keys/llm-key.ts";
import { coversScope } from "../account/keys/scopes.ts";
import { sessionCookieOf } from "../account/people/session-cookie.ts";
import { brand } from "../platform/lib/brand.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import { shownPath, type AccessRule, type Endpoint } from "./endpoint.ts";
import { asPattern } from "./endpoint-paths.ts";
import { RefusedCredentialError } from "./refused-credential.ts";
import type { RequestContext } from "./request-context.ts";
import type { RequestHeaders } from "./http-request.ts";

/** The secrets that a request carries in `Authorization: Bearer` and `x-api-key`; an authorization of another kind is an empty one. */
function presentedSecrets(headers: RequestHeaders): string[] {
  const authorization = headers.get("authorization");
  const bearer =
    authorization === null ? null : (/^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "");
  return [bearer, headers.get("x-api-key")].filter((secret) => secret !== null);
}

const invalidKey = (): GatewayError =>
  new RefusedCredentialError(
    "invalid_api_key",
    "The API key is not valid: it is unknown, revoked, disabled or expired.",
  );

const needsSession = (): GatewayError =>
  new GatewayError(
    "unauthorized",
    "This endpoint is for people who have signed in; keys are for programs.",
    {
      metadata: { hint: "Sign in with POST /api/auth/sign-in/email and send the cookie." },
    },
  );

/** Of a request without a key. A session where none is accepted is no mistake of its browser, so it is told what is. */
function missingKey(
  headers: RequestHeaders,
  { session, managementScope }: AccessRule,
): GatewayError {
  if (session && managementScope === undefined)
    return new GatewayError("authentication_required", "Sign in to use this endpoint.");
  if (!session && sessionCookieOf(headers.get("cookie")) !== undefined) {
    const message = `This endpoint needs an LLM key (prefix ${brand.llmKeyFamilyPrefix}); sessions are for administration.`;
    return new GatewayError("unauthorized", message, {
      metadata: { hint: "Create an LLM key with POST /keys and send it as Authorization: Bearer." },
    });
  }
  return new GatewayError(
    "missing_api_key",
    "No API key was sent. Send one as `Authorization: Bearer <key>`.",
  );
}

/**
 * A connected app as a caller: what its person granted, and nothing else, opens an endpoint. Where an endpoint names a scope that
 * one decides; inference needs `inference`. Throws `insufficient_scope`, and `unauthorized` where no connected app is accepted.
 */
function connectedCaller(
  credential: LlmKeyCaller,
  connection: KeyConnection,
  access: AccessRule,
): Caller {
  const { managementScope, llmKey, ofItself, operator, session } = access;
  if (ofItself || access.anonymous) return credential;
  const connected: Caller = {
    kind: "connection",
    key: credential.key,
    connection,
    workspace: credential.workspace,
  };
  if (access.anyScope) return connected;
  if (access.keyHeldDirectly || operator || (session && managementScope === undefined)) {
    throw new GatewayError(
      "insufficient_scope",
      "Connected apps may not use this endpoint. Use a key of your own, or sign in.",
    );
  }
  const scope = managementScope ?? "inference";
  if (!coversScope(connection.scopes, scope)) {
    throw new GatewayError(
      "insufficient_scope",
      `This app was not granted the scope ${scope}. Connect it again and grant it.`,
      {
        metadata: { required_scope: scope, granted_scopes: [...connection.scopes] },
      },
    );
  }
  return llmKey ? credential : connected;
}

function assertAccepted(credential: Credential, access: AccessRule): void {
  if (access.session && access.managementScope === undefined) throw needsSession();
  if (credential.kind === "llm-key") {
    if (access.llmKey || access.anonymous) return;
    throw new GatewayError(
      "unauthorized",
      `This endpoint needs a management key (prefix ${brand.managementKeyFamilyPrefix}); LLM keys are for inference.`,
      {
        metadata: {
          hint: `Create a management key with the scope ${access.managementScope ?? "of this endpoint"} and send it as Authorization: Bearer.`,
        },
      },
    );
  }
  if (access.anyScope) return;
  if (access.managementScope !== undefined) {
    if (coversScope(credential.key.scopes, access.managementScope)) return;
    throw new GatewayError(
      "insufficient_scope",
      `This management key lacks the scope ${access.managementScope}.`,
      {
        metadata: { required_scope: access.managementScope },
      },
    );
  }
  if (access.anonymous) return;
  throw new GatewayError(
    "unauthorized",
    `This endpoint needs an LLM key (prefix ${brand.llmKeyFamilyPrefix}); management keys are for administration.`,
    {
      metadata: { hint: "Create an LLM key with POST /keys and send it as Authorization: Bearer." },
    },
  );
}

type EndpointPath = Pick<Endpoint<never>, "base" | "path">;

function assertEndpointAllowed(credential: Credential, endpoint: EndpointPath): void {
  if (credential.kind !== "llm-key") return;
  const allowed = credential.key.allowedEndpoints;
  if (allowed === null || allowed.length === 0) return;
  const pattern = asPattern(endpoint.path);
  if (allowed.some((entry) => asPattern(entry) === pattern)) return;
  throw new GatewayError(
    "insufficient_scope",
    `This key may not call ${shownPath(endpoint)}; its allowed_endpoints do not list it.`,
    {
      metadata: { allowed_endpoints: allowed },
    },
  );
}

/**
 * Who calls, if that caller may use the endpoint. Denies by default: an access rule that names no
 * family admits nobody.
 */
export function authenticate(options: {
  headers: RequestHeaders;
  endpoint: EndpointPath & { access: AccessRule };
  directory: CredentialDirectory;
  nowMs: number;
  /** Says who calls where no credential is needed. */
  context: Pick<RequestContext, "anonymousCaller">;
}): Caller {
  const { access } = options.endpoint;
  if (access.open) return options.context.anonymousCaller();
  const secrets = presentedSecrets(options.headers);
  if (secrets.length === 0) {
    if (access.anonymous) return options.context.anonymousCaller();
    throw missingKey(options.headers, access);
  }
  // Anthropic's clients may send a key of their own in one header and ours in the other: the one that is good counts.
  const credential = secrets
    .map((secret) => options.directory.find(secret))
    .find((found) => found !== undefined && isLive(found, options.nowMs));
  if (credential === undefined) throw invalidKey();
  const connection = credential.kind === "llm-key" ? credential.key.connection : undefined;
  if (credential.kind === "llm-key" && connection !== undefined)
    return connectedCaller(credential, connection, access);
  assertAccepted(credential, access);
  if (!access.ofItself) assertEndpointAllowed(credential, options.endpoint);
  return credential;
}
