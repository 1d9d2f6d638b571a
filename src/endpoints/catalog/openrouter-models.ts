import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { parseModelListQuery, type ModelListQuery } from "../../inference/catalog/list-models.ts";
import type { Dependencies } from "../dependencies.ts";
import { modelObjectSchema, modelsFor, pageFields, pageOf, type ListServices } from "./models.ts";
import { catalogEndpoint, catalogFor, shownModel, shownObject } from "./sub-route.ts";

const pageQuery = {
  limit: z.int().min(1).optional().describe("Maximum number of models. Default: all."),
  offset: z.int().min(0).optional().describe("Number of models to skip."),
};

/** Returns the handler of a list; `fixed` are filters that no query changes. */
const listedAt =
  (path: string, fixed: Pick<ModelListQuery, "outputs"> = {}) =>
  async (context: RequestContext<undefined>, deps: ListServices) => {
    const { caller, query } = context;
    const wanted = { ...parseModelListQuery(query), ...fixed };
    const models = await modelsFor(wanted, { caller, deps });
    return context.json(pageOf(models, wanted, { path, query, deps }));
  };

/** Lists the models that a key can use. */
export const listOwnModels = defineEndpoint<ListServices>({
  ...catalogEndpoint,
  access: { llmKey: true },
  path: "/models/user",
  summary: "List the models of a key, for OpenRouter's clients.",
  description: "The models that `GET /models` lists with the key, without presets.",
  query: z.object({
    ...pageQuery,
    output_modalities: z
      .string()
      .optional()
      .describe("Kinds of output, such as image or text,audio. Default: all."),
  }),
  response: () => z.object(pageFields()),
  handle: listedAt("/models/user"),
});

/** Lists the models that make embeddings. */
export const listEmbeddingModels = defineEndpoint<ListServices>({
  ...catalogEndpoint,
  path: "/embeddings/models",
  summary: "List models that make embeddings, for OpenRouter's clients.",
  description: "The models of `GET /models` that `POST /embeddings` takes.",
  query: z.object(pageQuery),
  response: () => z.object(pageFields()),
  handle: listedAt("/embeddings/models", { outputs: ["embeddings"] }),
});

/** Shows one model as OpenRouter's clients read it. */
export const getModelData = defineEndpoint<Pick<Dependencies, "inference">>({
  ...catalogEndpoint,
  path: "/model/:owner/:model",
  summary: "Show a model, for OpenRouter's clients.",
  description: "The model of `GET /models/{owner}/{model}`, as `data`.",
  response: () => z.object({ data: modelObjectSchema() }),
  handle(context, services) {
    const id = `${context.param("owner")}/${context.param("model")}`;
    const model = shownModel(catalogFor(services, context.caller), id);
    return context.json({ data: shownObject(model, services) });
  },
});
