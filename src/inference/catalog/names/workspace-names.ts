import type { AliasTarget } from "../../../platform/kernel/models/model-alias.ts";
import type { CatalogSnapshot } from "../model.ts";

/** What the names of a workspace mean; replaced as a whole, never changed in place. */
type WorkspaceNames = ReadonlyMap<string, AliasTarget>;

/** The snapshots that were built, by the names of their workspace. */
const built = new WeakMap<WorkspaceNames, { base: CatalogSnapshot; named: CatalogSnapshot }>();

/**
 * Returns a catalog with the names of a workspace, which take precedence over the operator's. It is
 * built once for each change of either.
 */
export function withWorkspaceNames(
  catalog: CatalogSnapshot,
  names: WorkspaceNames | undefined,
): CatalogSnapshot {
  if (names === undefined) return catalog;
  const known = built.get(names);
  if (known?.base === catalog) return known.named;
  const named = { ...catalog, named: new Map([...(catalog.named ?? []), ...names]) };
  built.set(names, { base: catalog, named });
  return named;
}
