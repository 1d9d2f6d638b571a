import { outputCapNames } from "../../platform/kernel/models/preset-settings.ts";
import {
  heldMedia,
  type MediaUse,
  chargeFor,
  effectivePrice,
  type PriceVector,
} from "../../billing/ledger/price.ts";
import { nanoFromPico } from "../../platform/kernel/money.ts";
import type { KeyUse } from "../../byok/provider-key-usage.ts";
import {
  hasCredential,
  isFreeRoute,
  type CatalogModel,
  type UpstreamRoute,
} from "../catalog/model.ts";
import type { HealthWindows, ProviderWindows } from "./health/health-windows.ts";
import type { ProviderFilter } from "./provider-preferences.ts";
import type { RequestNeeds } from "../canonical/request.ts";
import type { Affinity } from "./affinity.ts";
export type { PlannedCandidate };

/** A way to serve a request: a model at a provider, with the reason for its place in the order. */
export interface Candidate {
  model: CatalogModel;
  route: UpstreamRoute;
  /**
   * 0 for the requested model, then its fallbacks in order. All members of a router have the
   * router's index.
   */
  modelIndex: number;
  /** The router that this is a member of; undefined where the model itself was named. */
  router: CatalogModel | undefined;
  /**
   * Pico-USD for one input and one output token at the request's size. Routes are compared by it.
   */
  price: number;
  reason: string;
  /** The reason for the member's place in its router's order; empty where there is no router. */
  memberReason: string;
  /** The provider key that it is tried with; absent for the platform's own credential. */
  credential?: KeyUse;
}

/** A route that cannot serve, and the rule that excluded it. */
export interface LeftOut {
  provider: string;
  model: string;
  rule: string;
}

/** The facts of a request that routing looks at. */
export interface RoutingRequest {
  /** Catalog models or routers, in the order in which they may serve. */
  models: readonly CatalogModel[];
  preferences: ProviderFilter;
  needsTools: boolean;
  /** The names of the parameters that the request sets. */
  parameters: readonly string[];
  /** The output cap that a route must allow. */
  maxOutputTokens: number | undefined;
  /** The output cap that a route should allow; routes that do not come last. */
  wishedOutputTokens?: number | undefined;
  /**
   * Parameters that a route should support; routes that do not declare them come last (reasoning
   * rule 6).
   */
  wishedParameters?: readonly string[] | undefined;
  /**
   * The estimated input tokens. They decide which price tier applies, and which members of a router
   * have a large enough window.
   */
  inputTokens?: number | undefined;
  /** Returns what else the request needs; called only where a router has to choose. */
  needs?: (() => RequestNeeds) | undefined;
  /** Lower-case ids of the models that the key may use; absent or null allows every model. */
  allowedModels?: readonly string[] | null | undefined;
  /** What ties the request to one provider. */
  affinity?: Affinity | undefined;
  /** Returns the pictures and sound of the request, by which prices of routes are compared. */
  mediaAt?: ((route: UpstreamRoute) => MediaUse) | undefined;
}

/**
 * Returns the pico-USD for one input and one output token at this input size; infinite where no
 * price is known.
 */
export function comparablePrice({ price }: UpstreamRoute, inputTokens = 0): number {
  if (price === undefined) return Number.POSITIVE_INFINITY;
  return comparable(price.tiers === undefined ? price.base : effectivePrice(price, inputTokens));
}

/** Returns the pico-USD of a request's pictures and sound; infinite where no price is known. */
function mediaPrice(route: UpstreamRoute, mediaAt: (route: UpstreamRoute) => MediaUse): number {
  const { price } = route;
  return price === undefined
    ? Number.POSITIVE_INFINITY
    : Number(heldMedia(price, { vector: price.base, use: mediaAt(route) }));
}

/**
 * Cached because planning compares prices for every request. A price vector lives as long as its
 * catalog.
 */
const comparablePrices = new WeakMap<PriceVector, number>();

function comparable(vector: PriceVector): number {
  let price = comparablePrices.get(vector);
  if (price === undefined)
    comparablePrices.set(vector, (price = Number(vector.inputTokens + vector.outputTokens)));
  return price;
}

/**
 * Returns the expected cost of a request on a candidate, in nano-USD; undefined where no price is
 * known.
 */
export function estimatedCostNano(
  { model, route, credential }: Candidate,
  {
    mediaAt,
    ...expected
  }: {
    inputTokens: number;
    outputTokens: number;
    mediaAt?: ((route: UpstreamRoute) => MediaUse) | undefined;
  },
): bigint | undefined {
  if (credential !== undefined || isFreeRoute(model, route)) return 0n;
  const { price } = route;
  if (price === undefined) return undefined;
  const nano = chargeFor(price, expected);
  if (mediaAt === undefined) return nano;
  return nano + nanoFromPico(heldMedia(price, { vector: price.base, use: mediaAt(route) }));
}

/** The fields that all candidates of one requested model or router share. */
export type Requested = Pick<Candidate, "modelIndex" | "router"> &
  Pick<RoutingRequest, "inputTokens" | "mediaAt">;

/**
 * A candidate while its plan is being made. The explanations of its place are shared texts, which
 * are joined only when `reason` is read; for most candidates it never is. A copy by spread has to
 * name `reason`.
 */
