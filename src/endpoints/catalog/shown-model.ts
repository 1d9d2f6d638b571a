import type { Caller } from "../../account/keys/caller.ts";
import { noPrivacy } from "../../account/security/privacy.ts";
import type { RequestContext } from "../../http/request-context.ts";
import {
  dataPolicyOf,
  type CatalogModel,
  type CatalogSnapshot,
  type UpstreamRoute,
} from "../../inference/catalog/model.ts";
import { CredentialChoice } from "../../inference/credential-choice.ts";
import { findModel, isModelAllowed } from "../../inference/routing/resolve-models.ts";
import { splitShortcuts } from "../../inference/routing/split-shortcuts.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";

/**
 * The model that an id stands for, whatever suffix shortcuts are behind it: they say how to route a request, not
 * which model is meant. Throws `not_found` where there is none.
 */
export function shownModel(catalog: CatalogSnapshot, id: string): CatalogModel {
  const model = findModel(catalog, id) ?? findModel(catalog, splitShortcuts(id).base);
  if (model === undefined)
    throw new GatewayError("not_found", `There is no model ${id} in the catalog.`);
  return model;
}

/** The slug of a model in a path: two segments, or one that is percent-encoded. */
export const slugOf = (context: RequestContext<undefined>): string =>
  context.param("id") === ""
    ? `${context.param("owner")}/${context.param("model")}`
    : context.param("id");

/**
 * Whether a list shows a model to a caller: one that the gateway serves, or that is announced, that the key allows, and that is not
 * served by providers alone whom the caller's workspace or key sends nothing to.
 */
export function isListedFor(
  { inference }: Dependencies,
  caller: Caller,
  { ignoresPrivacy = false } = {},
): (model: CatalogModel) => boolean {
  // Callers with a workspace also reach what its own provider keys and the donated ones do.
  const choice =
    caller.kind === "anonymous"
      ? undefined
      : CredentialChoice.of(inference, {
          workspaceId: caller.workspace.id,
          preferences: { allowFallbacks: true, partition: "model" },
        });
  const { isServable } = choice ?? inference;
  const { zdr, blockedProviders } =
    caller.kind === "llm-key" && !ignoresPrivacy ? inference.privacyOf(caller) : noPrivacy;
  const mayBeAsked = (route: UpstreamRoute): boolean =>
    !blockedProviders.includes(route.provider.id) && (!zdr || dataPolicyOf(route).zdr === true);
  return (model) =>
    (model.comingSoon === true ||
      model.routes.some((route) => mayBeAsked(route) && isServable(route, model))) &&
    (caller.kind !== "llm-key" || isModelAllowed(caller.key.allowedModels, model));
}
