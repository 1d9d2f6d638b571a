import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import type { PriceChange } from "../../inference/catalog/price-history.ts";
import type { Dependencies } from "../dependencies.ts";
import { modelByEncodedId } from "./models.ts";
import { catalogEndpoint, routesOf, subRoute, type Telling } from "./sub-route.ts";

const response = lazily(() =>
  z.object({
    object: z.literal("model.prices"),
    model: z.string(),
    data: z
      .array(
        z.object({
          provider: z.string(),
          model: z.string(),
          at: z
            .string()
            .describe(
              "Time from which the price applies (UTC); for the first entry, when the gateway first read it.",
            ),
          prices: z
            .record(z.string(), z.number())
            .describe(
              "USD per million tokens by part, such as input_per_1m; per_request is USD per request.",
            ),
        }),
      )
      .describe("Prices of each provider, newest first."),
  }),
);

const newestFirst = (one: PriceChange, other: PriceChange): number => other.atMs - one.atMs;

const prices: Telling = async (model, { priceHistory }) => {
  const routes = routesOf(model);
  const ids = new Set(routes.map((each) => each.model.id));
  const providers = new Set(routes.map(({ route }) => route.provider.id));
  const changes = await priceHistory.of([...ids]);
  return {
    object: "model.prices",
    model: model.id,
    data: changes
      .filter(({ provider }) => providers.has(provider))
      .sort(newestFirst)
      .map(({ model: id, provider, atMs, prices: parts }) => ({
        provider,
        model: id,
        at: new Date(atMs).toISOString(),
        prices: parts,
      })),
  };
};

const shared = {
  ...catalogEndpoint,
  description:
    "Prices of the model's providers since the gateway first read them, newest first. A provider has one entry for each " +
    "change in the catalog or the configuration. A routing preset shows the prices of all its members.",
  response,
};

/** The routes for a model's earlier prices, by both forms of its path. */
export const pricesRoutes = [
  defineEndpoint<Pick<Dependencies, "inference" | "routeHistory" | "priceHistory">>({
    ...shared,
    path: "/models/:owner/:model/prices",
    summary: "Show the price history of a model.",
    handle: subRoute(prices),
  }),
  // The same by a percent-encoded slug.
  defineEndpoint<Pick<Dependencies, "inference" | "routeHistory" | "priceHistory">>({
    ...shared,
    path: "/models/:id/prices",
    summary: "Show the price history of a model (percent-encoded id).",
    handle: subRoute(prices, modelByEncodedId("prices")),
  }),
];
