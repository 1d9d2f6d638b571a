import type { AliasTarget } from "../../platform/kernel/models/model-alias.ts";
import type { PriceRow, PriceVector } from "../../billing/ledger/price.ts";
import type { ReasoningLevels } from "../canonical/reasoning.ts";
import type {
  CredentialHeader,
  DataPolicy,
  ProviderDeviations,
  RefusedParameters,
  SigningCredential,
  Surface,
  UpstreamDialect,
} from "../providers/provider-definition.ts";

/** An object type whose possibly undefined members became optional ones. */
type Present<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Returns the object without its undefined members, so that absent members stay absent. */
export function present<T extends object>(value: T): Present<T> {
  const set: Partial<T> = {};
  // A plain loop: a start creates some five thousand of these, and lists of entries cost five times
  // as much.
  for (const key in value) if (value[key] !== undefined) set[key] = value[key];
  return set as unknown as Present<T>;
}

export type { ReasoningLevels };
export type { CredentialHeader, DataPolicy, ProviderDeviations, Surface, UpstreamDialect };

/** Milliseconds that a provider may take for each step of an answer. */
export interface UpstreamTimeouts {
  connectMs: number;
  firstTokenMs: number;
  idleMs: number;
  totalMs: number;
  /**
   * The time in which a whole (not streamed) answer has to begin; absent means `totalMs`. A whole
   * answer begins when it is finished, so the default of `firstTokenMs` would cut long ones.
   */
  wholeAnswerMs?: number;
}

/** A provider as it can be called: its address, dialects and credential. */
export interface Provider {
  /** The slug; `provider.order`, `only` and `ignore` match it, or `name`. */
  id: string;
  name: string;
  description?: string;
  website?: string;
  /**
   * Without a trailing slash, such as `https://api.openai.com/v1`. Absent while its variables are
   * unset.
   */
  baseUrl?: string;
  /** Addresses of surfaces that are served elsewhere than at `baseUrl`. */
  surfaceBaseUrls?: Partial<Record<Surface, string>>;
  /** Addresses of chat dialects that are served elsewhere than at `baseUrl`. */
  dialectBaseUrls?: Partial<Record<UpstreamDialect, string>>;
  /** The dialect by surface; a surface that is absent is not offered. */
  dialects: Partial<Record<Surface, UpstreamDialect>>;
  /** The header of the credential, such as `authorization` with prefix `Bearer `. */
  credentialHeader: CredentialHeader;
  /**
   * The platform's own credential; absent means BYOK only. Local servers without one have an empty
   * string.
   */
  apiKey?: string;
  /** The platform's own credential where it signs requests; absent beside an `apiKey`. */
  signing?: SigningCredential;
  /** Further headers that the vendor requires. */
  headers?: Readonly<Record<string, string>>;
  dataPolicy: DataPolicy;
  timeouts: UpstreamTimeouts;
  /**
   * The proxy for requests to it, or `none`; absent follows the environment's. May contain
   * credentials.
   */
  proxy?: string;
  /** Routes of its own API that callers may use as they are; absent means none. */
  passthrough?: readonly PassthroughRoute[];
  /** Named deviations from the dialect. */
  deviations: ProviderDeviations;
  /** Its API for batches; absent where it has none. */
  batches?: ProviderBatches;
  /** The vendor whose API for files it has; absent where contents are always sent. */
  filesApi?: "openai" | "anthropic" | "google";
  /** Whether it is the built-in simulated provider. */
  simulated?: boolean;
  /** Whether it is a server on the operator's own machines, which needs no credential. */
  local?: boolean;
}

/** A provider's API for batches. */
interface ProviderBatches {
  /** The vendor whose API it is. */
  api: "openai" | "anthropic" | "google";
  /** Whether batches cost half of what a model's price says, unless that states a price of its own. */
  halvesPrices: boolean;
}

/** A route of a provider's own API, and what a request to it costs. */
export interface PassthroughRoute {
  /** A path of the provider's host, such as `/v1/special`; one that ends in `/*` has all below it. */
  path: string;
  /** Absent allows every method. */
  methods?: readonly string[];
  priceNanoUsd: bigint;
}

/** A further chat dialect in which a provider serves a model. */
interface SecondDialect {
  dialect: UpstreamDialect;
  /** Whether tools are offered in it, because the model reasons beside tools in it alone. */
  takesTools: boolean;
  /** Whether it takes them in it alone without reasoning too. */
  toolsAlone?: boolean;
}

