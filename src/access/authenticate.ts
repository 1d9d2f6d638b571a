import { asPattern, shownPath, type AccessRule, type Endpoint } from "../http/endpoint.ts";
import type { RequestHeaders } from "../http/http-request.ts";
import type { RequestContext } from "./define-endpoint.ts";
import {
  isLive,
  type Caller,
  type Credential,
  type LlmKeyCaller,
} from "../identity/keys/caller.ts";
import type { CredentialDirectory } from "../identity/keys/credential-directory.ts";
import type { KeyConnection } from "../identity/keys/llm-key.ts";
import { coversScope } from "../identity/keys/scopes.ts";
import { sessionCookieOf } from "../identity/people/sessions.ts";
import { brand } from "../platform/kernel/brand.ts";
import { GatewayError } from "../platform/kernel/errors.ts";
import { RefusedCredentialError } from "./count-request.ts";

/**
 * The secrets that a request carries in `Authorization: Bearer` and `x-api-key`; an authorization
 * of another kind is an empty one.
 */
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

/**
 * The refusal of a request without a key. A browser sends its session to every endpoint, so where
 * none is accepted the message names what is.
 */
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
 * A connected app as a caller: what its person granted, and nothing else, opens an endpoint. Where
 * an endpoint names a scope that one decides; inference needs `inference`. Throws
 * `insufficient_scope`, and `unauthorized` where no connected app is accepted.
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
  if (access.session && access.managementScope === undefined && !access.anonymous)
    throw needsSession();
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

const anonymousIn = (context: Pick<RequestContext, "clientAddress">): Caller => ({
  kind: "anonymous",
  address: context.clientAddress(),
});

/**
 * The credential that a secret opens. Anthropic's clients may send a key of their own in one header
 * and ours in the other: the one that is good counts.
 */
function liveCredential(
  secrets: readonly string[],
  { directory, nowMs }: { directory: CredentialDirectory; nowMs: number },
): Credential | undefined {
  for (const secret of secrets) {
    const found = directory.find(secret);
    if (found !== undefined && isLive(found, nowMs)) return found;
  }
  return undefined;
}

/**
 * Who calls, if that caller may use the endpoint. Denies by default: an access rule that names no
 * family refuses every caller.
 */
export function authenticate(options: {
  headers: RequestHeaders;
  endpoint: EndpointPath & { access: AccessRule };
  directory: CredentialDirectory;
  nowMs: number;
  /** Finds the address that a request without a credential is counted by. */
  context: Pick<RequestContext, "clientAddress">;
}): Caller {
  const { access } = options.endpoint;
  if (access.open) return anonymousIn(options.context);
  const secrets = presentedSecrets(options.headers);
  if (secrets.length === 0) {
    if (access.anonymous) return anonymousIn(options.context);
    throw missingKey(options.headers, access);
  }
  const credential = liveCredential(secrets, options);
  if (credential === undefined) throw invalidKey();
  const connection = credential.kind === "llm-key" ? credential.key.connection : undefined;
  if (credential.kind === "llm-key" && connection !== undefined)
    return connectedCaller(credential, connection, access);
  assertAccepted(credential, access);
  if (!access.ofItself) assertEndpointAllowed(credential, options.endpoint);
  return credential;
}
