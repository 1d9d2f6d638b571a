import type { CatalogSnapshot } from "./model.ts";

const idsBySnapshot = new WeakMap<CatalogSnapshot, ReadonlyMap<string, string>>();

/** Ids by slug and by display name, in lower case; collected once a snapshot, since a catalog may have many providers. */
function idsByName(catalog: CatalogSnapshot): ReadonlyMap<string, string> {
  let ids = idsBySnapshot.get(catalog);
  if (ids === undefined) {
    const providers = [...catalog.providers.values()];
    ids = new Map([
      ...providers.map(({ id, name }): [string, string] => [name.toLowerCase(), id]),
      // A slug wins over another provider's display name.
      ...providers.map(({ id }): [string, string] => [id.toLowerCase(), id]),
    ]);
    idsBySnapshot.set(catalog, ids);
  }
  return ids;
}

/** The provider that a slug or display name means, in any case (rule 7 of the provider object); undefined for a stranger. */
export const providerIdIn = (catalog: CatalogSnapshot, name: string): string | undefined =>
  idsByName(catalog).get(name.toLowerCase());
