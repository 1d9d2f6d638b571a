import { brand } from "../platform/kernel/brand.ts";
import type { RequestHeaders } from "../http/served-request.ts";
import { RefusedCredentialError } from "./count-request.ts";

/** The prefix of the subprotocol by which browsers send a key (OpenAI, "Realtime API"). */
const keyProtocol = "openai-insecure-api-key.";

/** Returns the secret that a browser's handshake carries as a subprotocol; null where it has none. */
const protocolSecret = (headers: RequestHeaders): string | null =>
  headers
    .get("sec-websocket-protocol")
    ?.split(",")
    .map((name) => name.trim())
    .find((name) => name.startsWith(keyProtocol))
    ?.slice(keyProtocol.length) ?? null;

/**
 * Returns the secret in `Authorization: Bearer`, which nearly all clients send; empty for an
 * authorization of another type, and null where there is none.
 */
export function bearerSecret(headers: RequestHeaders): string | null {
  const authorization = headers.get("authorization");
  return authorization === null ? null : (/^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "");
}

/**
 * Returns the secrets that a request carries in `Authorization: Bearer`, in `x-api-key`, in Google's
 * `x-goog-api-key`, in Azure's `api-key`, in Portkey's `x-portkey-api-key`, and in the query where
 * the endpoint takes it there. An authorization of another type counts as an empty secret.
 */
export function presentedSecrets(headers: RequestHeaders, inQuery: string | null): string[] {
  return [
    bearerSecret(headers),
    headers.get("x-api-key"),
    headers.get("x-goog-api-key"),
    headers.get("api-key"),
    headers.get("x-portkey-api-key"),
    protocolSecret(headers),
    inQuery,
  ].filter((secret) => secret !== null);
}

/** Matches the authorization of a request that is signed as AWS requires it. */
const signature = /^AWS4-/;

/** Returns whether secrets have the form of no key of the gateway, such as where a provider's is sent. */
const areForeign = (secrets: readonly string[]): boolean =>
  secrets.length > 0 &&
  !secrets.some(
    (secret) =>
      secret.startsWith(brand.llmKeyFamilyPrefix) ||
      secret.startsWith(brand.managementKeyFamilyPrefix),
  );

const foreignHint = ` Keys of this gateway begin with ${brand.llmKeyFamilyPrefix}; a key of a provider is not one of them.`;

/** Builds the refusal of a request with these headers, whose secrets are no valid key. */
export function invalidKey(
  headers: RequestHeaders,
  secrets: readonly string[],
): RefusedCredentialError {
  const isSigned = signature.test(headers.get("authorization") ?? "");
  const isEmpty = secrets.length > 0 && secrets.every((secret) => secret === "");
  const message = isSigned
    ? "Signatures of AWS (SigV4) are not read here. Send a key of the gateway as `Authorization: Bearer`: Amazon's clients take it " +
      "from AWS_BEARER_TOKEN_BEDROCK, Anthropic's as `apiKey` or `api_key`."
    : isEmpty
      ? "The authorization has no key. Send one as `Authorization: Bearer <key>`; a variable that it is read from may be empty."
      : `The API key is not valid: it is unknown, revoked, disabled or expired.${areForeign(secrets) ? foreignHint : ""}`;
  return new RefusedCredentialError("invalid_api_key", message);
}
