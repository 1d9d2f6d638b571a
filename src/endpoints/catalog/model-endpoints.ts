import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import type { PriceRow } from "../../billing/ledger/price.ts";
import { lazily } from "../../http/endpoint.ts";
import type { Caller } from "../../identity/keys/caller.ts";
import { usdPerTokenText } from "../../inference/catalog/model-object.ts";
import {
  dataPolicyOf,
  present,
  type CatalogModel,
  type UpstreamRoute,
} from "../../inference/catalog/model.ts";
import type { PicoUsd } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { latencyOf, percentilesSchema, throughputOf } from "./model-metrics.ts";
import {
  catalogEndpoint,
  catalogFor,
  isListedFor,
  modelsToList,
  routeHealth,
  routesOf,
  shownModel,
  shownObject,
  type ModelRoute,
} from "./sub-route.ts";

type Services = Pick<Dependencies, "inference">;

const usdText = (unit: string) => z.string().describe(`USD of ${unit}, as decimal text.`);

const pricingSchema = lazily(() =>
  z
    .object({
      prompt: usdText("an input token"),
      completion: usdText("an output token"),
      request: usdText("a request").optional(),
      image: usdText("a picture that is made").optional(),
      image_token: usdText("an input token of a picture").optional(),
      image_output: usdText("an output token of a picture").optional(),
      audio: usdText("an input token of sound").optional(),
      audio_output: usdText("an output token of sound").optional(),
      internal_reasoning: usdText("a token of reasoning").optional(),
      input_cache_read: usdText("a token read from a prompt cache").optional(),
      input_cache_write: usdText("a token written to a prompt cache").optional(),
      input_cache_write_1h: usdText("a token written to a prompt cache for an hour").optional(),
      discount: z.literal(0).describe("Always 0: prices are the provider's own."),
    })
    .describe("Prices at the provider; 0 where the provider bills the caller's own key."),
);

const taken = () => z.boolean().describe("Whether it is accepted.");

/** Source: npm @openrouter/sdk 1.3.19 and PyPI openrouter 1.3.84, `PublicEndpoint`. */
const endpointSchema = lazily(() =>
  z.object({
    name: z.string().describe("Name of the provider, and the model."),
    model_id: z.string().describe("Id of the model."),
    model_name: z.string().describe("Name of the model for people."),
    provider_name: z.string().describe("Name of the provider for people."),
    tag: z.string().describe("Id of the provider, for `provider.order`."),
    context_length: z.int().describe("Context window in tokens."),
    max_prompt_tokens: z.null().describe("Always null: the context window bounds the input."),
    max_completion_tokens: z.int().nullable().describe("Longest answer; null if unknown."),
    quantization: z.string().nullable().describe("Number format of the weights, if known."),
    supported_parameters: z.array(z.string()).describe("Parameters; empty if none is declared."),
    supports_tool_choice: z
      .object({ auto: taken(), none: taken(), required: taken(), function: taken() })
      .describe("Whether each form of `tool_choice` is accepted."),
    supports_implicit_caching: z.boolean().describe("Whether reads from a cache have a price."),
    supports_voice_cloning: z.literal(false).describe("Always false."),
    supports_diarization: z.literal(false).describe("Always false."),
    native_tools: z.record(z.string(), z.never()).describe("Always empty."),
    service_tier: z.null().describe("Always null: a request asks for the tier."),
    status: z.int().describe("0, or -1 while routing avoids the provider as an outage."),
    uptime_last_5m: z.number().nullable().describe("Percent of attempts that were answered."),
    uptime_last_30m: z.null().describe("Always null; see GET /models/{owner}/{model}/uptime."),
    uptime_last_1d: z.null().describe("Always null; see GET /models/{owner}/{model}/uptime."),
    latency_last_30m: percentilesSchema().describe("Milliseconds to the first token."),
    throughput_last_30m: percentilesSchema().describe("Tokens a second."),
    pricing: pricingSchema(),
  }),
);

const response = lazily(() =>
  z.object({
    data: z.object({
      id: z.string(),
      name: z.string(),
      description: z.string(),
      created: z.int().describe("Unix time in seconds; 0 if unknown"),
      architecture: z
        .object({
          modality: z.string().describe("Input and output, such as `text+image->text`."),
          input_modalities: z.array(z.string()).describe("Input modalities."),
          output_modalities: z.array(z.string()).describe("Output modalities."),
          instruct_type: z.null().describe("Always null."),
          tokenizer: z.null().describe("Always null."),
        })
        .describe("Input and output modalities of the model."),
      endpoints: z.array(endpointSchema()).describe("The providers that serve the model."),
    }),
  }),
);