/** A provider's way to serve a model. */
export interface UpstreamRoute {
  provider: Provider;
  /** The wire name that is sent upstream. */
  upstreamModel: string;
  /** The dialect of this model where it differs from the provider's for the surface. */
  dialect?: UpstreamDialect;
  /** Absent when unknown; such a route serves BYOK callers only. */
  price?: PriceRow;
  contextLength?: number;
  maxCompletionTokens?: number;
  quantization?: string;
  /** The declared parameters of this route; absent permits all. */
  supportedParameters?: readonly string[];
  /** The effort levels of this route; absent means the model's own. */
  reasoning?: ReasoningLevels;
  /** Whether the route can reason, which is separate from its effort levels. */
  reasoningFeature?: boolean;
  /** A further chat dialect of this model; see `routing/route-dialect.ts`. */
  secondDialect?: SecondDialect;
  /** Parameters that the model answers with 400; absent means none that are known. */
  refuses?: RefusedParameters;
  /** The policy for this model, where it differs from the provider's. */
  dataPolicy?: DataPolicy;
}

/**
 * Returns the data policy of a route: what its provider does with what it is sent for that model.
 */
export const dataPolicyOf = ({ provider, dataPolicy }: UpstreamRoute): DataPolicy =>
  dataPolicy === undefined ? provider.dataPolicy : { ...provider.dataPolicy, ...dataPolicy };

/** Names of the first-party routing presets, behind `service/`. */
export type RouterName = "auto" | "free" | "cowork" | "hermes" | "latest";

/** The models from which a routing preset chooses. */
export interface RouterPool {
  name: RouterName;
  /**
   * Models of the catalog, with the quality members first, in the order in which they are tried
   * unless the request asks for another.
   */
  members: readonly CatalogModel[];
  /** The number of quality members, which are the first ones. */
  qualityCount: number;
  /** Ids that the configuration names and that cannot be members, each with the reason. */
  missing: readonly { id: string; reason: string }[];
}

/** A model of the catalog with every route to it. */
export interface CatalogModel {
  /** The `owner/model` slug. */
  id: string;
  displayName: string;
  owner: string;
  surface: Surface;
  category: "text" | "image" | "audio" | "embedding";
  contextLength: number;
  capabilities: readonly string[];
  supportedParameters?: readonly string[];
  reasoning?: ReasoningLevels;
  /** Milliseconds since the epoch; 0 when unknown. */
  addedAtMs: number;
  description?: string;
  comingSoon?: boolean;
  /** The models that the operator's name means, where lists show it as a model. */
  aliasOf?: readonly string[];
  /** All ways to serve the model; of a router, those of all its members. */
  routes: readonly UpstreamRoute[];
  /** Set on routing presets, which are not models themselves. */
  router?: RouterPool;
}

/** The catalog at one moment; replaced as a whole, never changed in place. */
export interface CatalogSnapshot {
  /** The source and date of the facts, such as `models.dev 2026-07-02`. */
  version: string;
  models: ReadonlyMap<string, CatalogModel>;
  providers: ReadonlyMap<string, Provider>;
  /** Other spellings of model ids, such as `x-ai/grok-4.3` for `xai/grok-4.3`, to catalog ids. */
  aliases?: ReadonlyMap<string, string>;
  /** What the operator's own names of models mean, by name in lower case. */
  named?: ReadonlyMap<string, AliasTarget>;
  /** Ids by the first two words of their names, such as `claude opus`, newest first. */
  families?: ReadonlyMap<string, readonly string[]>;
  /** Resolves ids that the catalog does not know; absent where they are refused. */
  unknown?: { find(id: string): CatalogModel | undefined };
}

/**
 * Returns whether serving a model on a route costs the caller nothing: the model is tagged free, or
 * every price of the route is zero.
 */
export function isFreeRoute({ id }: CatalogModel, { price }: UpstreamRoute): boolean {
  if (id.endsWith(":free")) return true;
  return (
    price !== undefined &&
    isZero(price.base) &&
    (price.tiers ?? []).every((tier) => isZero(tier.price))
  );
}

/**
 * Returns whether every price is zero. Reasoning, sound and cache writes may have a price of their
 * own where text has none.
 */
const isZero = (vector: PriceVector): boolean =>
  vector.inputTokens === 0n &&
  vector.outputTokens === 0n &&
  Object.values(vector).every((price) => price === undefined || price === 0n);

const idsBySnapshot = new WeakMap<CatalogSnapshot, ReadonlyMap<string, string>>();

