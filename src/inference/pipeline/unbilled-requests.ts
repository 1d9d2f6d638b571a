import { z } from "zod";
import { sendTo, errorDetails, readWhole } from "./attempt.ts";
import type { InferenceDependencies } from "./execution.ts";
import { chatRequirements } from "./chat-call.ts";
import type { ChatCall, InferenceCall, ClientRequest } from "./inference-call.ts";
import type { InputCount } from "../dialects/dialect.ts";
import type { DialectId } from "../canonical/dialect-id.ts";
import { upstreamDialects } from "../dialects/index.ts";
import { chatDialectOf, adapt } from "./adapt.ts";
import { planCall } from "./plan/plan-call.ts";
import { withoutRemembered } from "./adapted-request.ts";
import { type Candidate, comparablePrice } from "../routing/candidate.ts";
import { AbortScope } from "../upstream/abort-scope.ts";
import type { Probe, ProbeKey } from "../../byok/key-prober.ts";
import { buildCatalog } from "../catalog/build-catalog.ts";
import type { ConfiguredProvider } from "../catalog/configured/configured-provider.ts";
import type { CatalogSnapshot, Provider, CatalogModel, UpstreamRoute } from "../catalog/model.ts";
import { verdictOf } from "./credentials/provider-credentials.ts";
import {
  classifyStatus,
  UpstreamFailure,
  type AttemptFailure,
} from "../upstream/upstream-failure.ts";
import { upstreamTarget, type UpstreamClient } from "../upstream/upstream-client.ts";
import type { SmokeAnswer, SmokePort } from "../../insights/health/smoke-tests.ts";
import { timeOrderedHex } from "../../platform/kernel/ids.ts";
import { openaiChat } from "../dialects/openai-chat/index.ts";

/** The number of tokens in a prompt, and who counted them. */
interface TokenCount {
  inputTokens: number;
  /** The provider's own count, or the gateway's estimate. */
  source: "native" | "estimated";
}

const countAnswerBytesMax = 64 * 1024;

/**
 * Returns whether a route's provider counts tokens itself: the counting endpoint lies under the
 * dialect's own path, and Messages is the only dialect whose path deviates.
 */
const countsItself = ({ route }: Candidate, dialect: DialectId): boolean =>
  chatDialectOf(route) === dialect && route.provider.deviations.messagesPath === undefined;

/**
 * Counts the input tokens of a request without charging or recording anything. The provider that
 * would serve the request counts them where it speaks the request's dialect and the dialect has a
 * count; otherwise, and after any other answer, the gateway estimates. Throws `GatewayError` where
 * the request is not allowed.
 */
export async function countTokens(
  deps: InferenceDependencies,
  call: ChatCall,
): Promise<TokenCount> {
  const { inputCount } = upstreamDialects[call.dialect];
  const plan = planCall(deps, call);
  if (inputCount === undefined) return { inputTokens: plan.inputTokens, source: "estimated" };
  const [planned] = plan.candidates;
  const candidate = planned && deps.openedRoutes.open(planned);
  if (candidate !== undefined && countsItself(candidate, call.dialect)) {
    const counted = await askProvider(deps, { call, candidate, inputCount });
    if (counted !== undefined) return { inputTokens: counted, source: "native" };
  }
  return { inputTokens: inputCount.estimate(call.body), source: "estimated" };
}

/** A request to count, and the route to count it on. */
interface CountRequest {
  call: InferenceCall;
  candidate: Candidate;
  inputCount: InputCount;
}

/** Returns the provider's count; undefined where it is not available now. */
async function askProvider(
  deps: InferenceDependencies,
  { call, candidate, inputCount: { read, wrap } }: CountRequest,
): Promise<number | undefined> {
  const abortScope = new AbortScope(call.signalOf, { aborts: true });
  // A count fails where seals cannot be read, as the request would.
  const adapted = withoutRemembered(deps.sealMemory, {
    candidate,
    adapter: call.adapt(candidate),
    body: call.body,
  });
  const adapter =
    wrap === undefined
      ? adapted
      : {
          ...adapted,
          requestText: wrap(adapted.requestText, candidate.route.upstreamModel),
          requestParts: undefined,
        };
  const sent = await sendTo(deps, {
    call,
    candidate,
    adapter,
    abortScope,
    purpose: "count-tokens",
  });
  // An estimate is of more use than an error: the request itself will say what is wrong with it.
  if (!sent.ok) return undefined;
  const text = await sent.response.readText(countAnswerBytesMax).catch(() => "");
  return read(text);
}

const connectTimeoutMs = 5_000;
const answerTimeoutMs = 20_000;
/**
 * The most bytes that are read of an answer: enough for an error's text, and for most lists of
 * models.
 */
const probeAnswerBytesMax = 1024 * 1024;

/**
 * Probes a key by listing the provider's models, which every vendor offers and none charges for.
 */
export const probeKeyThrough =
  ({ catalog, upstream }: { catalog(): CatalogSnapshot; upstream: UpstreamClient }): ProbeKey =>
  async ({ providerId, secret }) => {
    const provider = catalog().providers.get(providerId);
    if (provider?.baseUrl === undefined)
      return { outcome: "unknown", reason: "The provider has no base URL." };
    try {
      return await probe(provider, { baseUrl: provider.baseUrl, secret, upstream });
    } catch (error) {
      if (error instanceof UpstreamFailure) return { outcome: "unknown", reason: error.message };
      throw error;
    }
  };