class PlannedCandidate implements Candidate {
  readonly model: CatalogModel;
  readonly route: UpstreamRoute;
  readonly modelIndex: number;
  readonly router: CatalogModel | undefined;
  readonly price: number;
  memberReason = "";
  /** The reason for its place among the routes that it was compared with. */
  place = "only route";
  /** A reason that takes precedence over its place. */
  note = "";
  /** The soft preference that it does not meet. */
  missed: string | undefined;
  /**
   * The value that it is sorted by, lowest first: the price, unless the request sorts by something
   * else.
   */
  cost: number;

  constructor(
    readonly row: RouteRow,
    { modelIndex, router, inputTokens, mediaAt }: Requested,
  ) {
    this.model = row.model;
    this.route = row.route;
    this.modelIndex = modelIndex;
    this.router = router;
    this.price =
      mediaAt === undefined
        ? (row.price ?? comparablePrice(row.route, inputTokens))
        : mediaPrice(row.route, mediaAt);
    this.cost = this.price;
  }

  get reason(): string {
    const reason = this.memberReason === "" ? this.place : `${this.memberReason}; ${this.place}`;
    return this.note === "" ? reason : `${this.note}; ${reason}`;
  }
}

/** Returns a candidate for each route, for one request. */
export const candidatesAt = (rows: readonly RouteRow[], requested: Requested): PlannedCandidate[] =>
  rows.map((row) => new PlannedCandidate(row, requested));

/** The facts about a route that do not depend on a request. */
export interface RouteRow {
  model: CatalogModel;
  route: UpstreamRoute;
  provider: ProviderWindows;
  /** The price that routes are compared by; undefined where it depends on the size of the input. */
  price: number | undefined;
  isServable: boolean;
  takesTools: boolean;
  /** The provider's slug and display name, in lower case. */
  names: readonly [slug: string, displayName: string];
}

/** The facts about a model's routes, in the catalog's order. */
export interface ModelRows {
  all: readonly RouteRow[];
  /** The routes that this process can call with a platform credential. */
  servable: readonly RouteRow[];
  /**
   * The other routes. They are the majority in most gateways, since the catalog knows many more
   * providers than an operator has keys for.
   */
  notServable: readonly LeftOut[];
}

/** The sources that rows are built from. */
export interface RowSources {
  health: HealthWindows;
  /**
   * Returns whether this process can call a route with a platform credential. The answer is
   * constant while the route is in a catalog.
   */
  isServable(route: UpstreamRoute, model: CatalogModel): boolean;
}

/** The rule that is reported for routes that no credential serves, for want of one. */
export const notServable = "the gateway has no key for it";

/** The same where the gateway has a key, which cannot be charged for or has no address. */
const notPriced = "it has no price, so that the gateway's key does not serve it";
const notReachable = "the gateway's key does not serve it";

/** All rules of routes that no credential serves. */
export const unservedRules: ReadonlySet<string> = new Set([notServable, notPriced, notReachable]);

function unservedRule({ route, model }: RouteRow): string {
  if (!hasCredential(route.provider)) return notServable;
  return route.price === undefined && model.surface !== "decisions" ? notPriced : notReachable;
}

/** Cached by model: models are never changed in place, and live as long as their catalog. */
const knownRows = new WeakMap<CatalogModel, ModelRows & RowSources>();

/** Returns the routes of a model as planning sees them, computed once for each catalog. */
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

/** Returns the entry for a row that cannot be served. */
export const leftOutOf = (row: RouteRow): LeftOut => ({
  provider: row.provider.id,
  model: row.model.id,
  rule: unservedRule(row),
});

/**
 * Returns whether a name in `order`, `only` or `ignore` is the provider's slug or display name, in
 * any case.
 */
export function namesProvider(
  name: string,
  { provider, names: [slug, displayName] }: RouteRow,
): boolean {
  if (name === provider.id) return true;
  const wanted = name.toLowerCase();
  return wanted === slug || wanted === displayName;
}

const [outputCap, formerOutputCap] = outputCapNames;

/**
 * Parameters with two names, such as OpenAI's current and former ones. A route that declares one of
 * them accepts the other.
 */
const otherName: Readonly<Record<string, string>> = {
  [outputCap]: formerOutputCap,
  [formerOutputCap]: outputCap,
  reasoning: "reasoning_effort",
  reasoning_effort: "reasoning",
};

/**
 * Returns whether a candidate supports a required parameter: the route's list decides, or else the
 * model's (contract: reasoning rule 6). Where neither has a list, the parameter is permitted.
 */
export const supports = (
  { model, route }: Pick<Candidate, "model" | "route">,
  parameter: string,
): boolean => isDeclared(route.supportedParameters ?? model.supportedParameters, parameter);

/**
 * Returns whether a route may be sent a parameter. A route without a list of its own permits
 * everything, even if the model has one.
 */
export const permits = ({ route }: Pick<Candidate, "route">, parameter: string): boolean =>
  isDeclared(route.supportedParameters, parameter);

function isDeclared(declared: readonly string[] | undefined, parameter: string): boolean {
  if (declared === undefined || declared.length === 0 || declared.includes(parameter)) return true;
  const other = otherName[parameter];
  return other !== undefined && declared.includes(other);
}

/**
 * The context window, in tokens, that is assumed where the catalog names none: that of the largest
 * models.
 */
const windowTokensDefault = 2_000_000;

/** Returns how many tokens a candidate can take in and generate in one request. */
export const windowTokensOf = ({ route, model }: Pick<Candidate, "model" | "route">): number =>
  route.contextLength || model.contextLength || windowTokensDefault;
