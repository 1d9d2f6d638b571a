import type { KeyUse } from "../../byok/provider-key-usage.ts";
import {
  isSendable,
  hasCredential,
  type CatalogModel,
  type UpstreamRoute,
  type Provider,
} from "../catalog/model.ts";
import { sendableDialects } from "../providers/endpoint.ts";
import type { Candidate, LeftOut, ProviderFilter } from "../routing/candidate.ts";
import { barring, type BarringState } from "../routing/health-windows.ts";
import { balancesLoad } from "../routing/order-policies.ts";
import type { InferenceDependencies, Execution } from "./execution.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { listCeiling } from "./hold/hold-ceiling.ts";
import type { AttemptFailure } from "../upstream/upstream-failure.ts";
import type { KeyVerdict, ProviderKeys } from "../../byok/provider-keys.ts";
import type { Clock } from "../../platform/kernel/clock.ts";

/** The most keys of one provider that a request tries. */
const ownKeysMax = 8;
const pooledKeysMax = 3;

type Services = Pick<InferenceDependencies, "providerKeys" | "isServable" | "health">;

/**
 * The credentials that a request may be sent with: its workspace's own keys, the platform's, and,
 * where neither exists, donated ones (docs/decisions/0024). Built for each request, since keys
 * change.
 */
export class CredentialChoice {
  private readonly services: Services;
  private readonly workspaceId: string;
  private readonly preferences: ProviderFilter;
  private readonly uses = new Map<string, readonly KeyUse[]>();

  /** Returns the choice for a request; undefined where only the platform's credentials apply. */
  static of(
    services: Services,
    request: { workspaceId: string; preferences: ProviderFilter },
  ): CredentialChoice | undefined {
    return services.providerKeys.concern(request.workspaceId)
      ? new CredentialChoice(services, request)
      : undefined;
  }

  private constructor(
    services: Services,
    { workspaceId, preferences }: { workspaceId: string; preferences: ProviderFilter },
  ) {
    this.services = services;
    this.workspaceId = workspaceId;
    this.preferences = preferences;
  }

  /** Returns whether any of the credentials serves a route. */
  readonly isServable = (route: UpstreamRoute, model: CatalogModel): boolean =>
    this.services.isServable(route, model) || this.hasKey(route, model);

  /** Returns whether a provider key serves a route. */
  readonly hasKey = (route: UpstreamRoute, model: CatalogModel): boolean =>
    this.keysFor(route, model).length > 0;

  /** Returns whether an own key of the caller's workspace serves a route. */
  readonly hasOwnKey = (route: UpstreamRoute, model: CatalogModel): boolean =>
    this.keysFor(route, model)[0]?.source === "own_byok";

  /**
   * Returns the candidates that the platform's credential would serve too, were the provider
   * healthy and within its budget.
   */
  platformLeftOut(planned: readonly Candidate[]): LeftOut[] {
    return planned.flatMap(({ route, model }) => {
      const state = this.services.isServable(route, model)
        ? this.platformState(route, model)
        : undefined;
      return state === undefined
        ? []
        : [
            {
              provider: route.provider.id,
              model: model.id,
              rule: `${state} for the platform's credential`,
            },
          ];
    });
  }

  /**
   * Returns the candidates with each credential that may be tried, in order. Among routes to one
   * model, those with an own key come first, unless the request orders providers itself. At one
   * provider, own keys come before the platform's credential.
   */
  candidates(planned: readonly Candidate[]): Candidate[] {
    const expanded = runsOfModels(planned).flatMap((run) => {
      const each = run.map((candidate) => this.withCredentials(candidate));
      if (!balancesLoad(this.preferences))
        return each.flatMap(({ first, later }) => [...first, ...later]);
      return [...each.flatMap(({ first }) => first), ...each.flatMap(({ later }) => later)];
    });
    return this.preferences.allowFallbacks ? expanded : expanded.slice(0, 1);
  }

