import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import type { PicturePrices, PriceRow, PriceVector } from "../../billing/ledger/price.ts";
import { present, type CatalogModel, type UpstreamRoute } from "../../inference/catalog/model.ts";
import { namedModels } from "../../inference/routing/resolve-models.ts";
import {
  imageAbilities,
  joinedAbilities,
} from "../../inference/surfaces/images/image-capabilities.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { PicoUsd } from "../../platform/kernel/money.ts";
import {
  catalogEndpoint,
  catalogFor,
  isListedFor,
  modelsToList,
  shownModel,
  shownObject,
} from "../catalog/sub-route.ts";
import type { Dependencies } from "../dependencies.ts";

/** Source: npm @openrouter/sdk 1.3.19, `CapabilityDescriptor`. */
const capabilitySchema = lazily(() =>
  z
    .object({
      type: z.enum(["enum", "range", "boolean"]).describe("Kind of the parameter."),
      values: z.array(z.string()).optional().describe("Accepted values of an enum."),
      min: z.number().optional().describe("Lowest value of a range."),
      max: z.number().optional().describe("Highest value of a range."),
    })
    .meta({ id: "ImageCapability" }),
);

const parametersSchema = () =>
  z
    .record(z.string(), capabilitySchema())
    .describe("Parameters of `POST /images` that are accepted, by name.");

const streamingSchema = () =>
  z.boolean().describe("Whether a provider streams pictures itself; others become a stream here.");

const response = lazily(() =>
  z.object({
    data: z
      .array(
        z.object({
          id: z.string(),
          name: z.string(),
          description: z.string(),
          created: z.int().describe("Unix time in seconds; 0 if unknown"),
          architecture: z
            .object({
              input_modalities: z.array(z.string()).describe("Input modalities."),
              output_modalities: z.array(z.string()).describe("Output modalities."),
            })
            .describe("Input and output modalities of the model."),
          endpoints: z.string().describe("Path of the model's providers and prices."),
          supported_parameters: parametersSchema(),
          supports_streaming: streamingSchema(),
        }),
      )
      .describe("The models that make pictures."),
  }),
);

type Services = Pick<Dependencies, "inference">;

const makesPictures = ({ surface, router }: CatalogModel): boolean =>
  surface === "images" && router === undefined;

const endpointsPath = ({ id, aliasOf }: CatalogModel): string =>
  `/api/v1/images/models/${aliasOf?.[0] ?? id}/endpoints`;

/** Returns a model as OpenRouter's clients read it. Source: npm @openrouter/sdk 1.3.19. */
function listedModel(model: CatalogModel, services: Services) {
  const { parameters, streams } = joinedAbilities(model.routes);
  const { name, created, description = "", architecture } = shownObject(model, services);
  return {
    id: model.id,
    name,
    description,
    created,
    architecture: {
      input_modalities: architecture.input_modalities,
      output_modalities: architecture.output_modalities,
    },
    endpoints: endpointsPath(model),
    supported_parameters: parameters,
    supports_streaming: streams,
  };
}

/** Lists the models that make pictures (OpenRouter's `GET /images/models`). */
export const listImageModels = defineEndpoint<Services>({
  ...catalogEndpoint,
  path: "/images/models",
  summary: "List models that make pictures, for OpenRouter's clients.",
  description:
    "The models of `POST /images` and `POST /images/generations` that the caller can use, with the parameters that their " +
    "providers accept. Other parameters are named in `X-Service-Translation-Loss`.",
  response,
  handle(context, services) {
    const { caller } = context;
    const isListed = isListedFor(services, caller);
    const among = [...modelsToList(services, caller), ...namedModels(catalogFor(services, caller))];
    const models = among.filter((model) => makesPictures(model) && !model.comingSoon);
    return context.json({
      data: models
        .filter(isListed)
        .sort((one, other) => one.id.localeCompare(other.id))
        .map((model) => listedModel(model, services)),
    });
  },
});

/** A line of a price, in OpenRouter's words. */
interface PricingEntry {
  billable: "output_image" | "input_image" | "input_text";
  unit: "request" | "image" | "token";
  cost_usd: number;
  /** The size and quality of a picture. */
  variant?: string;
}

const usdOf = (pico: PicoUsd): number => Number(pico) / 1e12;

