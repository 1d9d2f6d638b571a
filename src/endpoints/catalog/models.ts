import { z } from "zod";
import type { Caller } from "../../account/keys/caller.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { countModels as countReachable, listModels as selectModels } from "../../inference/catalog/list-models.ts";
import { parseModelListQuery } from "../../inference/catalog/model-list-query.ts";
import { modelObject } from "../../inference/catalog/model-object.ts";
import type { CatalogModel } from "../../inference/catalog/model.ts";
import { findModel } from "../../inference/routing/resolve-models.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";

const modelObjectSchema = z.looseObject({
  id: z.string(), object: z.literal("model"), display_name: z.string(), provider: z.string(), providers: z.array(z.string()),
  category: z.string(), context_length: z.int(), capabilities: z.array(z.string()),
  pricing: z.looseObject({}), links: z.object({ details: z.string(), metrics: z.string() }),
});

const listQuerySchema = z.object({
  all: z.string().optional(), include: z.enum(["unavailable", "all"]).optional(), provider: z.string().optional(),
  category: z.enum(["text", "image", "audio", "embedding"]).optional(), min_context: z.int().optional(),
  capability: z.array(z.string()).optional(), supported: z.string().optional(), privacy: z.string().optional(),
  presets: z.string().optional(), sort: z.enum(["added", "usage", "name"]).optional(),
});

/** Whether a caller may use a model, as far as its key's allow-list goes. */
const isAllowed = (caller: Caller, { id }: CatalogModel): boolean =>
  caller.kind !== "llm-key" || caller.key.allowedModels === null || caller.key.allowedModels.includes(id.toLowerCase());

const shared = {
  method: "GET" as const,
  base: "api" as const,
  access: { llmKey: true as const, anonymous: true as const },
  counting: "at-door" as const,
  tag: "Catalog",
  encodeError: encodeContractError,
};

/** The catalog as the caller can reach it, with filters and orders. */
export const listModels = defineEndpoint<Dependencies>({
  ...shared,
  path: "/models",
  summary: "List models.",
  query: listQuerySchema,
  response: z.object({ object: z.literal("list"), data: z.array(modelObjectSchema), presets: z.array(z.looseObject({})).optional() }),
  handle(context, { inference }) {
    const { caller, query } = context;
    const reached = (model: CatalogModel): boolean =>
      model.routes.some((route) => inference.isServable(route, model)) && isAllowed(caller, model);
    const wanted = parseModelListQuery(query);
    // Whoever has no key cannot bring one of a provider's either: rows that need it are not for them.
    const all = wanted.all && caller.kind !== "anonymous";
    const models = selectModels(inference.catalog(), { query: { ...wanted, all }, isRoutable: reached });
    const data = models.map((model) => modelObject(model, { reachable: (route) => inference.isServable(route, model) }));
    const withPresets = caller.kind !== "anonymous" && query.get("presets") !== "0";
    return context.json({ object: "list", data, ...(withPresets ? { presets: [] } : {}) });
  },
});

/** How many models can be reached. */
export const countModels = defineEndpoint<Dependencies>({
  ...shared,
  path: "/models/count",
  summary: "Count the models that can be reached.",
  response: z.object({ count: z.int() }),
  handle: (context, { inference }) => context.json({
    count: countReachable(inference.catalog(), (model) => model.routes.some((route) => inference.isServable(route, model))),
  }),
});

function oneModel(context: RequestContext<undefined>, { inference }: Dependencies, id: string): Response {
  const model = findModel(inference.catalog(), id);
  if (model === undefined) throw new GatewayError("not_found", `There is no model ${id} in the catalog.`);
  return context.json(modelObject(model, { reachable: (route) => inference.isServable(route, model) }));
}

/** One model by its slug, as two path segments. */
export const getModel = defineEndpoint<Dependencies>({
  ...shared,
  path: "/models/:owner/:model",
  summary: "Show one model.",
  response: modelObjectSchema,
  handle: (context, deps) => oneModel(context, deps, `${context.param("owner")}/${context.param("model")}`),
});

/** One model by its slug in one percent-encoded segment. */
export const getModelByEncodedId = defineEndpoint<Dependencies>({
  ...shared,
  path: "/models/:id",
  summary: "Show one model (slug percent-encoded in one segment).",
  response: modelObjectSchema,
  handle: (context, deps) => oneModel(context, deps, context.param("id")),
});