  /**
   * Returns the reason why a provider that has an own key serves nothing with it now; undefined
   * where it has none.
   */
  ruleFor(providerId: string): string | undefined {
    const { providerKeys } = this.services;
    return providerKeys.hasOwn(this.workspaceId, providerId)
      ? "the own provider key is disabled or its quota is used up"
      : undefined;
  }

  /**
   * Splits a candidate by credential into those that go ahead of other routes to the same model,
   * and those that keep the route's place.
   */
  private withCredentials(candidate: Candidate): { first: Candidate[]; later: Candidate[] } {
    const { route, model } = candidate;
    const { providerKeys, health } = this.services;
    const withKey = (use: KeyUse): Candidate => ({
      ...candidate,
      credential: use,
      reason: `${use.source === "pool" ? "donated key" : "own key"}; ${candidate.reason}`,
    });
    const keys = this.keysFor(route, model);
    const rested = keys.filter(({ key }) => !providerKeys.isResting(key)).map(withKey);
    const resting = keys.filter(({ key }) => providerKeys.isResting(key)).map(withKey);
    const platform =
      this.services.isServable(route, model) && this.platformState(route, model) === undefined
        ? [candidate]
        : [];
    const mayLead =
      keys[0]?.source === "own_byok" && !health.hasOutage(route.provider.id, model.id);
    return mayLead
      ? { first: rested, later: [...platform, ...resting] }
      : { first: [], later: [...rested, ...platform, ...resting] };
  }

  /** Returns the reason why the platform's credential is not used beside an own key. */
  private platformState(route: UpstreamRoute, model: CatalogModel): BarringState | undefined {
    return this.hasOwnKey(route, model)
      ? barring(this.services.health.stateOf(route.provider.id))
      : undefined;
  }

  private keysFor(route: UpstreamRoute, model: CatalogModel): readonly KeyUse[] {
    if (model.comingSoon || !isSendable(route, model, sendableDialects)) return [];
    const keys = this.keysAt(route);
    // A donor's spending has to be bounded, which needs a price.
    return keys[0]?.source === "pool" && route.price === undefined ? [] : keys;
  }

  private keysAt({ provider }: UpstreamRoute): readonly KeyUse[] {
    let uses = this.uses.get(provider.id);
    if (uses === undefined) this.uses.set(provider.id, (uses = this.lookUp(provider)));
    return uses;
  }

  private lookUp(provider: UpstreamRoute["provider"]): readonly KeyUse[] {
    const { providerKeys } = this.services;
    if (providerKeys.hasOwn(this.workspaceId, provider.id)) {
      return providerKeys
        .ownKeys(this.workspaceId, provider.id)
        .slice(0, ownKeysMax)
        .map((key) => ({ key, source: "own_byok" }));
    }
    // Prompts that must not be retained are not sent through a donor's account.
    if (
      hasCredential(provider) ||
      this.preferences.zdr === true ||
      this.preferences.denyDataCollection === true
    )
      return [];
    const pooled = providerKeys.pooledKeys(provider.id, { except: this.workspaceId });
    return pooled.slice(0, pooledKeysMax).map((key) => ({ key, source: "pool" }));
  }
}

/** Groups neighbouring candidates of the same model, in their order. */
function runsOfModels<T extends Pick<Candidate, "model">>(candidates: readonly T[]): T[][] {
  const runs: T[][] = [];
  let run: T[] = [];
  let of: Candidate["model"] | undefined;
  for (const candidate of candidates) {
    if (candidate.model !== of) {
      ({ model: of } = candidate);
      runs.push((run = []));
    }
    run.push(candidate);
  }
  return runs;
}

/**
 * Takes the candidate's provider key for the request and opens it. Returns undefined where the
 * key's quota is used up, or where another key at the same provider met a failure that no other key
 * avoids.
 */
