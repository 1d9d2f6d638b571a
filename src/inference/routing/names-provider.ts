import type { RouteRow } from "./route-rows.ts";

/** Whether a name in `order`, `only` or `ignore` means the provider of a route: its slug or its display name, in any case. */
export function namesProvider(
  name: string,
  { provider, names: [slug, displayName] }: RouteRow,
): boolean {
  if (name === provider.id) return true;
  const wanted = name.toLowerCase();
  return wanted === slug || wanted === displayName;
}