const picturePrices = (pictures: PicturePrices): PricingEntry[] =>
  Object.entries(pictures).flatMap(([size, byQuality]) =>
    Object.entries(byQuality).map(
      ([quality, pico]): PricingEntry => ({
        billable: "output_image",
        unit: "image",
        cost_usd: usdOf(pico),
        ...variantOf(size, quality),
      }),
    ),
  );

/** Returns the name of a price by size and quality; nothing for the price of any of them. */
function variantOf(size: string, quality: string): Pick<PricingEntry, "variant"> {
  const named = [size, quality].filter((name) => name !== "default").join(" ");
  return named === "" ? {} : { variant: named };
}

/** Returns the lines of a price, each of what one request may be charged for. */
function pricingOf({ base, pictures }: PriceRow): PricingEntry[] {
  const isByPiece = base.outputImages !== undefined;
  const tokens: [PricingEntry["billable"], PicoUsd | undefined][] = [
    ["input_text", base.inputTokens],
    ["input_image", base.inputImageTokens],
    ["output_image", outputTokenPrice(base)],
  ];
  return [
    ...(base.request === undefined
      ? []
      : [{ billable: "output_image", unit: "request", cost_usd: usdOf(base.request) } as const]),
    ...(pictures === undefined
      ? isByPiece
        ? [
            {
              billable: "output_image",
              unit: "image",
              cost_usd: usdOf(base.outputImages ?? 0n),
            } as const,
          ]
        : []
      : picturePrices(pictures)),
    ...tokens.flatMap(([billable, pico]): PricingEntry[] =>
      pico === undefined || (pico === 0n && isByPiece)
        ? []
        : [{ billable, unit: "token", cost_usd: usdOf(pico) }],
    ),
  ];
}

const outputTokenPrice = ({ outputImageTokens, outputTokens }: PriceVector): PicoUsd =>
  outputImageTokens ?? outputTokens;

const endpointsResponse = lazily(() =>
  z.object({
    id: z.string(),
    endpoints: z
      .array(
        z.object({
          provider_name: z.string().describe("Name of the provider for people."),
          provider_slug: z.string().describe("Id of the provider."),
          provider_tag: z
            .string()
            .nullable()
            .describe("Name of the provider for `provider.order`."),
          supported_parameters: parametersSchema(),
          supports_streaming: streamingSchema(),
          allowed_passthrough_parameters: z
            .array(z.string())
            .describe("Always empty: fields of a provider are sent beside the others."),
          pricing: z
            .array(
              z.object({
                billable: z
                  .enum(["output_image", "input_image", "input_text"])
                  .describe("What is charged for."),
                unit: z.enum(["request", "image", "token"]).describe("What one unit is."),
                cost_usd: z.number().describe("USD of one unit."),
                variant: z.string().optional().describe("Size and quality of the picture."),
              }),
            )
            .describe("What a request is charged for; empty where a provider bills its own key."),
        }),
      )
      .describe("The providers that serve the model."),
  }),
);

const endpointOf = (route: UpstreamRoute) => {
  const { parameters, streams } = imageAbilities(route);
  const { id, name } = route.provider;
  return present({
    provider_name: name,
    provider_slug: id,
    provider_tag: id,
    supported_parameters: parameters,
    supports_streaming: streams,
    allowed_passthrough_parameters: [],
    pricing: route.price === undefined ? [] : pricingOf(route.price),
  });
};

/** Shows the providers of a model that makes pictures, for OpenRouter's clients. */
export const listImageModelEndpoints = defineEndpoint<Services>({
  ...catalogEndpoint,
  path: "/images/models/:owner/:model/endpoints",
  summary: "Show the providers and prices of a model that makes pictures.",
  description:
    "The providers that serve a model of `GET /images/models`, with what each accepts and what it charges.",
  response: endpointsResponse,
  handle(context, services) {
    const id = `${context.param("owner")}/${context.param("model")}`;
    const model = shownModel(catalogFor(services, context.caller), id);
    if (!makesPictures(model))
      throw new GatewayError(
        "not_found",
        `The model ${model.id} makes no pictures on POST /images. GET /images/models lists those that do.`,
      );
    const mayBeAsked = isListedFor(services, context.caller);
    // A route is shown where the model would be listed with this route alone.
    const routes = model.routes.filter((route) => mayBeAsked({ ...model, routes: [route] }));
    return context.json({ id: model.id, endpoints: routes.map(endpointOf) });
  },
});
