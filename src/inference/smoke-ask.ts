import type { SmokeAnswer, SmokePort } from "../insights/health/smoke-tests.ts";
import { timeOrderedHex } from "../platform/lib/ids.ts";
import { readWhole, sendTo } from "./attempt.ts";
import type { CatalogModel, CatalogSnapshot, UpstreamRoute } from "./catalog/model.ts";
import { chatAsks } from "./chat-asks.ts";
import type { InferenceDependencies } from "./dependencies.ts";
import { openaiChat } from "./dialects/openai-chat/openai-chat.ts";
import { interpret } from "./interpret/interpret.ts";
import type { ClientRequest } from "./interpret/interpretation.ts";
import { comparablePrice } from "./routing/candidate.ts";
import type { AttemptFailure } from "./upstream/classify-failure.ts";
import { Lifeline } from "./upstream/lifeline.ts";

interface SmokeRoute {
  model: CatalogModel;
  route: UpstreamRoute;
}

/** The smallest request that any chat model can answer; the cap leaves room for a few thoughts. */
const smallest = {
  messages: [{ role: "user", content: "Reply with the word OK." }],
  max_tokens: 64,
};

type Needs = Pick<
  InferenceDependencies,
  "isServable" | "targetOf" | "upstream" | "clock" | "callSignatures" | "catalog"
>;

/** Real requests for smoke tests: sent like any caller's, at the platform's own cost, recorded and charged to nobody. */
export function smokePort(dependencies: () => Needs): SmokePort {
  return {
    providerIds: () => [...routesOf(dependencies()).keys()].sort(),
    async ask(providerId, signal): Promise<SmokeAnswer> {
      const route = routesOf(dependencies()).get(providerId);
      if (route === undefined)
        return { outcome: "skipped", message: "It serves no model that chats." };
      return askRoute(dependencies(), { ...route, signal });
    },
  };
}

const routesBySnapshot = new WeakMap<
  CatalogSnapshot,
  ReadonlyMap<string, SmokeRoute | undefined>
>();

/** The route to test each provider by; undefined where it has none that chats. Simulated providers are left out. */
function routesOf({ catalog, isServable }: Needs): ReadonlyMap<string, SmokeRoute | undefined> {
  const snapshot = catalog();
  const known = routesBySnapshot.get(snapshot);
  if (known !== undefined) return known;
  const routes = new Map<string, SmokeRoute | undefined>();
  for (const model of snapshot.models.values()) {
    if (model.router !== undefined) continue;
    for (const route of model.routes) {
      const { id, simulated } = route.provider;
      if (simulated || !isServable(route, model)) continue;
      const best = routes.get(id);
      if (!routes.has(id) || isBetter({ model, route }, best))
        routes.set(id, model.surface === "chat" ? { model, route } : best);
    }
  }
  routesBySnapshot.set(snapshot, routes);
  return routes;
}

/** A model without thoughts answers a small request; among equals the cheapest does. */
function isBetter(route: SmokeRoute, than: SmokeRoute | undefined): boolean {
  if (route.model.surface !== "chat") return false;
  if (than === undefined) return true;
  const [thinks, otherThinks] = [
    route.model.reasoning !== undefined,
    than.model.reasoning !== undefined,
  ];
  return thinks === otherThinks
    ? comparablePrice(route.route) < comparablePrice(than.route)
    : !thinks;
}

async function askRoute(
  deps: Needs,
  { signal, ...candidate }: SmokeRoute & { signal: AbortSignal },
): Promise<SmokeAnswer> {
  const startedMs = deps.clock.monotonicMs();
  const request = requestFor(candidate, deps);
  const interpretation = interpret(request, candidate);
  const lifeline = new Lifeline(() => signal, { aborts: true });
  lifeline.listen();
  const sent = await sendTo(deps, {
    call: { asks: chatAsks(request) },
    candidate,
    interpretation,
    lifeline,
  });
  if (!sent.ok) return answerOf(sent.failure);
  const whole = await readWhole(sent.response, interpretation);
  return whole.ok
    ? { outcome: "passed", latencyMs: deps.clock.monotonicMs() - startedMs }
    : answerOf(whole.failure);
}

function requestFor({ model }: SmokeRoute, { clock, callSignatures }: Needs): ClientRequest {
  const body = { model: model.id, ...smallest };
  return {
    dialect: "openai-chat",
    text: JSON.stringify(body),
    body,
    traceId: timeOrderedHex(clock.nowMs()),
    dialectHeaders: {},
    signatures: callSignatures.of("smoke"),
    nowSeconds: () => Math.floor(clock.nowMs() / 1_000),
    canonical: () => openaiChat.decodeRequest(body),
  };
}

/** What the provider's own failure, or a credential that it refuses, says; a refused or rationed request says nothing of it. */
function answerOf({ outage, reason, upstreamStatus, observation }: AttemptFailure): SmokeAnswer {
  const message = observation ?? `it answered ${upstreamStatus ?? "nothing"}`;
  const says =
    (outage && reason !== "rate_limited") ||
    reason === "credential_error" ||
    reason === "model_unavailable";
  return { outcome: says ? "failed" : "skipped", message };
}
