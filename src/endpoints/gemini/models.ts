import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { encodeContractError, type ErrorEncoder } from "../../http/error-envelope.ts";
import type { RequestHeaders } from "../../http/served-request.ts";
import type { CatalogModel } from "../../inference/catalog/model.ts";
import { strictestCap } from "../../inference/catalog/model-object.ts";
import {
  listModels as selectModels,
  parseModelListQuery,
} from "../../inference/catalog/list-models.ts";
import { googleGenerate } from "../../inference/dialects/google-generate/index.ts";
import { namedModel, namedModels } from "../../inference/routing/resolve-models.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import {
  catalogEndpoint,
  catalogFor,
  isListedFor,
  modelsToList,
  shownModel,
} from "../catalog/sub-route.ts";
import type { Dependencies } from "../dependencies.ts";
import { isOfVertex, listPaths, modelOf, modelPaths } from "./paths.ts";

const entrySchema = lazily(() =>
  z
    .looseObject({
      name: z.string().describe("models/ and the id."),
      baseModelId: z.string(),
      version: z.string(),
      displayName: z.string(),
      inputTokenLimit: z.int(),
      outputTokenLimit: z.int(),
      supportedGenerationMethods: z.array(z.string()),
      thinking: z.boolean(),
    })
    .meta({ id: "GoogleModel" }),
);

/** What a model of each surface can be asked for in Google's dialect. */
const methodsOf: Readonly<Record<string, readonly string[]>> = {
  chat: ["generateContent", "streamGenerateContent", "countTokens"],
  embeddings: ["embedContent", "batchEmbedContents"],
};

/** The output limit that is shown where the catalog names none. */
const outputLimitDefault = 8_192;

/** Returns a model in the form of Google's clients. */
export const googleModelEntry = (model: CatalogModel) => ({
  name: `models/${model.id}`,
  baseModelId: model.id,
  version: "001",
  displayName: model.displayName,
  description: model.description ?? "",
  inputTokenLimit: model.contextLength,
  outputTokenLimit: strictestCap(model.routes) ?? outputLimitDefault,
  supportedGenerationMethods: methodsOf[model.surface] ?? [],
  thinking: model.reasoning !== undefined,
});

/** Returns a model in the form of Vertex AI, which writes the owner of an id as its publisher. */
function vertexModelEntry(model: CatalogModel) {
  const { name, version, ...entry } = googleModelEntry(model);
  const slash = model.id.indexOf("/");
  const publisher = slash < 0 ? "google" : model.id.slice(0, slash);
  return {
    ...entry,
    name: `publishers/${publisher}/models/${model.id.slice(slash + 1)}`,
    versionId: version,
    launchStage: "GA",
  };
}

const pageSizeDefault = 50;
const pageSizeMax = 1_000;

/** Returns a page of the models that Google's methods serve. Its token is the last id before it. */
export function googleModelList(
  models: readonly CatalogModel[],
  query: URLSearchParams,
): { models: ReturnType<typeof googleModelEntry>[]; nextPageToken?: string } {
  const { page, ...rest } = pageOf(models, query);
  return { models: page.map(googleModelEntry), ...rest };
}

function pageOf(
  models: readonly CatalogModel[],
  query: URLSearchParams,
): { page: readonly CatalogModel[]; nextPageToken?: string } {
  const callable = models
    .filter(({ surface, comingSoon }) => methodsOf[surface] !== undefined && !comingSoon)
    .toSorted((one, other) => one.id.localeCompare(other.id));
  const size = Number(query.get("pageSize") ?? pageSizeDefault);
  if (!Number.isInteger(size) || size < 0)
    throw new GatewayError("bad_request", "pageSize must be a whole number.", {
      param: "pageSize",
    });
  const after = query.get("pageToken");
  const start = after ? callable.findIndex(({ id }) => id === after) + 1 : 0;
  if (after && start === 0)
    throw new GatewayError("bad_request", "pageToken is not one of this list.", {
      param: "pageToken",
    });
  const page = callable.slice(start, start + Math.min(size || pageSizeDefault, pageSizeMax));
  const last = page.at(-1)?.id;
  const hasMore = start + page.length < callable.length && last !== undefined;
  return { page, ...(hasMore && { nextPageToken: last }) };
}

/**
 * Returns whether a request at a path that several dialects share comes from Google's clients: it
 * has one of Google's headers, or the key in the query.
 */
export const isGoogleClient = ({
  request,
  query,
}: {
  request: { headers: RequestHeaders };
  query: URLSearchParams;
}): boolean => hasGoogleHeader(request.headers) || query.has("key");

const hasGoogleHeader = (headers: RequestHeaders): boolean =>
  headers.has("x-goog-api-key") || headers.has("x-goog-api-client");

/** Writes an error of a path that several dialects share: Google's clients get their own form. */
export const encodeModelError: ErrorEncoder = (error, context) =>
  context.keyInQuery || (context.headers !== undefined && hasGoogleHeader(context.headers))
    ? googleGenerate.encodeError(error, context)
    : encodeContractError(error, context);

const shared = {
  ...catalogEndpoint,
  access: { llmKey: true, anonymous: true, keyInQuery: true },
  encodeError: googleGenerate.encodeError,
} as const;

function listedFor(context: RequestContext, deps: Pick<Dependencies, "inference">): CatalogModel[] {
  const { caller } = context;
  const wanted = parseModelListQuery(new URLSearchParams());
  const named = namedModels(catalogFor(deps, caller));
  return selectModels([...modelsToList(deps, caller), ...named], {
    query: wanted,
    isRoutable: isListedFor(deps, caller, wanted),
    weeklyRequests: () => 0,
  });
}

/** Lists models in Google's form, in pages. */
export const geminiModels = defineEndpoint<Pick<Dependencies, "inference">>({
  ...shared,
  ...listPaths,
  summary: "List models in Google's form.",
  description:
    "With `pageSize` and `pageToken`. `GET /v1/models` answers so where `x-goog-api-key`, `x-goog-api-client` or `?key=` is sent. " +
    "Clients for Vertex AI get `publisherModels`.",
  query: z.object({
    pageSize: z.int().optional(),
    pageToken: z.string().optional(),
  }),
  response: () =>
    z.object({ models: z.array(entrySchema()), nextPageToken: z.string().optional() }),
  handle(context, deps) {
    const listed = listedFor(context, deps);
    if (!isOfVertex(context.request)) return context.json(googleModelList(listed, context.query));
    const { page, ...rest } = pageOf(listed, context.query);
    return context.json({ publisherModels: page.map(vertexModelEntry), ...rest });
  },
});

/** Shows one model in Google's form. */
export const geminiModel = defineEndpoint<Pick<Dependencies, "inference">>({
  ...shared,
  ...modelPaths,
  summary: "Show a model in Google's form.",
  response: entrySchema,
  handle(context, deps) {
    const catalog = catalogFor(deps, context.caller);
    const id = modelOf(context.request);
    const model = namedModel(catalog, id) ?? shownModel(catalog, id);
    return context.json((isOfVertex(context.request) ? vertexModelEntry : googleModelEntry)(model));
  },
});
