import type { KeyUse } from "../../../byok/provider-key-usage.ts";
import type { ProviderKeys } from "../../../byok/provider-keys.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { Provider } from "../../catalog/model.ts";
import { retryAfterSecondsOf } from "../../upstream/retry-after.ts";
import type { UpstreamResponse } from "../../upstream/response-parser.ts";

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

/** Notes what an answer says about the own key that was sent. */
export function noteOwnKey(
  providerKeys: ProviderKeys,
  ownKey: KeyUse,
  { status, headers }: Pick<UpstreamResponse, "status" | "headers">,
): void {
  if (status < 400) providerKeys.note(ownKey, { kind: "served" });
  else if (status === 401 || status === 402)
    providerKeys.note(ownKey, { kind: "refused", reason: null });
  else if (status === 429)
    providerKeys.note(ownKey, {
      kind: "limited",
      retryAfterSeconds: retryAfterSecondsOf({ status, headers, message: null }),
    });
}