/** Returns the prices of a route in OpenRouter's words; zeros where the gateway bills nothing. */
function pricingOf(price: PriceRow | undefined) {
  const text = (pico: PicoUsd | undefined): string | undefined =>
    pico === undefined ? undefined : usdPerTokenText(pico);
  const base = price?.base;
  return present({
    prompt: text(base?.inputTokens) ?? "0",
    completion: text(base?.outputTokens) ?? "0",
    request: text(base?.request),
    image: text(base?.outputImages),
    image_token: text(base?.inputImageTokens),
    image_output: text(base?.outputImageTokens),
    audio: text(base?.inputAudioTokens),
    audio_output: text(base?.outputAudioTokens),
    internal_reasoning: text(base?.reasoningTokens),
    input_cache_read: text(base?.cacheReadTokens),
    input_cache_write: text(base?.cacheWriteTokens),
    input_cache_write_1h: text(base?.cacheWriteOneHourTokens),
    discount: 0,
  });
}

/** Returns whether a route is declared to take a parameter; what declares nothing permits all. */
const takes = ({ supportedParameters }: UpstreamRoute, model: CatalogModel, name: string) =>
  (supportedParameters ?? model.supportedParameters ?? [name]).includes(name);

function endpointOf(services: Services, each: ModelRoute) {
  const { model, route } = each;
  const { inference } = services;
  const { error_rate, status } = routeHealth(inference.health, each);
  const choice = takes(route, model, "tool_choice");
  const price = inference.isServable(route, model) ? route.price : undefined;
  return {
    name: `${route.provider.name} | ${model.id}`,
    model_id: model.id,
    model_name: model.displayName,
    provider_name: route.provider.name,
    tag: route.provider.id,
    context_length: route.contextLength ?? model.contextLength,
    max_prompt_tokens: null,
    max_completion_tokens: route.maxCompletionTokens ?? null,
    quantization: route.quantization ?? null,
    supported_parameters: route.supportedParameters ?? model.supportedParameters ?? [],
    supports_tool_choice: { auto: choice, none: choice, required: choice, function: choice },
    supports_implicit_caching: route.price?.base.cacheReadTokens !== undefined,
    supports_voice_cloning: false,
    supports_diarization: false,
    native_tools: {},
    service_tier: null,
    status: status === "down" ? -1 : 0,
    uptime_last_5m: error_rate === null ? null : 100 - error_rate * 100,
    uptime_last_30m: null,
    uptime_last_1d: null,
    latency_last_30m: latencyOf(services, each),
    throughput_last_30m: throughputOf(services, each),
    pricing: pricingOf(price),
  };
}

/** Returns whether the list of models would show a model with one route alone. */
function listedRoutes(services: Services, caller: Caller): (each: ModelRoute) => boolean {
  const isListed = isListedFor(services, caller);
  return ({ model, route }) => isListed({ ...model, routes: [route] });
}

/** Shows the providers of a model as OpenRouter's clients read them. */
export const listModelEndpoints = defineEndpoint<Services>({
  ...catalogEndpoint,
  path: "/models/:owner/:model/endpoints",
  summary: "Show the providers of a model, for OpenRouter's clients.",
  description:
    "The providers that serve a model to the caller, with what each accepts and charges. Measures are those of the last five " +
    "minutes, as in GET /models/{owner}/{model}/metrics.",
  response,
  handle(context, services) {
    const id = `${context.param("owner")}/${context.param("model")}`;
    const model = shownModel(catalogFor(services, context.caller), id);
    const isListed = listedRoutes(services, context.caller);
    const { name, created, description = "", architecture } = shownObject(model, services);
    return context.json({
      data: {
        id: model.id,
        name,
        description,
        created,
        architecture: { ...architecture, tokenizer: null },
        endpoints: routesOf(model)
          .filter(isListed)
          .map((each) => endpointOf(services, each)),
      },
    });
  },
});

/** Lists the providers that keep nothing of what they are sent, with each of their models. */
export const listZeroRetentionEndpoints = defineEndpoint<Services>({
  ...catalogEndpoint,
  path: "/endpoints/zdr",
  summary: "List models at providers with zero data retention, for OpenRouter's clients.",
  description:
    "Every model with each provider that serves it to the caller and is declared to retain no data, as `provider.zdr` of a request " +
    "demands it.",
  response: () => z.object({ data: z.array(endpointSchema()).describe("Models at providers.") }),
  handle(context, services) {
    const isListed = listedRoutes(services, context.caller);
    const models = [...modelsToList(services, context.caller)];
    const among = models.filter(({ router, comingSoon }) => router === undefined && !comingSoon);
    return context.json({
      data: among
        .flatMap(routesOf)
        .filter((each) => dataPolicyOf(each.route).zdr === true && isListed(each))
        .map((each) => endpointOf(services, each)),
    });
  },
});
