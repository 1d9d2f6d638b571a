import type { RequestHeaders } from "../http/request-context.ts";

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
 * Returns the secrets that a request carries in `Authorization: Bearer`, in `x-api-key`, in Google's
 * `x-goog-api-key`, in Azure's `api-key`, and in the query where the endpoint takes it there. An authorization of another
 * type counts as an empty secret.
 */
export function presentedSecrets(headers: RequestHeaders, inQuery: string | null): string[] {
  const authorization = headers.get("authorization");
  const bearer =
    authorization === null ? null : (/^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "");
  return [
    bearer,
    headers.get("x-api-key"),
    headers.get("x-goog-api-key"),
    headers.get("api-key"),
    protocolSecret(headers),
    inQuery,
  ].filter((secret) => secret !== null);
}