export function takeKey(execution: Execution, candidate: Candidate): Candidate | undefined {
  const { deps, call, failed, inputTokens, notCalled } = execution;
  const { credential, route, model } = candidate;
  // An answer that has come back in a batch is sent nowhere.
  if (credential === undefined || call.leg?.kind === "return") return candidate;
  const isHopeless = failed.some(
    ({ record, failure }) =>
      record.provider === route.provider.id &&
      record.model === model.id &&
      !isMendedByAnotherKey(failure),
  );
  if (isHopeless) return undefined;
  if (
    deps.providerKeys.take(
      call.generationId,
      credential,
      listCeiling(candidate, { inputTokens, ...call.requirements }),
    )
  ) {
    return deps.openedRoutes.open(candidate);
  }
  const message = `Nothing is left of the quota of the provider key for ${route.provider.name}.`;
  notCalled.push(new GatewayError("no_upstream", message, { param: "model" }));
  return undefined;
}

/**
 * Records a failure with the key that was sent, gives the key back, and returns the failure as it
 * is judged for provider keys.
 */
export function noteKeyFailure(
  { deps, call }: Execution,
  {
    candidate: { credential },
    failure,
    cancelled,
  }: { candidate: Candidate; failure: AttemptFailure; cancelled: boolean },
): AttemptFailure {
  if (credential === undefined) return failure;
  deps.providerKeys.release(call.generationId);
  const verdict = cancelled ? undefined : verdictOf(failure);
  if (verdict !== undefined) deps.providerKeys.note(credential, verdict);
  return asKeyFailure(failure, credential.source);
}

/**
 * Records that a provider key served; returns false where the candidate has none, so that the
 * outcome counts for the platform's own health.
 */
export function noteKeyServed(deps: InferenceDependencies, { credential }: Candidate): boolean {
  if (credential === undefined) return false;
  deps.providerKeys.note(credential, { kind: "served" });
  return true;
}

/**
 * Statuses that vendors answer with when an account has no funds: OpenAI 429, Anthropic 400, others
 * 402 and 403.
 */
const billingStatuses: ReadonlySet<number | null> = new Set([400, 403, 429]);
const billingCode = /insufficient_quota|insufficient_(?:funds|credits?|balance)|billing/i;
/**
 * Matches texts about missing funds. Google's texts for a rate limit mention both quota and
 * billing, so neither word alone counts.
 */
const billingWords =
  /credit balance|insufficient (?:credit|balance|fund)|billing (?:hard limit|is not active|has been)|payment (?:required|method)/i;

/** Google and xAI answer 400 to a key that does not exist. */
const credentialStatuses: ReadonlySet<number | null> = new Set([400, 403]);
const credentialCode = /api_key_invalid|invalid_api_key/i;
const credentialWords =
  /api key (?:not valid|is invalid|expired|not found)|(?:incorrect|invalid|expired) api key/i;

/**
 * Returns why a provider refused the key that was sent; undefined where it failed for another
 * reason.
 */
export function refusalOf({
  upstreamStatus: status,
  upstreamMessage,
  upstreamCode,
}: AttemptFailure): "billing" | "credential" | undefined {
  const says = (words: RegExp, codes: RegExp): boolean =>
    words.test(upstreamMessage ?? "") || codes.test(upstreamCode ?? "");
  if (status === 402 || (billingStatuses.has(status) && says(billingWords, billingCode)))
    return "billing";
  if (status === 401 || (credentialStatuses.has(status) && says(credentialWords, credentialCode)))
    return "credential";
  return undefined;
}

/** Returns what a failure says about the key that was sent; undefined where it says nothing. */
export function verdictOf(failure: AttemptFailure): KeyVerdict | undefined {
  if (refusalOf(failure) !== undefined) return { kind: "refused", reason: failure.upstreamMessage };
  return failure.reason === "rate_limited"
    ? { kind: "limited", retryAfterSeconds: failure.retryAfterSeconds }
    : undefined;
}

/**
 * Judges a failure where a provider key was sent: a key's problem is a reason to try the next
 * candidate, and no outage of the provider. The provider's words about a donated key are withheld,
 * since they concern its owner alone.
 */
