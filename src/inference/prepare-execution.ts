import { limitWindowHours } from "../account/keys/llm-key.ts";
import { brandHeader } from "../platform/lib/brand.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import type { CatalogSnapshot } from "./catalog/model.ts";
import type { ChatCall } from "./chat-call.ts";
import { choicesOf, maxOutputTokensOf, parametersOf } from "./chat-call.ts";
import { checkTrace } from "./check-trace.ts";
import type { InferenceDependencies } from "./dependencies.ts";
import type { Execution } from "./execution.ts";
import { holdCeiling, isFree } from "./hold-ceiling.ts";
import { estimateInputTokens } from "./input-estimate.ts";
import { planRoute } from "./routing/plan-route.ts";
import { providerFilter } from "./routing/provider-filter.ts";
import { resolveModel } from "./routing/resolve-models.ts";
import { providerWithAliases } from "./top-level-preferences.ts";
import { Lifeline } from "./upstream/lifeline.ts";

/** Allow-lists of the key: models that it may not use are refused before anything is planned. */
function assertModelAllowed(call: ChatCall, modelId: string): void {
  const allowed = call.caller.key.allowedModels;
  if (allowed === null || allowed.includes(modelId.toLowerCase())) return;
  throw new GatewayError("forbidden", `This key may not use ${modelId}; its allowed_models do not list it.`, { param: "model" });
}

/** Backends named by header of which the catalog knows none are a mistake, not a condition that nobody meets. */
function assertAnyKnown(catalog: CatalogSnapshot, names: readonly string[]): void {
  const wanted = new Set(names.map((name) => name.toLowerCase()));
  const known = [...catalog.providers.values()].some(({ id, name }) => wanted.has(id) || wanted.has(name.toLowerCase()));
  if (known) return;
  const header = brandHeader("Provider");
  const message = `${header} names no provider of the catalog: ${names.join(", ")}. GET /providers lists them.`;
  throw new GatewayError("unknown_provider", message, { param: header });
}

/** Characters that a model id may have: no catalog has longer ones, and unknown ids are repeated in errors and logs. */
const modelIdLengthMax = 256;

function assertPlausibleId(id: string): void {
  if (id.length <= modelIdLengthMax) return;
  const message = `Model ids have at most ${modelIdLengthMax} characters; this one has ${id.length}.`;
  throw new GatewayError("model_unavailable", message, { param: "model" });
}

/** Whether only tool-capable providers may serve: tools are offered, or a choice among them is made. */
const asksForTools = ({ tools, tool_choice: choice }: ChatCall["body"]): boolean =>
  (Array.isArray(tools) && tools.length > 0) || (choice !== undefined && choice !== null);

/** Plans a request and takes its hold; throws `GatewayError` when it may not, cannot or need not be served. */
export function prepare(deps: InferenceDependencies, call: ChatCall): Execution {
  const { body } = call;
  const catalog = deps.catalog();
  checkTrace(body["trace"]);
  if (call.forcedProviders !== undefined) assertAnyKnown(catalog, call.forcedProviders);
  const fallbackIds = Array.isArray(body["models"]) ? (body["models"] as string[]) : [];
  const ids = [...new Set([String(body["model"]), ...fallbackIds])];
  ids.forEach(assertPlausibleId);
  const resolved = ids.map((id) => resolveModel(catalog, id));
  for (const { model } of resolved) assertModelAllowed(call, model.id);
  const first = resolved[0];
  const preferences = providerFilter({
    provider: providerWithAliases(body["provider"], body), suffixSort: first?.sort, forcedProviders: call.forcedProviders,
  });
  const maxOutputTokens = maxOutputTokensOf(call);
  const plan = planRoute({
    models: resolved.map(({ model }) => model),
    preferences,
    needsTools: asksForTools(body),
    parameters: preferences.requireParameters ? parametersOf(call) : [],
    maxOutputTokens,
  }, deps);
  if (plan.candidates.length === 0) throw noRoute(ids, plan.leftOut);
  const inputTokens = estimateInputTokens(call.text, body);
  const execution: Execution = {
    deps, call, inputTokens, requestedModel: first?.model.id ?? "", candidates: plan.candidates, failed: [],
    lifeline: new Lifeline(call.signalOf, { aborts: deps.disconnect === "abort" }),
    balanceAtAdmissionNano: undefined, firstSendMs: 0, accepted: false,
  };
  hold(execution, maxOutputTokens);
  return execution;
}

function noRoute(ids: readonly string[], leftOut: readonly { provider: string; rule: string }[]): GatewayError {
  const rules = [...new Set(leftOut.map(({ rule }) => rule))].join("; ");
  return new GatewayError("no_upstream", `No provider can serve ${ids.join(", ")} under these conditions (left out by: ${rules}).`, {
    param: "model",
    metadata: { left_out: leftOut.slice(0, 20).map(({ provider, rule }) => ({ provider, rule })) },
  });
}

/**
 * Holds the worst case over all candidates. With nothing left to hold, free candidates that come before
 * any paid one may still serve; a request for a paid model is refused.
 */
function hold(execution: Execution, maxOutputTokens: number | undefined): void {
  const { deps, call, candidates, inputTokens } = execution;
  const { key, workspace } = call.caller;
  const ceilingNano = holdCeiling(candidates, { inputTokens, maxOutputTokens, choices: choicesOf(call) });
  const reserve = (amountNano: bigint) => deps.ledger.reserve({
    holdId: call.generationId, workspaceId: workspace.id, keyId: key.id, ceilingNano: amountNano,
    keyLimit: key.limitNanoUsd === null ? null : { limitNano: key.limitNanoUsd, windowHours: limitWindowHours(key.limitReset) },
  });
  const outcome = reserve(ceilingNano);
  if (outcome.ok) {
    if (ceilingNano > 0n) execution.balanceAtAdmissionNano = outcome.balanceNano;
    return;
  }
  const first = candidates[0];
  if (outcome.reason === "exists" || first === undefined || !isFree(first)) throw refusal(outcome.reason);
  execution.candidates = candidates.filter(isFree);
  reserve(0n);
}

function refusal(reason: "insufficient_balance" | "key_limit" | "exists"): GatewayError {
  if (reason === "key_limit") {
    return new GatewayError("insufficient_balance", "This key has reached its spending limit. Raise its limit or wait until its window has moved on.", {
      metadata: { reason: "key_limit_reached" },
    });
  }
  return new GatewayError("insufficient_balance", "There are no credits left for a paid model. Add credits, or use a model whose id ends in :free.");
}
