import { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import {
  countModels as countListed,
  listModels as selectModels,
} from "../../inference/catalog/list-models.ts";
import { parseModelListQuery } from "../../inference/catalog/model-list-query.ts";
import { modelObject } from "../../inference/catalog/model-object.ts";
import { presetObject, presetObjectSchema } from "../account/preset-object.ts";
import type { Dependencies } from "../dependencies.ts";
import { anthropicModelList } from "./anthropic-model-list.ts";
import { modelListQuerySchema } from "./model-list-query-schema.ts";
import { modelObjectSchema } from "./model-object-schema.ts";
import { viewModel } from "./model-view.ts";
import { isListedFor } from "./shown-model.ts";
import { catalogEndpoint, subRoute } from "./sub-route.ts";

/** The catalog as the caller can reach it, with filters and orders. */
export const listModels = defineEndpoint<Dependencies>({
  ...catalogEndpoint,
  path: "/models",
  summary: "List models.",
  description:
    "What the caller can reach, and what is announced; filters narrow it. Clients that send `anthropic-version` get " +
    "Anthropic's list, with `limit`, `after_id` and `before_id`.",
  query: modelListQuerySchema,
  response: z.object({
    object: z.literal("list"),
    data: z.array(modelObjectSchema).describe("The models."),
    presets: z
      .array(presetObjectSchema)
      .optional()
      .describe("Presets of the workspace; absent without a key, and with presets=0."),
    total_count: z.int().describe("Models that pass the filters, on all pages."),
    links: z
      .object({
        next: z.string().nullable().describe("Path of the next page; null on the last one."),
      })
      .describe("Where the list goes on, where `limit` was sent."),
  }),
  async handle(context, deps) {
    const { inference, presets, routeHistory } = deps;
    const { caller, query } = context;
    const wanted = parseModelListQuery(query);
    const volumes = wanted.sort === "usage" ? await routeHistory.weeklyRequests() : undefined;
    const models = selectModels(inference.catalog(), {
      // Whoever has no key cannot bring one of a provider's either: rows that need it are not for them.
      query: { ...wanted, all: wanted.all && caller.kind !== "anonymous" },
      isRoutable: isListedFor(deps, caller, wanted),
      weeklyRequests: (id) => volumes?.get(id) ?? 0,
    });
    // Both SDKs ask at this path; each is answered in its own form.
    if (context.request.headers.has("anthropic-version"))
      return context.json(anthropicModelList(models, query));
    const { offset, limit = models.length } = wanted;
    const data = models
      .slice(offset, offset + limit)
      .map((model) =>
        modelObject(model, { reachable: (route) => inference.isServable(route, model) }),
      );
    const isLast = offset + limit >= models.length;
    const next = isLast
      ? null
      : `/api/v1/models?${new URLSearchParams({ ...Object.fromEntries(query), offset: String(offset + limit) })}`;
    const hasPresets = caller.kind !== "anonymous" && !wanted.withoutPresets;
    return context.json({
      object: "list",
      data,
      ...(hasPresets
        ? {
            presets: presets
              .presetsOf(caller.workspace.id)
              .map((preset) => presetObject(preset, deps)),
          }
        : {}),
      total_count: models.length,
      links: { next },
    });
  },
});

/** How many models the list has for anybody. */
export const countModels = defineEndpoint<Dependencies>({
  ...catalogEndpoint,
  path: "/models/count",
  summary: "Count the models that can be reached.",
  response: z.object({
    count: z.int().describe("Models that anybody can reach."),
    data: z
      .object({
        count: z.int().describe("The same number, where OpenRouter's clients look for it."),
      })
      .describe("The count again."),
  }),
  handle(context, deps) {
    const count = countListed(
      deps.inference.catalog(),
      isListedFor(deps, { kind: "anonymous", address: "" }),
    );
    return context.json({ count, data: { count } });
  },
});

/** One model by its slug, as two path segments. */
export const getModel = defineEndpoint<Dependencies>({
  ...catalogEndpoint,
  path: "/models/:owner/:model",
  summary: "Show one model.",
  response: modelObjectSchema,
  handle: subRoute(viewModel),
});

/** One model by its slug in one percent-encoded segment. */
export const getModelByEncodedId = defineEndpoint<Dependencies>({
  ...catalogEndpoint,
  path: "/models/:id",
  summary: "Show one model (slug percent-encoded in one segment).",
  response: modelObjectSchema,
  handle: subRoute(viewModel),
});