export function asKeyFailure(failure: AttemptFailure, source: KeyUse["source"]): AttemptFailure {
  const refusal = refusalOf(failure);
  const isPooled = source === "pool";
  const words =
    isPooled && verdictOf(failure) !== undefined
      ? { upstreamMessage: null, upstreamCode: null, upstreamError: null }
      : {};
  if (refusal === undefined) return { ...failure, ...words, outage: false };
  const { retryAfterSeconds: _, ...rest } = failure;
  const code =
    refusal === "credential" ? "upstream_401" : isPooled ? "upstream_error" : "upstream_402";
  return { ...rest, ...words, code, reason: "credential_error", failover: true, outage: false };
}

/**
 * Returns whether another key at the same provider may succeed: models and limits differ between
 * accounts.
 */
export const isMendedByAnotherKey = ({ reason }: AttemptFailure): boolean =>
  reason === "credential_error" || reason === "rate_limited" || reason === "model_unavailable";

/** Milliseconds that an opened key stays in memory after its last use. */
const keptMs = 60_000;

interface OpenedKey {
  sealed: string;
  secret: string;
  usedMs: number;
  /** The catalog's routes, each mapped to its copy with the key. */
  routes: Map<UpstreamRoute, UpstreamRoute>;
}

/**
 * Routes with callers' own keys in place of the platform's credential. A key is opened when a
 * request is about to be sent with it, and forgotten a minute after its last use, so that idle keys
 * are in memory only sealed.
 */
export class OpenedRoutes {
  private readonly options: {
    providerKeys: ProviderKeys;
    clock: Clock;
    onError(error: unknown): void;
  };
  private readonly keys = new Map<string, OpenedKey>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: OpenedRoutes["options"]) {
    this.options = options;
  }

  /**
   * Returns the candidate with its key opened; undefined where the key cannot be opened, which is
   * logged.
   */
  open(candidate: Candidate): Candidate | undefined {
    if (candidate.credential === undefined) return candidate;
    const { key, source } = candidate.credential;
    // Response headers are cached by route, and they tell the owner's requests from those of
    // others.
    const name = `${source} ${key.id}`;
    let opened = this.keys.get(name);
    if (opened?.sealed !== key.sealed) {
      try {
        opened = {
          sealed: key.sealed,
          secret: this.options.providerKeys.secretOf(key),
          usedMs: 0,
          routes: new Map(),
        };
      } catch (error) {
        this.options.onError(error);
        return undefined;
      }
      this.keys.set(name, opened);
      this.timer ??= setInterval(() => this.forget(), keptMs / 2);
    }
    opened.usedMs = this.options.clock.monotonicMs();
    return { ...candidate, route: routeWith(opened, candidate.route), reason: candidate.reason };
  }

  /** Forgets every key that was not used for a minute. */
  forget(): void {
    const oldestMs = this.options.clock.monotonicMs() - keptMs;
    for (const [name, { usedMs }] of this.keys) if (usedMs <= oldestMs) this.keys.delete(name);
    if (this.keys.size === 0) this.stop();
  }

  /** Stops the timer. */
  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }
}

function routeWith({ routes, secret }: OpenedKey, route: UpstreamRoute): UpstreamRoute {
  let opened = routes.get(route);
  if (opened === undefined)
    routes.set(route, (opened = { ...route, provider: withKey(route.provider, secret) }));
  return opened;
}

/** Returns a provider with a key in place of the platform's credential. */
function withKey({ signing: _, ...provider }: Provider, apiKey: string): Provider {
  return { ...provider, apiKey };
}

/** Returns whether the provider's retry budget is spent, so that retries do not worsen an outage. */
export function isHeldBack(execution: Execution, { route, model, credential }: Candidate): boolean {
  const backend = route.provider.id;
  // A caller's own key uses the caller's own account at the provider, so the platform's retry
  // budget does not apply.
  if (credential !== undefined || execution.deps.health.mayRetry(backend)) return false;
  execution.heldBack.push({ provider: backend, model: model.id, rule: "retry_budget" });
  return true;
}
