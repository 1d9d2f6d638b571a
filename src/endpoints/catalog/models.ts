import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import type { Caller } from "../../identity/keys/caller.ts";
import {
  countModels as countListed,
  listModels as selectModels,
  parseModelListQuery,
  type ModelListQuery,
} from "../../inference/catalog/list-models.ts";
import type { CatalogModel } from "../../inference/catalog/model.ts";
import { strictestCap } from "../../inference/catalog/model-object.ts";
import { namedModel, namedModels } from "../../inference/routing/resolve-models.ts";
import { badField } from "../../platform/kernel/errors.ts";
import { presetObject, presetObjectSchema } from "../account/presets.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  encodeModelError,
  googleModelEntry,
  googleModelList,
  isGoogleClient,
} from "../gemini/models.ts";
import {
  isListedFor,
  catalogEndpoint,
  catalogFor,
  modelsToList,
  shownObject,
  subRoute,
  type Telling,
} from "./sub-route.ts";

const usdPerMillion = z.number().describe("USD per million tokens");

const listPricingSchema = z.object({ input_per_1m: usdPerMillion, output_per_1m: usdPerMillion });

const pricingSchema = lazily(() =>
  z.looseObject({
    prompt: z.string().describe("USD per token"),
    completion: z.string().describe("USD per token"),
    input_per_1m: usdPerMillion,
    output_per_1m: usdPerMillion,
    billing: z
      .enum(["byok", "member"])
      .optional()
      .describe(
        "byok: the provider bills the caller's own key, so 0 does not mean free. member: the price is that of the " +
          "member that serves the request.",
      ),
    list_pricing: listPricingSchema.optional(),
    lowest: listPricingSchema.optional(),
    image: z.string().optional().describe("USD per picture, at the dearest size and quality"),
    images: z
      .record(z.string(), z.record(z.string(), z.number()))
      .optional()
      .describe("USD per picture by size and quality"),
    audio_input_minute: z.number().optional().describe("USD per minute of sound that is sent"),
    audio_output_minute: z.number().optional().describe("USD per minute of sound that is made"),
    characters_per_1m: z.number().optional().describe("USD per million characters spoken"),
  }),
);

const reasoningSchema = lazily(() =>
  z.object({ levels: z.array(z.string()), default: z.string().optional() }),
);

const modelReasoningSchema = lazily(() =>
  reasoningSchema().extend({
    supported_efforts: z
      .array(z.string())
      .describe("Copy of the levels, for OpenRouter's clients."),
    default_effort: z
      .string()
      .nullable()
      .describe("Copy of the default, for OpenRouter's clients; null if none is declared."),
    mandatory: z
      .boolean()
      .describe(
        "Whether reasoning cannot be turned off, as far as the gateway knows: neither a level nor a route's dialect has " +
          "a way.",
      ),
  }),
);

const architectureSchema = lazily(() =>
  z.object({
    modality: z
      .string()
      .describe("Input and output modalities in short, such as text+image->text."),
    input_modalities: z
      .array(z.enum(["text", "image", "file", "audio"]))
      .describe("Input modalities."),
    output_modalities: z
      .array(z.enum(["text", "image", "audio", "embeddings", "rerank", "decisions"]))
      .describe("Output modalities."),
    instruct_type: z.null().describe("Always null: unknown."),
  }),
);

const upstreamSchema = lazily(() =>
  z
    .looseObject({
      provider: z.string(),
      reasoning: reasoningSchema()
        .optional()
        .describe("Replaces the model's value; if absent, the model's value applies"),
      features: z.object({ reasoning: z.boolean().optional() }),
      supported_parameters: z
        .array(z.string())
        .optional()
        .describe("Authoritative for this route; if absent, any parameter is allowed"),
      context: z.object({
        context_length: z.int().optional(),
        max_completion_tokens: z.int().optional(),
      }),
      pricing: z
        .record(z.string(), z.number())
        .optional()
        .describe(
          "USD per million tokens or characters; per_request and per_image in USD, and prices of sound in USD per minute",
        ),
      quantization: z.string().optional(),
      data_policy: z.object({
        zdr: z.boolean().optional(),
        data_collection: z.enum(["allow", "deny"]).optional(),
        distillable_text: z.boolean().optional(),
      }),
      billing: z
        .literal("byok")
        .optional()
        .describe("byok: the provider bills the caller's own key."),
    })
    .meta({ id: "ModelRoute" }),
);

