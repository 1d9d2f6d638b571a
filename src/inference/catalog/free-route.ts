import type { CatalogModel, UpstreamRoute } from "./model.ts";

/** Whether serving a model on a route costs the caller nothing: the model is tagged free, or the route's price is zero. */
export function isFreeRoute({ id }: CatalogModel, { price }: UpstreamRoute): boolean {
  if (id.endsWith(":free")) return true;
  return price !== undefined && price.base.inputTokens === 0n && price.base.outputTokens === 0n && !price.base.request;
}
