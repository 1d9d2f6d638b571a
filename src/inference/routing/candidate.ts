import { chargeFor, effectivePrice, type PriceVector } from "../../billing/ledger/price.ts";
import type { KeyUse } from "../../byok/provider-key-usage.ts";
import { isFreeRoute, type CatalogModel, type UpstreamRoute } from "../catalog/model.ts";
import type { Cutoff, HealthWindows, ProviderWindows } from "./health-windows.ts";
import type { SortKey } from "./provider-preferences.ts";
import type { RequestNeeds } from "../canonical/request.ts";
import type { Session } from "./sticky-sessions.ts";

/**
 * One way to serve a request: a model on a provider, with the reason for its place in the order.
 */
export interface Candidate {
  model: CatalogModel;
  route: UpstreamRoute;
  /**
   * 0 for the model that was asked for, then its fallbacks in order; all members of a router have
   * the router's.
   */
  modelIndex: number;
  /** The router whose member this is; undefined where the model itself was named. */
  router: CatalogModel | undefined;
  /**
   * Pico-USD for one input and one output token at the request's size: what "price" means where
   * routes are compared.
   */
  price: number;
  reason: string;
  /** Why the member stands where it does in its router's order; empty where there is no router. */
  memberReason: string;
  /** The provider key that it is tried with; absent where it is the platform's own credential. */
  credential?: KeyUse;
}

/** A route that a rule took out, and which rule. */
export interface LeftOut {
  provider: string;
  model: string;
  rule: string;
}

/** The facts of a request that routing looks at. */
export interface RoutingRequest {
  /** Catalog models, or routers, in the order in which they may serve. */
  models: readonly CatalogModel[];
  preferences: ProviderFilter;
  needsTools: boolean;
  /** Names of the parameters that the request sets. */
  parameters: readonly string[];
  /** The output cap that a route has to allow. */
  maxOutputTokens: number | undefined;
  /** The output cap that a route had better allow: one that does not comes last. */
  wishedOutputTokens?: number | undefined;
  /**
   * Parameters that a route had better support: one that does not declare them comes last
   * (reasoning rule 6).
   */
  wishedParameters?: readonly string[] | undefined;
  /**
   * The estimate of the input; decides which price tier counts, and which members of a router are
   * long enough.
   */
  inputTokens?: number | undefined;
  /** What else the request needs; asked for only where a router has to choose. */
  needs?: (() => RequestNeeds) | undefined;
  /** Lower-case ids that the key may use; absent or null means every model. */
  allowedModels?: readonly string[] | null | undefined;
  /** The session that the request belongs to. */
  session?: Session | undefined;
}

/** Preferences after the request's suffix and headers were merged in. */
export interface ProviderFilter {
  order?: readonly string[] | undefined;
  only?: readonly string[] | undefined;
  ignore?: readonly string[] | undefined;
  /** Providers that the caller's workspace or key never sends anything to. */
  blocked?: readonly string[] | undefined;
  allowFallbacks: boolean;
  sort?: SortKey | undefined;
  /** `none` sorts the routes of all models together. */
  partition: "model" | "none";
  maxPromptPicoUsd?: bigint | undefined;
  maxCompletionPicoUsd?: bigint | undefined;
  quantizations?: readonly string[] | undefined;
  zdr?: boolean | undefined;
  denyDataCollection?: boolean | undefined;
  distillableText?: boolean | undefined;
  requireParameters?: boolean | undefined;
  requireParams?: readonly string[] | undefined;
  minContext?: number | undefined;
  /** Tokens a second; a route that misses one moves to the end. */
  minThroughput?: readonly Cutoff[] | undefined;
  /** Milliseconds to the first token; a route that misses one moves to the end. */
  maxLatencyMs?: readonly Cutoff[] | undefined;
}

/**
 * Pico-USD for one input and one output token of a request with so many input tokens; infinite
 * where no price is known.
 */
export function comparablePrice({ price }: UpstreamRoute, inputTokens = 0): number {
  if (price === undefined) return Number.POSITIVE_INFINITY;
  return comparable(price.tiers === undefined ? price.base : effectivePrice(price, inputTokens));
}

/** Vectors live as long as a catalog, and planning compares them for every request. */
const comparablePrices = new WeakMap<PriceVector, number>();

function comparable(vector: PriceVector): number {
  let price = comparablePrices.get(vector);
  if (price === undefined)
    comparablePrices.set(vector, (price = Number(vector.inputTokens + vector.outputTokens)));
  return price;
}

/**
 * What a request is expected to cost on a candidate, in nano-USD; undefined where no price is
 * known.
 */
export function estimatedCostNano(
  { model, route, credential }: Candidate,
  expected: { inputTokens: number; outputTokens: number },
): bigint | undefined {
  if (credential !== undefined || isFreeRoute(model, route)) return 0n;
  return route.price === undefined ? undefined : chargeFor(route.price, expected);
}

/** What all candidates of one requested model, or router, have in common. */
export type Requested = Pick<Candidate, "modelIndex" | "router"> &
  Pick<RoutingRequest, "inputTokens">;

/**
 * A candidate of a plan under way. The explanations of its place are texts that many candidates
 * share; they are joined when the reason is read, which for most candidates never
 * happens. A copy by spread has to name `reason`.
 */
