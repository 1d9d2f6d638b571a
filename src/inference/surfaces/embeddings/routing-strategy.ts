import { GatewayError } from "../../../platform/lib/errors.ts";
import type { SortKey } from "../../routing/provider-preferences.ts";

/** What the values of `X-Routing-Strategy` stand for. */
const sorts: Readonly<Record<string, SortKey>> = {
  cheapest: "price",
  fastest: "latency",
  "most-available": "availability",
  price: "price",
  latency: "latency",
  throughput: "throughput",
};

/** The sort that the header asks for; undefined without it. Throws `invalid_request_error`. */
export function sortOfStrategy(strategy: string | null): SortKey | undefined {
  if (strategy === null || strategy.trim() === "") return undefined;
  const name = strategy.trim().toLowerCase();
  if (Object.hasOwn(sorts, name)) return sorts[name];
  throw new GatewayError(
    "invalid_request_error",
    `X-Routing-Strategy must be one of ${Object.keys(sorts).join(", ")}.`,
    {
      param: "X-Routing-Strategy",
    },
  );
}