/** A model object as OpenAPI describes it. */
export const modelObjectSchema = lazily(() =>
  z
    .looseObject({
      id: z.string(),
      object: z.literal("model"),
      display_name: z.string(),
      name: z.string().describe("Copy of the display name, for OpenRouter's clients."),
      canonical_slug: z.string().describe("Copy of the id."),
      provider: z.string().describe("Organisation that owns the model"),
      owned_by: z.string().describe("Copy of the owner, under OpenAI's name"),
      providers: z.array(z.string()).describe("Providers that can serve the model"),
      category: z.enum(["text", "image", "audio", "embedding"]),
      context_length: z.int(),
      pricing: pricingSchema(),
      capabilities: z.array(z.string()),
      architecture: architectureSchema().describe("Input and output modalities of the model."),
      links: z.object({ details: z.string(), metrics: z.string() }),
      reasoning: modelReasoningSchema()
        .optional()
        .describe("Effort levels of the model; absent if none are declared."),
      supported_parameters: z
        .array(z.string())
        .describe(
          "Parameters that at least one route declares; empty if none does, which allows any parameter.",
        ),
      default_parameters: z.null().describe("Always null: the gateway sets no defaults."),
      per_request_limits: z
        .null()
        .describe("Always null: there are no limits other than the lengths."),
      supported_voices: z.null().describe("Always null: the catalog lists no voices."),
      top_provider: z.object({
        context_length: z.int().describe("The same as context_length of the model."),
        max_completion_tokens: z.int().nullable(),
        is_moderated: z
          .literal(false)
          .describe("Always false: the gateway does not moderate requests by itself."),
      }),
      per_upstream: z.array(upstreamSchema()),
      members: z
        .array(z.string())
        .optional()
        .describe("Members of a routing preset, in the order in which they are tried"),
      alias_of: z
        .array(z.string())
        .optional()
        .describe("The models that the operator's name means; absent on models."),
      description: z.string().optional(),
      created: z.int().describe("Unix time in seconds; 0 if unknown"),
      coming_soon: z
        .literal(true)
        .optional()
        .describe(
          "Whether the model is announced but not yet available; requests for it answer 404",
        ),
    })
    .meta({ id: "Model" }),
);

const text = (description: string) => z.string().describe(description).optional();

/** The query of `GET /models` as OpenAPI describes it; `parseModelListQuery` parses it. */
const modelListQuerySchema = z.object({
  all: text(
    "1, true or yes: also models that the caller cannot reach; of no effect without a key.",
  ),
  include: text("unavailable or all: the same as all=1."),
  provider: text("Id or name of a provider, or owner of models."),
  category: z.enum(["text", "image", "audio", "embedding"]).optional(),
  min_context: z.int().describe("Minimum context length in tokens.").optional(),
  capability: z
    .array(z.string())
    .optional()
    .describe(
      "Required capability. Repeatable; a model must have all of them. function_calling and function-calling are " +
        "equivalent.",
    ),
  supported: text("Former name of capability; separate several with commas."),
  output_modalities: text(
    "Kinds of output, such as image or text,audio: models that make one of them. all: every model.",
  ),
  privacy: text("0 or false: also models of providers that the caller blocks."),
  presets: text("0 or false: without the presets array."),
  sort: z
    .enum([
      "added",
      "newest",
      "new",
      "created",
      "usage",
      "top",
      "top-usage",
      "popular",
      "name",
      "id",
    ])
    .describe("added: newest first. usage: by the requests of the last seven days. name: by id.")
    .optional(),
  limit: z
    .int()
    .min(1)
    .describe("Maximum number of models in the answer. Default: all.")
    .optional(),
  offset: z.int().min(0).describe("Number of models to skip.").optional(),
});

