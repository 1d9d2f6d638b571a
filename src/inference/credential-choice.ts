import type { KeyUse } from "../account/byok/provider-key-usage.ts";
import { isSendable, hasCredential } from "./catalog/reachability.ts";
import type { CatalogModel, UpstreamRoute } from "./catalog/model.ts";
import type { InferenceDependencies } from "./dependencies.ts";
import { sendableDialects } from "./providers/endpoint-path.ts";
import type { Candidate, LeftOut, ProviderFilter } from "./routing/candidate.ts";
import { balancesLoad } from "./routing/order-policies.ts";
import { barring, type BarringState } from "./routing/provider-states.ts";
import { runsOfModels } from "./routing/runs-of-models.ts";

/** Keys of one provider that a request tries at most. */
const ownKeysMax = 8;
const pooledKeysMax = 3;

type Services = Pick<InferenceDependencies, "providerKeys" | "isServable" | "health">;

/**
 * Whose credentials a request may go with: its workspace's own keys, the platform's, and where neither exists
 * the donated ones (docs/decisions/0024). Made for one request, since keys come and go.
 */
export class CredentialChoice {
  private readonly services: Services;
  private readonly workspaceId: string;
  private readonly preferences: ProviderFilter;
  private readonly uses = new Map<string, readonly KeyUse[]>();

  /** The choice for a request; undefined where the platform's credentials are all there are. */
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

  /** Whether any of the credentials serves a route. */
  readonly isServable = (route: UpstreamRoute, model: CatalogModel): boolean =>
    this.services.isServable(route, model) || this.hasKey(route, model);

  /** Whether a provider key serves a route. */
  readonly hasKey = (route: UpstreamRoute, model: CatalogModel): boolean =>
    this.keysFor(route, model).length > 0;

  /** Whether an own key of the caller's workspace serves a route. */
  readonly hasOwnKey = (route: UpstreamRoute, model: CatalogModel): boolean =>
    this.keysFor(route, model)[0]?.source === "own_byok";

  /** Candidates that the platform's credential would serve, too, were the provider well or within its budget. */
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
   * The candidates with each credential that may be tried, in order: of one model those with an own key come first,
   * unless the request orders providers itself; of one provider the own keys, then the platform's credential.
   */
  candidates(planned: readonly Candidate[]): Candidate[] {
    const expanded = runsOfModels(planned).flatMap((run) => {
      const each = run.map((candidate) => this.withCredentials(candidate));
      if (!balancesLoad(this.preferences))
        return each.flatMap(({ first, then }) => [...first, ...then]);
      return [...each.flatMap(({ first }) => first), ...each.flatMap(({ then }) => then)];
    });
    return this.preferences.allowFallbacks ? expanded : expanded.slice(0, 1);
  }

  /** Why a provider that has an own key serves nothing with it now; undefined where it has none. */
  ruleFor(providerId: string): string | undefined {
    const { providerKeys } = this.services;
    return providerKeys.hasOwn(this.workspaceId, providerId)
      ? "the own provider key is disabled or its quota is used up"
      : undefined;
  }

  /** What goes before others' routes to the same model, and what keeps the route's own place. */
  private withCredentials(candidate: Candidate): { first: Candidate[]; then: Candidate[] } {
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
      ? { first: rested, then: [...platform, ...resting] }
      : { first: [], then: [...rested, ...platform, ...resting] };
  }

  /** Why the platform's credential is not used beside an own key. */
  private platformState(route: UpstreamRoute, model: CatalogModel): BarringState | undefined {
    return this.hasOwnKey(route, model)
      ? barring(this.services.health.stateOf(route.provider.id))
      : undefined;
  }

  private keysFor(route: UpstreamRoute, model: CatalogModel): readonly KeyUse[] {
    if (model.comingSoon || !isSendable(route, model, sendableDialects)) return [];
    const keys = this.keysAt(route);
    // What somebody else pays has to be bounded, and without a price nobody knows by how much.
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
    // Prompts that nobody may keep are not sent through a stranger's account.
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
