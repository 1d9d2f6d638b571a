import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { routedCaller, type Caller } from "../../identity/keys/caller.ts";
import { routePricing } from "../../inference/catalog/model-object.ts";
import type { CatalogModel } from "../../inference/catalog/model.ts";
import { CredentialChoice } from "../../inference/pipeline/credentials/credential-choice.ts";
import type { InferenceDependencies } from "../../inference/pipeline/execution.ts";
import type { Candidate } from "../../inference/routing/candidate.ts";
import { planRoute } from "../../inference/routing/plan-route.ts";
import { withPrivacy } from "../../inference/pipeline/plan/plan-call.ts";
import { brand } from "../../platform/kernel/brand.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { modelByEncodedId } from "./models.ts";
import { routeHealth, catalogEndpoint, subRoute, type Telling } from "./sub-route.ts";
import type { ProviderFilter } from "../../inference/routing/provider-preferences.ts";

const healthSchema = lazily(() =>
  z.object({
    status: z.enum(["healthy", "degraded", "down", "no_signal"]),
    requests: z.int(),
    error_rate: z.number().nullable(),
  }),
);

const response = lazily(() =>
  z.object({
    object: z.literal("model.routing_preview"),
    model: z.string(),
    data: z.array(
      z.object({
        position: z.int(),
        model: z.string(),
        provider: z.string(),
        upstream_model: z.string(),
        reason: z.string(),
        price: z.looseObject({}).nullable(),
        health: healthSchema(),
      }),
    ),
  }),
);

/**
 * Throws unless the caller may see the chain. Presets are public; other models' chains are shown
 * only to callers who may use them.
 */
function assertMaySee({ router, id }: CatalogModel, caller: Caller): void {
  if (router !== undefined || caller.kind === "llm-key" || caller.kind === "session") return;
  const message = `The routing of ${id} is shown to people who signed in and to LLM keys (prefix ${brand.llmKeyFamilyPrefix}).`;
  throw new GatewayError(
    caller.kind === "anonymous" ? "missing_api_key" : "unauthorized",
    message,
    {
      metadata: { hint: "Send an LLM key as Authorization: Bearer." },
    },
  );
}

/** Returns, for each member of a preset, the route that would be tried first. */
function eachMemberOnce(candidates: readonly Candidate[]): Candidate[] {
  const seen = new Set<CatalogModel>();
  return candidates.filter(({ model }) => !seen.has(model) && seen.add(model) !== undefined);
}

const unsteered: ProviderFilter = { allowFallbacks: true, partition: "model" };

/** Returns the routes of a chain, each with the credential that is tried first. */
function eachRouteOnce(candidates: readonly Candidate[]): Candidate[] {
  const seen = new Set<Candidate["route"]>();
  return candidates.filter(({ route }) => !seen.has(route) && seen.add(route) !== undefined);
}

/**
 * Returns the candidates for a caller, whose own provider keys and donated ones count as they do
 * for a request. Uses no randomness.
 */
function candidatesFor(
  model: CatalogModel,
  { inference, caller }: { inference: InferenceDependencies; caller: Caller },
): Candidate[] {
  const key =
    caller.kind === "llm-key" || caller.kind === "session" ? routedCaller(caller) : undefined;
  const preferences =
    key === undefined ? unsteered : withPrivacy(unsteered, inference.privacyOf(key));
  const choice =
    key && CredentialChoice.of(inference, { workspaceId: key.workspace.id, preferences });
  const { candidates } = planRoute(
    {
      models: [model],
      preferences,
      needsTools: false,
      parameters: [],
      maxOutputTokens: undefined,
      allowedModels: key?.key.allowedModels ?? null,
    },
    {
      health: inference.health,
      isServable: inference.isServable,
      random: () => 0,
      ...(choice === undefined ? {} : { hasKey: choice.hasKey, hasOwnKey: choice.hasOwnKey }),
    },
  );
  return choice === undefined ? [...candidates] : eachRouteOnce(choice.candidates(candidates));
}

/** Returns the chain of a request without any preferences; what is drawn most often comes first. */
const preview: Telling = async (
  model,
  { inference }: Pick<Dependencies, "inference">,
  { caller },
) => {
  assertMaySee(model, caller);
  const candidates = candidatesFor(model, { inference, caller });
  const shown = model.router === undefined ? candidates : eachMemberOnce(candidates);
  return {
    object: "model.routing_preview",
    model: model.id,
    data: shown.map((candidate, position) => ({
      position,
      model: candidate.model.id,
      provider: candidate.route.provider.id,
      upstream_model: candidate.route.upstreamModel,
      reason: candidate.reason,
      price: candidate.route.price === undefined ? null : routePricing(candidate.route.price),
      health: routeHealth(inference.health, candidate),
    })),
  };
};

const shared = {
  ...catalogEndpoint,
  description:
    "Returns the providers that would be tried, in order, for a request without special requirements. Public for " +
    "routing presets, which show each member once; other models require an LLM key or a session.",
  response,
};

/** The routes for the current failover chain of a model, by both forms of its path. */
export const previewRoutes = [
  defineEndpoint<Pick<Dependencies, "inference" | "routeHistory" | "priceHistory">>({
    ...shared,
    path: "/models/:owner/:model/routing-preview",
    summary: "Preview the routing of a model.",
    handle: subRoute(preview),
  }),
  // The same by a percent-encoded slug.
  defineEndpoint<Pick<Dependencies, "inference" | "routeHistory" | "priceHistory">>({
    ...shared,
    path: "/models/:id/routing-preview",
    summary: "Preview the routing of a model (percent-encoded id).",
    handle: subRoute(preview, modelByEncodedId("routing-preview")),
  }),
];