/**
 * Returns one model in the form of the caller's client. Google's clients are recognised by their
 * headers or `?key=`, and Anthropic's by their `anthropic-version` header.
 */
const viewModel: Telling = async (found, { inference }, context) => {
  const name = context.param("id");
  const model = namedModel(catalogFor({ inference }, context.caller), name) ?? found;
  if (isGoogleClient(context)) return googleModelEntry(model);
  return context.request.headers.has("anthropic-version")
    ? anthropicModelEntry(model)
    : shownObject(model, { inference });
};

/** Returns the answer for a model whose own name is that of a sub-route. */
export const modelByEncodedId = (name: string): { name: string; tell: Telling } => ({
  name,
  tell: viewModel,
});

/** What lists of models are made from. */
export type ListServices = Pick<Dependencies, "inference" | "routeHistory">;

/** Returns the models that pass the filters of a query, as far as the caller can reach them. */
export async function modelsFor(
  wanted: ModelListQuery,
  { caller, deps }: { caller: Caller; deps: ListServices },
): Promise<CatalogModel[]> {
  const volumes = wanted.sort === "usage" ? await deps.routeHistory.weeklyRequests() : undefined;
  const all = wanted.all && caller.kind !== "anonymous";
  const among = all ? deps.inference.catalog().models.values() : modelsToList(deps, caller);
  return selectModels([...among, ...namedModels(catalogFor(deps, caller))], {
    // A caller without a key cannot bring one for a provider either, so rows that need it are
    // left out.
    query: { ...wanted, all },
    isRoutable: isListedFor(deps, caller, wanted),
    weeklyRequests: (id) => volumes?.get(id) ?? 0,
  });
}

/** Returns a page of models, as OpenRouter's clients turn them. */
export function pageOf(
  models: readonly CatalogModel[],
  { offset, limit = models.length }: ModelListQuery,
  { path, query, deps }: { path: string; query: URLSearchParams; deps: ListServices },
) {
  const end = offset + limit;
  const further = new URLSearchParams({ ...Object.fromEntries(query), offset: String(end) });
  return {
    data: models.slice(offset, end).map((model) => shownObject(model, deps)),
    total_count: models.length,
    links: { next: end >= models.length ? null : `/api/v1${path}?${further}` },
  };
}

/** The schemas of what `pageOf` returns. */
export const pageFields = () => ({
  data: z.array(modelObjectSchema()).describe("The models."),
  total_count: z.int().describe("Number of models that pass the filters, on all pages."),
  links: z
    .object({
      next: z.string().nullable().describe("Path of the next page; null on the last one."),
    })
    .describe("Pagination links, if `limit` was sent."),
});

/** Lists the models that the caller can reach, with filters and orders. */
export const listModels = defineEndpoint<
  ListServices & Pick<Dependencies, "directory" | "presets">
>({
  ...catalogEndpoint,
  encodeError: encodeModelError,
  path: "/models",
  summary: "List models.",
  description:
    "Returns the models that the caller can use and those that are announced; filters narrow the list. Clients that " +
    "send `anthropic-version` receive Anthropic's list format, with `limit`, `after_id` and `before_id`. Those that send " +
    "`x-goog-api-key`, `x-goog-api-client` or `?key=` receive Google's, with `pageSize` and `pageToken`.",
  query: modelListQuerySchema,
  response: () =>
    z.object({
      object: z.literal("list"),
      ...pageFields(),
      presets: z
        .array(presetObjectSchema())
        .optional()
        .describe("Presets of the workspace; absent without a key or with presets=0."),
    }),
  async handle(context, deps) {
    const { caller, query } = context;
    const wanted = parseModelListQuery(query);
    const models = await modelsFor(wanted, { caller, deps });
    // Three SDKs request this path; each is answered in its own form.
    if (isGoogleClient(context)) return context.json(googleModelList(models, query));
    if (context.request.headers.has("anthropic-version"))
      return context.json(anthropicModelList(models, query));
    const hasPresets = caller.kind !== "anonymous" && !wanted.withoutPresets;
    return context.json({
      object: "list",
      ...pageOf(models, wanted, { path: "/models", query, deps }),
      ...(hasPresets && {
        presets: deps.presets
          .presetsOf(caller.workspace.id)
          .map((preset) => presetObject(preset, deps)),
      }),
    });
  },
});