export class PlannedCandidate implements Candidate {
  readonly row: RouteRow;
  readonly model: CatalogModel;
  readonly route: UpstreamRoute;
  readonly modelIndex: number;
  readonly router: CatalogModel | undefined;
  readonly price: number;
  memberReason = "";
  /** Why it stands where it does among the routes that it was compared with. */
  place = "only route";
  /** What matters more than its place. */
  note = "";
  /** The soft preference that it misses. */
  missed: string | undefined;
  /** What it is sorted by, the lowest first: the price, unless the request says otherwise. */
  cost: number;

  constructor(row: RouteRow, { modelIndex, router, inputTokens }: Requested) {
    this.row = row;
    this.model = row.model;
    this.route = row.route;
    this.modelIndex = modelIndex;
    this.router = router;
    this.price = row.price ?? comparablePrice(row.route, inputTokens);
    this.cost = this.price;
  }

  get reason(): string {
    const reason = this.memberReason === "" ? this.place : `${this.memberReason}; ${this.place}`;
    return this.note === "" ? reason : `${this.note}; ${reason}`;
  }
}

/** What planning knows of a route before any request. */
export interface RouteRow {
  model: CatalogModel;
  route: UpstreamRoute;
  provider: ProviderWindows;
  /** By which routes are compared; undefined where it depends on the size of the input. */
  price: number | undefined;
  isServable: boolean;
  takesTools: boolean;
  /** The provider's slug and display name in lower case. */
  names: readonly [slug: string, displayName: string];
}

/** What planning knows of a model's routes, in the catalog's order. */
export interface ModelRows {
  all: readonly RouteRow[];
  /** Those that this process can call with a credential of its own. */
  servable: readonly RouteRow[];
  /**
   * The others. In most gateways they are the most, since the catalog knows many more providers
   * than an operator has keys of.
   */
  notServable: readonly LeftOut[];
}

/** Where rows come from. */
export interface RowSources {
  health: HealthWindows;
  /**
   * Whether this process can call a route with a credential of its own; the same for as long as the
   * route is in a catalog.
   */
  isServable(route: UpstreamRoute, model: CatalogModel): boolean;
}

/** What is said of routes that no credential serves. */
export const notServable = "not servable with a platform credential";

/** Models are never changed in place, and live as long as their catalog. */
const knownRows = new WeakMap<CatalogModel, ModelRows & RowSources>();

/** The routes of a model as planning sees them: worked out once a catalog. */
export function rowsOf(model: CatalogModel, sources: RowSources): ModelRows {
  const known = knownRows.get(model);
  if (
    known !== undefined &&
    known.health === sources.health &&
    known.isServable === sources.isServable
  )
    return known;
  const { health, isServable } = sources;
  const all = model.routes.map((route) => rowOf(route, { model, health, isServable }));
  const others = all.filter((row) => !row.isServable);
  const rows = {
    health,
    isServable,
    all,
    servable: all.filter((row) => row.isServable),
    notServable: others.map(leftOutOf),
  };
  knownRows.set(model, rows);
  return rows;
}

function rowOf(
  route: UpstreamRoute,
  { model, health, isServable }: RowSources & { model: CatalogModel },
): RouteRow {
  const { id, name } = route.provider;
  return {
    model,
    route,
    provider: health.windowsOf(id),
    price: route.price?.tiers === undefined ? comparablePrice(route) : undefined,
    isServable: isServable(route, model),
    takesTools: permits({ route }, "tools"),
    names: [id.toLowerCase(), name.toLowerCase()],
  };
}

/** The entry for a row that cannot be served. */
export const leftOutOf = ({ provider, model }: RouteRow): LeftOut => ({
  provider: provider.id,
  model: model.id,
  rule: notServable,
});

/**
 * Whether a name in `order`, `only` or `ignore` means the provider of a route: its slug or its
 * display name, in any case.
 */
export function namesProvider(
  name: string,
  { provider, names: [slug, displayName] }: RouteRow,
): boolean {
  if (name === provider.id) return true;
  const wanted = name.toLowerCase();
  return wanted === slug || wanted === displayName;
}

/**
 * Parameters that have two names, such as today's and yesterday's of OpenAI: a route that declares
 * one takes what the other says.
 */
const otherName: Readonly<Record<string, string>> = {
  max_tokens: "max_completion_tokens",
  max_completion_tokens: "max_tokens",
  reasoning: "reasoning_effort",
  reasoning_effort: "reasoning",
};

/**
 * Whether a candidate keeps the strict demand for a parameter: its route's list decides, and where
 * there is none the model's (contract: reasoning rule 6). What neither declares is permitted.
 */
export const supports = (
  { model, route }: Pick<Candidate, "model" | "route">,
  parameter: string,
): boolean => isDeclared(route.supportedParameters ?? model.supportedParameters, parameter);

/**
 * Whether a route may be sent a parameter; one without a list of its own is permissive, even if
 * others declare for the model.
 */
export const permits = ({ route }: Pick<Candidate, "route">, parameter: string): boolean =>
  isDeclared(route.supportedParameters, parameter);

function isDeclared(declared: readonly string[] | undefined, parameter: string): boolean {
  if (declared === undefined || declared.length === 0 || declared.includes(parameter)) return true;
  const other = otherName[parameter];
  return other !== undefined && declared.includes(other);
}