/**
 * Returns ids by slug and by display name, in lower case; collected once for each snapshot, since a
 * catalog may have many providers.
 */
function idsByName(catalog: CatalogSnapshot): ReadonlyMap<string, string> {
  let ids = idsBySnapshot.get(catalog);
  if (ids === undefined) {
    const providers = [...catalog.providers.values()];
    ids = new Map([
      ...providers.map(({ id, name }): [string, string] => [name.toLowerCase(), id]),
      // A slug takes precedence over another provider's display name.
      ...providers.map(({ id }): [string, string] => [id.toLowerCase(), id]),
    ]);
    idsBySnapshot.set(catalog, ids);
  }
  return ids;
}

/**
 * Returns the provider of a slug or display name, in any case (rule 7 of the provider object);
 * undefined for an unknown one.
 */
export const providerIdIn = (catalog: CatalogSnapshot, name: string): string | undefined =>
  idsByName(catalog).get(name.toLowerCase());

/** Returns the dialect in which a route serves a surface; undefined when it does not. */
export const routeDialect = (route: UpstreamRoute, surface: Surface): UpstreamDialect | undefined =>
  route.dialect ?? route.provider.dialects[surface];

/**
 * Returns the address of a provider's surface, without a trailing slash; undefined while its
 * variables are unset.
 */
export const surfaceBaseUrl = (provider: Provider, surface: Surface): string | undefined =>
  provider.surfaceBaseUrls?.[surface] ?? provider.baseUrl;

/**
 * Returns the address of a route's requests of a surface, by its dialect where that is served
 * elsewhere.
 */
export function routeBaseUrl(route: UpstreamRoute, surface: Surface): string | undefined {
  const dialect = routeDialect(route, surface);
  return (
    (dialect && route.provider.dialectBaseUrls?.[dialect]) ??
    surfaceBaseUrl(route.provider, surface)
  );
}

/** Dialects that requests can be sent in. */
type SendableDialects = Pick<ReadonlySet<UpstreamDialect>, "has">;

/** Returns whether this process can send a model's requests to a route, with any credential. */
export function isSendable(
  route: UpstreamRoute,
  model: CatalogModel,
  sendable: SendableDialects,
): boolean {
  const { surface } = model;
  const dialect = routeDialect(route, surface);
  return (
    dialect !== undefined && sendable.has(dialect) && routeBaseUrl(route, surface) !== undefined
  );
}

/** Returns whether the platform has a credential of its own for a provider. */
export const hasCredential = ({ apiKey, signing }: Provider): boolean =>
  apiKey !== undefined || signing !== undefined;

/**
 * Returns whether a route serves callers without a key of their own: it is sendable and has a
 * platform credential and a price.
 */
export const isReachable = (
  route: UpstreamRoute,
  model: CatalogModel,
  sendable: SendableDialects,
): boolean =>
  hasCredential(route.provider) &&
  // Decisions are free of charge, so their price need not be known.
  (route.price !== undefined || model.surface === "decisions") &&
  !model.comingSoon &&
  isSendable(route, model, sendable);

/** Returns whether a provider can be called with a platform credential. */
export const isPlatformServed = (provider: Provider): boolean =>
  hasCredential(provider) && provider.baseUrl !== undefined;

/** Returns whether any provider but the simulated one has a platform credential and an address. */
export const hasPlatformCredential = ({ providers }: Pick<CatalogSnapshot, "providers">): boolean =>
  providers.values().some((provider) => isPlatformServed(provider) && !provider.simulated);

/** What the names of a workspace mean; replaced as a whole, never changed in place. */
type WorkspaceNames = ReadonlyMap<string, AliasTarget>;

/** The snapshots that were built, by the names of their workspace. */
const namedCatalogs = new WeakMap<
  WorkspaceNames,
  { base: CatalogSnapshot; named: CatalogSnapshot }
>();

/**
 * Returns a catalog with the names of a workspace, which take precedence over the operator's. It is
 * built once for each change of either.
 */
export function withWorkspaceNames(
  catalog: CatalogSnapshot,
  names: WorkspaceNames | undefined,
): CatalogSnapshot {
  if (names === undefined) return catalog;
  const known = namedCatalogs.get(names);
  if (known?.base === catalog) return known.named;
  const named = { ...catalog, named: new Map([...(catalog.named ?? []), ...names]) };
  namedCatalogs.set(names, { base: catalog, named });
  return named;
}
