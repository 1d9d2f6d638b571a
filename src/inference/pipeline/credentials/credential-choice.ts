import type { KeyUse } from "../../../byok/provider-key-usage.ts";
import {
  isSendable,
  hasCredential,
  type CatalogModel,
  type UpstreamRoute,
} from "../../catalog/model.ts";
import { sendableDialects } from "../../providers/endpoint.ts";
import type { Candidate, LeftOut } from "../../routing/candidate.ts";
import { barring, type BarringState } from "../../routing/health/health-windows.ts";
import { balancesLoad } from "../../routing/order-policies.ts";
import type { InferenceDependencies } from "../execution.ts";
import type { ProviderFilter } from "../../routing/provider-preferences.ts";

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
