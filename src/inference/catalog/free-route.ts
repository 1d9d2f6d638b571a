import type { PriceVector } from "../../account/ledger/price.ts";
import type { CatalogModel, UpstreamRoute } from "./model.ts";

/** Whether serving a model on a route costs the caller nothing: the model is tagged free, or every price of the route is zero. */
export function isFreeRoute({ id }: CatalogModel, { price }: UpstreamRoute): boolean {
  if (id.endsWith(":free")) return true;
  return (
    price !== undefined &&
    isZero(price.base) &&
    (price.tiers ?? []).every((tier) => isZero(tier.price))
  );
}

/** Thoughts, sound and cache writes may have a price of their own where text has none. */
const isZero = (vector: PriceVector): boolean =>
  vector.inputTokens === 0n &&
  vector.outputTokens === 0n &&
  Object.values(vector).every((price) => price === undefined || price === 0n);