/** Returns the number of models in the list for any caller. */
export const countModels = defineEndpoint<Pick<Dependencies, "inference">>({
  ...catalogEndpoint,
  path: "/models/count",
  summary: "Count the available models.",
  response: () =>
    z.object({
      count: z.int().describe("Number of models that every caller can use."),
      data: z
        .object({
          count: z.int().describe("The count, for OpenRouter's clients."),
        })
        .describe("Copy of the count."),
    }),
  handle(context, deps) {
    const catalog = deps.inference.catalog();
    const isListed = isListedFor(deps, { kind: "anonymous", address: "" });
    const named = namedModels(catalog).filter(isListed);
    const count = countListed(catalog, isListed) + named.length;
    return context.json({ count, data: { count } });
  },
});

/** Shows one model by its slug, as two path segments. */
export const getModel = defineEndpoint<
  Pick<Dependencies, "inference" | "routeHistory" | "priceHistory">
>({
  ...catalogEndpoint,
  encodeError: encodeModelError,
  path: "/models/:owner/:model",
  summary: "Show a model.",
  response: modelObjectSchema,
  handle: subRoute(viewModel),
});

/** Shows one model by its slug in one percent-encoded segment. */
export const getModelByEncodedId = defineEndpoint<
  Pick<Dependencies, "inference" | "routeHistory" | "priceHistory">
>({
  ...catalogEndpoint,
  encodeError: encodeModelError,
  path: "/models/:id",
  summary: "Show a model (percent-encoded id).",
  response: modelObjectSchema,
  handle: subRoute(viewModel),
});

/** The default and the largest number of entries of a page (Anthropic's reference). */
const pageSizeDefault = 20;
const pageSizeMax = 1_000;

function pageSizeOf(query: URLSearchParams): number {
  const text = query.get("limit");
  if (text === null) return pageSizeDefault;
  const size = Number(text);
  if (Number.isInteger(size) && size >= 1 && size <= pageSizeMax) return size;
  throw badField("limit", `must be an integer from 1 to ${pageSizeMax}.`);
}

/**
 * Returns a model in the form of Anthropic's clients, with the limits that are known. The newest
 * clients require `lifecycle`, which is the same for all: retired models are not in the catalog.
 * Source: Anthropic's SDK for Python 2.14, `ModelInfo`.
 */
const anthropicModelEntry = (model: CatalogModel) => ({
  type: "model",
  id: model.id,
  display_name: model.displayName,
  created_at: new Date(model.addedAtMs).toISOString(),
  lifecycle: "active",
  max_input_tokens: model.contextLength > 0 ? model.contextLength : null,
  max_tokens: strictestCap(model.routes),
});

/**
 * Returns the list for Anthropic's clients, which are recognised by their `anthropic-version`
 * header: newest first, in pages between `after_id` and `before_id`. An entry says only that a
 * model can be chatted with, so other models and those that are only announced are left out.
 */
export function anthropicModelList(
  models: readonly CatalogModel[],
  query: URLSearchParams,
): Record<string, unknown> {
  const callable = models.filter(({ surface, comingSoon }) => surface === "chat" && !comingSoon);
  const newestFirst = callable.toSorted(
    (a, b) => b.addedAtMs - a.addedAtMs || a.id.localeCompare(b.id),
  );
  const size = pageSizeOf(query);
  const [afterId, beforeId] = [query.get("after_id"), query.get("before_id")];
  const before = newestFirst.findIndex(({ id }) => id === beforeId);
  const start =
    beforeId === null
      ? newestFirst.findIndex(({ id }) => id === afterId) + 1
      : Math.max(0, before - size);
  const page = newestFirst.slice(start, beforeId === null ? start + size : Math.max(0, before));
  return {
    data: page.map(anthropicModelEntry),
    has_more: beforeId === null ? start + page.length < newestFirst.length : start > 0,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  };
}
