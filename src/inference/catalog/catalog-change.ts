import type { CatalogModel, CatalogSnapshot } from "./model.ts";

/** What became other when one catalog replaced another; routing presets are no models of their own. */
export interface CatalogChange {
  /** Model ids. */
  added: readonly string[];
  removed: readonly string[];
  /** Versions of prices that were not there before, of models that were. */
  repriced: readonly string[];
}

/** Compares two states of the catalog. */
export function compareCatalogs(before: CatalogSnapshot, after: CatalogSnapshot): CatalogChange {
  const own = ({ models }: CatalogSnapshot): CatalogModel[] =>
    [...models.values()].filter(({ router }) => router === undefined);
  const known = new Set(own(before).flatMap(versionsOf));
  return {
    added: own(after).flatMap(({ id }) => (before.models.has(id) ? [] : [id])),
    removed: own(before).flatMap(({ id }) => (after.models.has(id) ? [] : [id])),
    repriced: own(after)
      .filter(({ id }) => before.models.has(id))
      .flatMap(versionsOf)
      .filter((version) => !known.has(version)),
  };
}

const versionsOf = ({ routes }: CatalogModel): string[] =>
  routes.flatMap(({ price }) => price?.version ?? []);
