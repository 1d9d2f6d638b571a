import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { parseJsonObject, readJsonText } from "../../http/bodies/read-body.ts";
import type { CatalogModel } from "../../inference/catalog/model.ts";
import { namedModels } from "../../inference/routing/resolve-models.ts";
import { modelIdOf } from "../../inference/surfaces/ollama/chat-request.ts";
import { catalogFor, isListedFor, modelsToList, shownModel } from "../catalog/sub-route.ts";
import type { Dependencies } from "../dependencies.ts";
import { encodeOllamaError, ollamaDoor } from "./door.ts";

const shared = { ...ollamaDoor, counting: "at-door", encodeError: encodeOllamaError } as const;

const bodyBytesMax = 64 * 1024;

/** The version of Ollama whose API this is; some clients refuse older ones. */
const version = "0.15.4";

/** Returns a name with a tag, which clients expect of every name. */
const taggedName = (id: string): string =>
  id.slice(id.lastIndexOf("/") + 1).includes(":") ? id : `${id}:latest`;

const detailsOf = ({ owner, routes }: CatalogModel) => ({
  parent_model: "",
  format: "gguf",
  family: owner,
  families: [owner],
  parameter_size: "",
  quantization_level: routes.find(({ quantization }) => quantization)?.quantization ?? "",
});

const entryOf = (model: CatalogModel) => ({
  name: taggedName(model.id),
  model: taggedName(model.id),
  modified_at: new Date(model.addedAtMs).toISOString(),
  size: 0,
  digest: new Bun.CryptoHasher("sha256").update(model.id).digest("hex"),
  details: detailsOf(model),
});

function listedModels(
  context: RequestContext,
  deps: Pick<Dependencies, "inference">,
): CatalogModel[] {
  const isListed = isListedFor(deps, context.caller);
  const { caller } = context;
  const among = [...modelsToList(deps, caller), ...namedModels(catalogFor(deps, caller))];
  return among.filter(
    (model) =>
      (model.surface === "chat" || model.surface === "embeddings") &&
      !model.comingSoon &&
      isListed(model),
  );
}

/** Lists models in Ollama's form. */
export const ollamaTags = defineEndpoint<Pick<Dependencies, "inference">>({
  ...shared,
  method: "GET",
  path: "/api/tags",
  alsoAt: ["/ollama/api/tags"],
  summary: "List models in Ollama's form.",
  response: () => z.object({ models: z.array(z.looseObject({ name: z.string() })) }),
  handle: (context, deps) => context.json({ models: listedModels(context, deps).map(entryOf) }),
});

/** What Ollama calls abilities, by the catalog's names. */
const abilities: readonly (readonly [name: string, has: (model: CatalogModel) => boolean])[] = [
  ["completion", ({ surface }) => surface === "chat"],
  ["embedding", ({ surface }) => surface === "embeddings"],
  [
    "tools",
    ({ surface, capabilities }) =>
      surface === "chat" &&
      // A model that declares no abilities may have any.
      (capabilities.every((name) => name === "chat") ||
        capabilities.some((name) => /function.calling|tools/.test(name))),
  ],
  ["vision", ({ capabilities }) => capabilities.includes("vision")],
  ["thinking", ({ reasoning }) => reasoning !== undefined],
];

function shownDetails(model: CatalogModel) {
  const architecture = model.owner;
  return {
    modelfile: "",
    parameters: "",
    template: "",
    license: "",
    details: detailsOf(model),
    model_info: {
      "general.architecture": architecture,
      "general.basename": model.displayName,
      [`${architecture}.context_length`]: model.contextLength,
    },
    capabilities: abilities.flatMap(([name, has]) => (has(model) ? [name] : [])),
    modified_at: new Date(model.addedAtMs).toISOString(),
  };
}

/** Shows a model in Ollama's form. */
export const ollamaShow = defineEndpoint<Pick<Dependencies, "inference">>({
  ...shared,
  method: "POST",
  path: "/api/show",
  alsoAt: ["/ollama/api/show"],
  unaudited: true,
  bodyBytesMax,
  summary: "Show a model in Ollama's form.",
  rawBody: z.looseObject({ model: z.string().optional(), name: z.string().optional() }),
  response: () => z.looseObject({ capabilities: z.array(z.string()) }),
  async handle(context, deps) {
    const body = parseJsonObject(await readJsonText(context.request, bodyBytesMax));
    const id = modelIdOf(body["model"] ?? body["name"]);
    return context.json(shownDetails(shownModel(catalogFor(deps, context.caller), id)));
  },
});

/** Lists no model as loaded: providers load their models themselves. */
export const ollamaPs = defineEndpoint<unknown>({
  ...shared,
  method: "GET",
  path: "/api/ps",
  alsoAt: ["/ollama/api/ps"],
  summary: "List loaded models in Ollama's form: none.",
  response: () => z.object({ models: z.array(z.looseObject({})) }),
  handle: (context) => context.json({ models: [] }),
});

/** Shows the version of Ollama's API. */
export const ollamaVersion = defineEndpoint<unknown>({
  ...shared,
  access: { open: true },
  counting: "none",
  method: "GET",
  path: "/api/version",
  alsoAt: ["/ollama/api/version"],
  summary: "Show the version of Ollama's API.",
  response: () => z.object({ version: z.string() }),
  handle: (context) => context.json({ version }),
});
