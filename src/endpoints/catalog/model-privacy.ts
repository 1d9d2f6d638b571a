import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { dataPolicyOf } from "../../inference/catalog/model.ts";
import type { Dependencies } from "../dependencies.ts";
import { modelByEncodedId } from "./models.ts";
import { catalogEndpoint, routesOf, subRoute, type Telling } from "./sub-route.ts";

const response = lazily(() =>
  z.object({
    object: z.literal("model.privacy"),
    model: z.string(),
    data: z.array(
      z.object({
        provider: z.string(),
        model: z.string(),
        name: z.string(),
        zdr: z.boolean().nullable(),
        data_collection: z.enum(["allow", "deny"]).nullable(),
        distillable_text: z.boolean().nullable(),
      }),
    ),
  }),
);

const privacy: Telling = async (model) => ({
  object: "model.privacy",
  model: model.id,
  data: routesOf(model).map((each) => {
    const { zdr, dataCollection, distillableText } = dataPolicyOf(each.route);
    return {
      provider: each.route.provider.id,
      model: each.model.id,
      name: each.route.provider.name,
      zdr: zdr ?? null,
      data_collection: dataCollection ?? null,
      distillable_text: distillableText ?? null,
    };
  }),
});

const shared = {
  ...catalogEndpoint,
  description:
    "How each provider of the model handles the data it receives. Null means unknown, and counts as the less private " +
    "answer when a request asks for privacy.",
  response,
};

/** The routes for the data policies of a model's providers, by both forms of its path. */
export const privacyRoutes = [
  defineEndpoint<Pick<Dependencies, "inference" | "routeHistory" | "priceHistory">>({
    ...shared,
    path: "/models/:owner/:model/privacy",
    summary: "Show the data policies of a model's providers.",
    handle: subRoute(privacy),
  }),
  // The same by a percent-encoded slug.
  defineEndpoint<Pick<Dependencies, "inference" | "routeHistory" | "priceHistory">>({
    ...shared,
    path: "/models/:id/privacy",
    summary: "Show the data policies of a model's providers (percent-encoded id).",
    handle: subRoute(privacy, modelByEncodedId("privacy")),
  }),
];