/** Asks a provider for its models, with its own key where it has one; null where that failed. */
async function listedModels(
  provider: Provider,
  { upstream }: { upstream: UpstreamClient },
): Promise<string | null> {
  if (provider.baseUrl === undefined) return null;
  try {
    const { status, text } = await askForModels(provider, {
      baseUrl: provider.baseUrl,
      secret: provider.apiKey,
      upstream,
    });
    return status >= 200 && status < 300 ? text : null;
  } catch (error) {
    if (error instanceof UpstreamFailure) return null;
    throw error;
  }
}

interface ModelsAsked {
  baseUrl: string;
  secret: string | undefined;
  upstream: UpstreamClient;
}

async function askForModels(
  { credentialHeader: { name, prefix }, headers, proxy }: Provider,
  { baseUrl, secret, upstream }: ModelsAsked,
): Promise<{ status: number; text: string }> {
  const target = upstreamTarget(
    `${baseUrl}/models`,
    {
      accept: "application/json",
      "user-agent": "switchyard",
      ...headers,
      ...(secret === undefined ? {} : { [name]: prefix + secret }),
    },
    { proxy },
  );
  const response = await upstream.send({
    target: { ...target, headPrefix: target.headPrefix.replace(/^POST /, "GET ") },
    body: "",
    connectTimeoutMs,
    timeouts: { firstTokenMs: answerTimeoutMs, idleMs: answerTimeoutMs, totalMs: answerTimeoutMs },
    abortScope: new AbortScope(undefined, { aborts: false }),
  });
  const text = await response.readText(probeAnswerBytesMax).catch(() => {
    response.abort();
    return "";
  });
  return { status: response.status, text };
}

async function probe(provider: Provider, asked: ModelsAsked): Promise<Probe> {
  const { status, text } = await askForModels(provider, asked);
  if (status >= 200 && status < 300) return { outcome: "accepted", reason: null };
  const failure = classifyStatus({ status, ...errorDetails(text) });
  return {
    outcome: verdictOf(failure)?.kind === "refused" ? "refused" : "unknown",
    reason: failure.upstreamMessage ?? `The provider answered ${status}.`,
  };
}

interface SmokeRoute {
  model: CatalogModel;
  route: UpstreamRoute;
}

/**
 * The smallest request that any chat model can answer. The cap leaves room for a little reasoning.
 */
const smallest = {
  messages: [{ role: "user", content: "Reply with the word OK." }],
  max_tokens: 64,
};

type Needs = Pick<
  InferenceDependencies,
  "isServable" | "targetOf" | "upstream" | "clock" | "callSignatures" | "catalog"
>;

/**
 * Sends real requests for smoke tests: like any caller's, but at the platform's own cost. They are
 * recorded and charged to no caller.
 */
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

/**
 * Returns the route that each provider is tested by; undefined for a provider without chat models.
 * Simulated providers are left out.
 */
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

/**
 * Returns whether a route is better for a smoke test: a model without reasoning answers a small
 * request, and among equals the cheapest does.
 */
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
  const adapter = adapt(request, candidate);
  const abortScope = new AbortScope(() => signal, { aborts: true });
  abortScope.listen();
  const sent = await sendTo(deps, {
    call: { requirements: chatRequirements(openaiChat, request) },
    candidate,
    adapter,
    abortScope,
  });
  if (!sent.ok) return answerOf(sent.failure);
  const whole = await readWhole(sent.response, adapter);
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

/**
 * Returns the outcome of a smoke test. Only the provider's own failure or a refused credential
 * counts against it; a refused or rate-limited request says nothing about it.
 */
function answerOf({
  outage,
  reason,
  upstreamStatus,
  upstreamMessage,
  observation,
}: AttemptFailure): SmokeAnswer {
  const said = upstreamMessage === null ? "" : `: ${upstreamMessage}`;
  const message = observation ?? `it answered ${upstreamStatus ?? "nothing"}${said}`;
  const says =
    (outage && reason !== "rate_limited") ||
    reason === "credential_error" ||
    reason === "model_unavailable";
  return { outcome: says ? "failed" : "skipped", message };
}

/** What a provider answered that is not configured yet. */
interface Trial {
  /** The answer to the smallest request of chat; skipped where it has no model that chats. */
  chat: SmokeAnswer;
  /** The models that it lists, by its own names; null where it lists none. */
  models: readonly string[] | null;
}

/** Asks a provider as its entry describes it, without configuring it. */
export type TryProvider = (entry: ConfiguredProvider, signal: AbortSignal) => Promise<Trial>;

const modelListSchema = z.object({ data: z.array(z.object({ id: z.string() })) });

/** Returns the ids of a list of models in OpenAI's form; null for anything else. */
function idsIn(text: string): readonly string[] | null {
  try {
    const list = modelListSchema.safeParse(JSON.parse(text));
    return list.success ? list.data.data.map(({ id }) => id) : null;
  } catch {
    return null;
  }
}

/**
 * Tries providers over a catalog of their own: one request of chat to the cheapest model, at the
 * platform's cost, and the list of models, which costs nothing.
 */
export const providerTrial =
  (dependencies: Needs, environment: Readonly<Record<string, string | undefined>>): TryProvider =>
  async (entry, signal) => {
    const snapshot = buildCatalog({
      environment,
      configuredProviders: [entry],
      nowMs: dependencies.clock.nowMs(),
    });
    const provider = snapshot.providers.get(entry.id);
    const [chat, list] = await Promise.all([
      smokePort(() => ({ ...dependencies, catalog: () => snapshot })).ask(entry.id, signal),
      provider === undefined ? null : listedModels(provider, dependencies),
    ]);
    return { chat, models: list === null ? null : idsIn(list) };
  };
