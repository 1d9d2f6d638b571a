import { modelObject, type ModelObject } from "../../inference/catalog/model-object.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { Answer } from "../../http/reply.ts";
import type { RequestContext } from "../../access/define-endpoint.ts";
import { routedCaller, type Caller } from "../../identity/keys/caller.ts";
import { noPrivacy } from "../../identity/workspaces/privacy.ts";
import {
  dataPolicyOf,
  type CatalogModel,
  type UpstreamRoute,
  type CatalogSnapshot,
} from "../../inference/catalog/model.ts";
import { CredentialChoice } from "../../inference/pipeline/credentials/credential-choice.ts";
import type { HealthWindows } from "../../inference/routing/health/health-windows.ts";
import {
  findModel,
  isModelAllowed,
  splitShortcuts,
} from "../../inference/routing/resolve-models.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";

/** The declarations that the catalog's endpoints share. */
export const catalogEndpoint = {
  method: "GET" as const,
  base: "api" as const,
  access: {
    llmKey: true as const,
    anonymous: true as const,
    session: true as const,
    keyInQuery: true as const,
  },
  anyOrigin: true as const,
  counting: "at-door" as const,
  tag: "Catalog",
  encodeError: encodeContractError,
};

/** Returns a sub-route's answer about a model. */
export type Telling = (
  model: CatalogModel,
  deps: Pick<Dependencies, "inference" | "routeHistory" | "priceHistory">,
  context: RequestContext<undefined>,
) => Promise<object>;

/**
 * Returns the handler of a model's sub-route. Where a single segment without a slash precedes
 * `name`, the path is that of a model which is itself named `name`; `elsewhere` answers it.
 */
export const subRoute =
  (tell: Telling, elsewhere?: { name: string; tell: Telling }) =>
  async (
    context: RequestContext<undefined>,
    deps: Pick<Dependencies, "inference" | "routeHistory" | "priceHistory">,
  ): Promise<Answer> => {
    const slug = slugOf(context);
    const isModel = elsewhere !== undefined && !slug.includes("/");
    const model = shownModel(
      catalogFor(deps, context.caller),
      isModel ? `${slug}/${elsewhere.name}` : slug,
    );
    return context.json(await (isModel ? elsewhere.tell : tell)(model, deps, context));
  };

/** A route with the model that it serves. */
export interface ModelRoute {
  model: CatalogModel;
  route: UpstreamRoute;
}

/** Returns every route of a model; for a routing preset, those of its members. */
export const routesOf = (model: CatalogModel): ModelRoute[] =>
  (model.router?.members ?? [model]).flatMap((each) =>
    each.routes.map((route) => ({ model: each, route })),
  );

/**
 * Returns the model of an id, ignoring the suffix shortcuts behind it: they say how to route a
 * request, not which model is meant. Throws `not_found` where there is none.
 */
export function shownModel(catalog: CatalogSnapshot, id: string): CatalogModel {
  const model = findModel(catalog, id) ?? findModel(catalog, splitShortcuts(id).base);
  if (model === undefined)
    throw new GatewayError("not_found", `There is no model ${id} in the catalog.`);
  return model;
}

/** Returns the catalog with the names of the caller's workspace. */
export const catalogFor = (
  { inference }: Pick<Dependencies, "inference">,
  caller: Caller,
): CatalogSnapshot =>
  inference.catalog(caller.kind === "anonymous" ? undefined : caller.workspace.id);

/** Returns the slug of a model in a path: two segments, or one that is percent-encoded. */
const slugOf = (context: RequestContext<undefined>): string =>
  context.param("id") === ""
    ? `${context.param("owner")}/${context.param("model")}`
    : context.param("id");

/** The objects of models as they are shown; models of a snapshot never change. */
const objects = new WeakMap<CatalogModel, ModelObject>();

/**
 * Returns a model as lists show it to every caller. It is created once, so it must not be changed.
 */
export function shownObject(
  model: CatalogModel,
  { inference }: Pick<Dependencies, "inference">,
): ModelObject {
  let object = objects.get(model);
  if (object === undefined) {
    object = modelObject(model, { reachable: (route) => inference.isServable(route, model) });
    objects.set(model, object);
  }
  return object;
}

/** The models of a snapshot that are announced or served with the platform's credentials. */
const served = new WeakMap<CatalogSnapshot, CatalogModel[]>();

/**
 * Returns the models that `isListedFor` has to check: all of them where provider keys concern the
 * caller, or else those that the platform's credentials serve.
 */
export function modelsToList(
  { inference }: Pick<Dependencies, "inference">,
  caller: Caller,
): Iterable<CatalogModel> {
  const catalog = inference.catalog();
  if (caller.kind !== "anonymous" && inference.providerKeys.concern(caller.workspace.id))
    return catalog.models.values();
  let models = served.get(catalog);
  if (models === undefined) {
    models = [...catalog.models.values()].filter(
      (model) =>
        model.comingSoon === true ||
        model.routes.some((route) => inference.isServable(route, model)),
    );
    served.set(catalog, models);
  }
  return models;
}

/**
 * Returns whether a list shows a model to a caller: the gateway serves or announces it, the key
 * allows it, and at least one of its providers is not blocked by the caller's workspace or key.
 */
export function isListedFor(
  { inference }: Pick<Dependencies, "inference">,
  caller: Caller,
  { ignoresPrivacy = false } = {},
): (model: CatalogModel) => boolean {
  // Callers with a workspace also reach what its own provider keys and donated ones serve.
  const choice =
    caller.kind === "anonymous"
      ? undefined
      : CredentialChoice.of(inference, {
          workspaceId: caller.workspace.id,
          preferences: { allowFallbacks: true, partition: "model" },
        });
  const { isServable } = choice ?? inference;
  const { zdr, blockedProviders } =
    (caller.kind === "llm-key" || caller.kind === "session") && !ignoresPrivacy
      ? inference.privacyOf(routedCaller(caller))
      : noPrivacy;
  const mayBeAsked = (route: UpstreamRoute): boolean =>
    !blockedProviders.includes(route.provider.id) && (!zdr || dataPolicyOf(route).zdr === true);
  return (model) =>
    (model.comingSoon === true ||
      model.routes.some((route) => mayBeAsked(route) && isServable(route, model))) &&
    (caller.kind !== "llm-key" || isModelAllowed(caller.key.allowedModels, model));
}

/**
 * The share of failures from which a model is degraded: more than chance and retries make of a
 * healthy provider.
 */
const degradedShareMin = 0.05;

/**
 * A model's condition at a provider over the last five minutes, in the words of the health
 * snapshot.
 */
export interface RouteHealth {
  status: "healthy" | "degraded" | "down" | "no_signal";
  requests: number;
  /** 0 to 1; null without traffic. */
  error_rate: number | null;
}

/**
 * Reads the condition from the windows that routing uses; `down` is what routing avoids as an
 * outage.
 */
export function routeHealth(
  health: HealthWindows,
  { model, route: { provider } }: ModelRoute,
): RouteHealth {
  const rate = health.errorRate(provider.id, model.id);
  const share = rate === undefined ? null : rate.failures / rate.attempts;
  const known = share === null ? "no_signal" : share >= degradedShareMin ? "degraded" : "healthy";
  return {
    status: health.hasOutage(provider.id, model.id) ? "down" : known,
    requests: rate?.attempts ?? 0,
    error_rate: share === null ? null : Math.round(share * 10_000) / 10_000,
  };
}
