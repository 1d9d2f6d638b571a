import { encodeContractError } from "../../http/error-envelope.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Answer } from "../../http/reply.ts";
import type { CatalogModel, UpstreamRoute } from "../../inference/catalog/model.ts";
import type { Dependencies } from "../dependencies.ts";
import { shownModel, slugOf } from "./shown-model.ts";

/** What the catalog's endpoints have in common. */
export const catalogEndpoint = {
  method: "GET" as const,
  base: "api" as const,
  access: { llmKey: true as const, anonymous: true as const },
  counting: "at-door" as const,
  tag: "Catalog",
  encodeError: encodeContractError,
};

/** Says what a sub-route tells of a model. */
export type Telling = (
  model: CatalogModel,
  deps: Dependencies,
  context: RequestContext<undefined>,
) => object | Promise<object>;

/**
 * The handler of a model's sub-route. Where one segment stands before `name` and has no slash in it, the path is that
 * of a model which is itself called `name`; `elsewhere` answers it.
 */
export const subRoute =
  (tell: Telling, elsewhere?: { name: string; tell: Telling }) =>
  async (context: RequestContext<undefined>, deps: Dependencies): Promise<Answer> => {
    const slug = slugOf(context);
    const isModel = elsewhere !== undefined && !slug.includes("/");
    const model = shownModel(
      deps.inference.catalog(),
      isModel ? `${slug}/${elsewhere.name}` : slug,
    );
    return context.json(await (isModel ? elsewhere.tell : tell)(model, deps, context));
  };

/** A route with the model that it serves. */
export interface ModelRoute {
  model: CatalogModel;
  route: UpstreamRoute;
}

/** Every route of a model; of a routing preset those of its members. */
export const routesOf = (model: CatalogModel): ModelRoute[] =>
  (model.router?.members ?? [model]).flatMap((each) =>
    each.routes.map((route) => ({ model: each, route })),
  );
