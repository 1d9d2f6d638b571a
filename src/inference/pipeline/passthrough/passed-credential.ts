import type { KeyUse } from "../../../byok/provider-key-usage.ts";
import type { ProviderKeys } from "../../../byok/provider-keys.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { Provider } from "../../catalog/model.ts";
import { retryAfterSecondsOf } from "../../upstream/retry-after.ts";
import type { UpstreamResponse } from "../../upstream/response-parser.ts";
import { saysKeyIsUnknown } from "../credentials/provider-credentials.ts";

/** A provider with the credential that a request is sent with. */
export interface Credentialed {
  provider: Provider;
  /** The own key of the workspace that it is; undefined for the gateway's credential. */
  ownKey: KeyUse | undefined;
}

/**
 * Takes the credential for a request: the first own key of the workspace of which something is left,
 * before the gateway's, and one that the provider has just refused or limited behind it. A request is
 * sent once, so that no second key is tried. Throws `not_configured` where there is none.
 */
export function takeCredential(
  providerKeys: ProviderKeys,
  {
    provider,
    workspaceId,
    generationId,
    priceNano,
  }: { provider: Provider; workspaceId: string; generationId: string; priceNano: bigint },
): Credentialed {
  const uses = providerKeys
    .ownKeys(workspaceId, provider.id)
    .map((key): KeyUse => ({ key, source: "own_byok" }));
  const isTaken = (use: KeyUse): boolean => providerKeys.take(generationId, use, priceNano);
  const isPlatforms = provider.signing === undefined && provider.apiKey !== undefined;
  const ownKey =
    uses.find((use) => !providerKeys.isResting(use.key) && isTaken(use)) ??
    (isPlatforms ? undefined : uses.find(isTaken));
  if (ownKey !== undefined) {
    const { signing: _, ...sent } = provider;
    return { provider: { ...sent, apiKey: providerKeys.secretOf(ownKey.key) }, ownKey };
  }
  if (isPlatforms) return { provider, ownKey: undefined };
  const message = providerKeys.hasOwn(workspaceId, provider.id)
    ? `Your own key of ${provider.id} is disabled, or its quota is used up, and the gateway has none. See GET /auth/byok.`
    : `The gateway has no credential of ${provider.id} that it could send with such a request. Add your own with POST /auth/byok.`;
  throw new GatewayError("not_configured", message);
}

/** An answer as it is passed on. */
export type PassedResponse = Pick<UpstreamResponse, "status" | "headers" | "next" | "abort">;

/**
 * Notes what an answer says about the own key that was sent. Returns the answer, which is still to be
 * read. Never rejects.
 */
export async function noteOwnKey(
  providerKeys: ProviderKeys,
  ownKey: KeyUse,
  response: PassedResponse,
): Promise<PassedResponse> {
  const { status, headers } = response;
  if (status < 400) providerKeys.note(ownKey, { kind: "served" });
  else if (status === 402) providerKeys.note(ownKey, { kind: "refused", reason: null });
  else if (status === 429)
    providerKeys.note(ownKey, {
      kind: "limited",
      retryAfterSeconds: retryAfterSecondsOf({ status, headers, message: null }),
    });
  if (status !== 401) return response;
  // Routes for credentials of another kind answer 401 to every key (docs/decisions/0448).
  const { text, answer } = await withBeginning(response);
  if (saysKeyIsUnknown(text)) providerKeys.note(ownKey, { kind: "refused", reason: null });
  return answer;
}

/** The bytes of a refusal that are read for what it says. */
const beginningBytesMax = 16 * 1024;

/** Returns the beginning of an answer as text, and the answer with all of it still to be read. */
async function withBeginning(
  response: PassedResponse,
): Promise<{ text: string; answer: PassedResponse }> {
  const pieces: Uint8Array[] = [];
  let failure: { error: unknown } | undefined;
  try {
    for (let size = 0; size < beginningBytesMax; size += pieces.at(-1)?.byteLength ?? 0) {
      const piece = await response.next();
      if (piece === undefined) break;
      pieces.push(piece);
    }
  } catch (error) {
    failure = { error };
  }
  const text = Buffer.concat(pieces).toString("utf8");
  const answer: PassedResponse = {
    status: response.status,
    headers: response.headers,
    next() {
      const piece = pieces.shift();
      if (piece !== undefined) return piece;
      if (failure !== undefined) return Promise.reject(failure.error);
      return response.next();
    },
    abort: () => response.abort(),
  };
  return { text, answer };
}
