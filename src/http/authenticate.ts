import type { Caller, Credential } from "../account/keys/caller.ts";
import type { CredentialDirectory } from "../account/keys/credential-directory.ts";
import { coversScope } from "../account/keys/scopes.ts";
import { brand } from "../platform/lib/brand.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import type { AccessRule } from "./endpoint.ts";

/** The credential that a request carries, from `Authorization: Bearer` or, failing that, `x-api-key`. */
export function presentedSecret(headers: Headers): string | undefined {
  const authorization = headers.get("authorization");
  if (authorization !== null) {
    const match = /^bearer +(\S+) *$/i.exec(authorization);
    return match?.[1] ?? "";
  }
  return headers.get("x-api-key") ?? undefined;
}

const invalidKey = (): GatewayError =>
  new GatewayError("invalid_api_key", "The API key is not valid: it is unknown, revoked, disabled or expired.");

function assertLive(credential: Credential, nowMs: number): void {
  const { key } = credential;
  if (key.expiresAtMs !== null && key.expiresAtMs <= nowMs) throw invalidKey();
  if (credential.kind === "llm-key" ? credential.key.disabled : credential.key.revokedAtMs !== null) throw invalidKey();
}

function assertAccepted(credential: Credential, access: AccessRule): void {
  if (credential.kind === "llm-key") {
    if (access.llmKey || access.anonymous) return;
    throw new GatewayError("unauthorized", `This endpoint needs a management key (prefix ${brand.managementKeyFamilyPrefix}); LLM keys are for inference.`, {
      metadata: { hint: `Create a management key with the scope ${access.managementScope ?? "of this endpoint"} and send it as Authorization: Bearer.` },
    });
  }
  if (access.managementScope !== undefined) {
    if (coversScope(credential.key.scopes, access.managementScope)) return;
    throw new GatewayError("insufficient_scope", `This management key lacks the scope ${access.managementScope}.`, {
      metadata: { required_scope: access.managementScope },
    });
  }
  if (access.anonymous) return;
  throw new GatewayError("unauthorized", `This endpoint needs an LLM key (prefix ${brand.llmKeyFamilyPrefix}); management keys are for administration.`, {
    metadata: { hint: "Create an LLM key with POST /keys and send it as Authorization: Bearer." },
  });
}

/** A path as entries of `allowed_endpoints` are compared: without base, final slash and names of parameters. */
const asPattern = (path: string): string =>
  path.replace(/^\/(?:api\/)?v1(?=\/)/, "").replace(/\{\w+\}|:\w+/g, ":").replace(/\/$/, "");

function assertEndpointAllowed(credential: Credential, path: string): void {
  if (credential.kind !== "llm-key") return;
  const allowed = credential.key.allowedEndpoints;
  if (allowed === null || allowed.length === 0) return;
  const pattern = asPattern(path);
  if (allowed.some((entry) => asPattern(entry) === pattern)) return;
  throw new GatewayError("insufficient_scope", `This key may not call ${path}; its allowed_endpoints do not list it.`, {
    metadata: { allowed_endpoints: allowed },
  });
}

/**
 * Who calls, if that caller may use the endpoint. Denies by default: an access rule that names no
 * family admits nobody. `path` is the route's pattern below the API base.
 */
export function authenticate(options: {
  headers: Headers;
  access: AccessRule;
  path: string;
  directory: CredentialDirectory;
  nowMs: number;
  anonymous: () => Caller;
}): Caller {
  const { access } = options;
  if (access.open) return options.anonymous();
  const secret = presentedSecret(options.headers);
  if (secret === undefined) {
    if (access.anonymous) return options.anonymous();
    throw new GatewayError("missing_api_key", "No API key was sent. Send one as `Authorization: Bearer <key>`.");
  }
  const credential = options.directory.find(secret);
  if (credential === undefined) throw invalidKey();
  assertLive(credential, options.nowMs);
  assertAccepted(credential, access);
  assertEndpointAllowed(credential, options.path);
  return credential;
}
