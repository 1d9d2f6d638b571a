import type { CatalogSnapshot, Provider } from "../../inference/catalog/model.ts";

/** How a workspace's documents are parsed: where, and on whose key. */
export interface DocumentCredential {
  providerId: string;
  /** Without a trailing slash; `/documents/parse` comes behind it. */
  baseUrl: string;
  apiKey: string;
  /** Whose key it is. */
  source: "own_byok" | "platform";
  timeouts: { connectMs: number; idleMs: number; totalMs: number };
  /** The provider's own proxy, or `none`. */
  proxy?: string | undefined;
}

/** The credential of a workspace; undefined when it has none. */
export type DocumentCredentialOf = (workspaceId: string) => DocumentCredential | undefined;

/** The caller's own key for a provider in clear; undefined when the workspace has none that may be used now. */
export type OwnKeyOf = (workspaceId: string, providerId: string) => string | undefined;

/**
 * Looks for the workspace's own key at any provider that parses documents, simulated ones last, then for a key that the
 * operator has given such a provider. Who has neither is told so, whether or not something could be simulated.
 */
export function documentCredentialLookup({
  catalog,
  ownKeyOf,
}: {
  catalog: () => CatalogSnapshot;
  ownKeyOf: OwnKeyOf;
}): DocumentCredentialOf {
  return (workspaceId) => {
    const parsers = [...catalog().providers.values()]
      .filter(({ dialects }) => dialects.documents === "documents-parse")
      .sort((one, other) => Number(one.simulated ?? false) - Number(other.simulated ?? false));
    for (const provider of parsers) {
      const own = ownKeyOf(workspaceId, provider.id);
      if (own !== undefined) return credentialAt(provider, { apiKey: own, source: "own_byok" });
    }
    const configured = parsers.find(
      ({ apiKey, simulated }) => simulated !== true && apiKey !== undefined && apiKey !== "",
    );
    return configured === undefined
      ? undefined
      : credentialAt(configured, { apiKey: configured.apiKey ?? "", source: "platform" });
  };
}

function credentialAt(
  { id, baseUrl, surfaceBaseUrls, timeouts, proxy }: Provider,
  key: Pick<DocumentCredential, "apiKey" | "source">,
): DocumentCredential | undefined {
  const address = surfaceBaseUrls?.documents ?? baseUrl;
  return address === undefined
    ? undefined
    : { providerId: id, baseUrl: address, timeouts, proxy, ...key };
}
