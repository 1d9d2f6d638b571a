import type { PriceRow, PriceVector } from "../../billing/ledger/price.ts";
import type { ReasoningLevels } from "../canonical/reasoning.ts";
import type {
  CredentialHeader,
  DataPolicy,
  ProviderDeviations,
  SigningCredential,
  Surface,
  UpstreamDialect,
} from "../providers/provider-definition.ts";

/** An object type whose possibly undefined members became optional ones. */
type Present<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** The object without its undefined members: absent stays absent, as optional members want it. */
export function present<T extends object>(value: T): Present<T> {
  const set: Partial<T> = {};
  // A plain loop: a start makes some five thousand of these, and lists of entries cost five times
  // as much.
  for (const key in value) if (value[key] !== undefined) set[key] = value[key];
  return set as unknown as Present<T>;
}

export type { ReasoningLevels };
export type { CredentialHeader, DataPolicy, ProviderDeviations, Surface, UpstreamDialect };

/** How long a provider may take for each step of an answer. */
export interface UpstreamTimeouts {
  connectMs: number;
  firstTokenMs: number;
  idleMs: number;
  totalMs: number;
  /**
   * How long a whole (not streamed) answer may take to begin; absent means `totalMs`. A whole
   * answer begins when it is finished, so the default of `firstTokenMs` would cut long ones.
   */
  wholeAnswerMs?: number;
}

/** A provider as it can be called: where, in which dialect, with which credential. */
export interface Provider {
  /** Slug; what `provider.order`, `only` and `ignore` match, as does `name`. */
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
  /** Dialect by surface; a surface that is absent is not offered. */
  dialects: Partial<Record<Surface, UpstreamDialect>>;
  /** How the credential travels, such as header `authorization` with prefix `Bearer `. */
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
   * The proxy that requests to it go through, or `none`; absent follows the environment's. May hold
   * credentials.
   */
  proxy?: string;
  /** Named deviations from the dialect. */
  deviations: ProviderDeviations;
  /** True for the built-in simulated provider. */
  simulated?: boolean;
  /** True for a server on the operator's own machines, which needs no credential. */
  local?: boolean;
}

/** One provider's way to serve a model. */
export interface UpstreamRoute {
  provider: Provider;
  /** Wire name sent upstream. */
  upstreamModel: string;
  /** The dialect of this model where it is not the provider's for the surface. */
  dialect?: UpstreamDialect;
  /** Absent when nothing is known; such a route serves BYOK callers only. */
  price?: PriceRow;
  contextLength?: number;
  maxCompletionTokens?: number;
  quantization?: string;
  /** Per-route declared parameters; absent is permissive. */
  supportedParameters?: readonly string[];
  /** Effort override; absent means the model's own. */
  reasoning?: ReasoningLevels;
  /** Capability flag, not an effort list. */
  reasoningFeature?: boolean;
  /** What differs for this model from the provider's data policy. */
  dataPolicy?: DataPolicy;
}

/** What the provider of a route does with what it is sent for that model. */
export const dataPolicyOf = ({ provider, dataPolicy }: UpstreamRoute): DataPolicy =>
  dataPolicy === undefined ? provider.dataPolicy : { ...provider.dataPolicy, ...dataPolicy };

/** Names of the first-party routing presets, behind `service/`. */
export type RouterName = "auto" | "free" | "cowork" | "hermes" | "latest";

/** What a routing preset chooses from. */
export interface RouterPool {
  name: RouterName;
  /**
   * Models of the catalog, the quality members first; the order in which they are tried unless the
   * request asks for another.
   */
  members: readonly CatalogModel[];
  /** How many of the members, counted from the first, are quality members. */
  qualityCount: number;
  /** Ids that the configuration names and that cannot be members, each with the reason. */
  missing: readonly { id: string; reason: string }[];
}

/** A model of the catalog with every route to it. */
export interface CatalogModel {
  /** `owner/model` slug. */
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
  /** All ways to serve the model; of a router, those of all its members. */
  routes: readonly UpstreamRoute[];
  /** Set on routing presets, which are no models of their own. */
  router?: RouterPool;
}

/** The catalog at one moment; replaced as a whole, never changed in place. */
export interface CatalogSnapshot {
  /** Names the source and date of the facts, such as `models.dev 2026-07-02`. */
  version: string;
  models: ReadonlyMap<string, CatalogModel>;
  providers: ReadonlyMap<string, Provider>;
  /**
   * Other spellings of model ids, such as `x-ai/grok-4.3` seen as `xai/grok-4.3`, to catalog ids.
   */
  aliases?: ReadonlyMap<string, string>;
  /** Ids by the first two words of their names, such as `claude opus`, the newest first. */
  families?: ReadonlyMap<string, readonly string[]>;
  /** What ids stand for that the catalog does not know; absent where they are refused. */
  unknown?: { find(id: string): CatalogModel | undefined };
}

/**
 * Whether serving a model on a route costs the caller nothing: the model is tagged free, or every
 * price of the route is zero.
 */
export function isFreeRoute({ id }: CatalogModel, { price }: UpstreamRoute): boolean {
  if (id.endsWith(":free")) return true;
  return (
    price !== undefined &&
    isZero(price.base) &&
    (price.tiers ?? []).every((tier) => isZero(tier.price))
  );
}

/** Thoughts, sound and cache writes may have a price of their own where text has none. */
const isZero = (vector: PriceVector): boolean =>
  vector.inputTokens === 0n &&
  vector.outputTokens === 0n &&
  Object.values(vector).every((price) => price === undefined || price === 0n);

const idsBySnapshot = new WeakMap<CatalogSnapshot, ReadonlyMap<string, string>>();

/**
 * Ids by slug and by display name, in lower case; collected once a snapshot, since a catalog may
 * have many providers.
 */
function idsByName(catalog: CatalogSnapshot): ReadonlyMap<string, string> {
  let ids = idsBySnapshot.get(catalog);
  if (ids === undefined) {
    const providers = [...catalog.providers.values()];
    ids = new Map([
      ...providers.map(({ id, name }): [string, string] => [name.toLowerCase(), id]),
      // A slug wins over another provider's display name.
      ...providers.map(({ id }): [string, string] => [id.toLowerCase(), id]),
    ]);
    idsBySnapshot.set(catalog, ids);
  }
  return ids;
}

/**
 * The provider that a slug or display name means, in any case (rule 7 of the provider object);
 * undefined for a stranger.
 */
export const providerIdIn = (catalog: CatalogSnapshot, name: string): string | undefined =>
  idsByName(catalog).get(name.toLowerCase());

/** The dialect in which a route serves a surface; undefined when it does not. */
export const routeDialect = (route: UpstreamRoute, surface: Surface): UpstreamDialect | undefined =>
  route.dialect ?? route.provider.dialects[surface];

/**
 * The address of a provider's surface, without a trailing slash; undefined while its variables are
 * unset.
 */
export const surfaceBaseUrl = (provider: Provider, surface: Surface): string | undefined =>
  provider.surfaceBaseUrls?.[surface] ?? provider.baseUrl;

/**
 * The address that a route's requests of a surface go to, by its dialect where that is served
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

/** Whether this process can send a model's requests to a route, with whichever credential. */
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

/** Whether the platform has a credential of its own for a provider. */
export const hasCredential = ({ apiKey, signing }: Provider): boolean =>
  apiKey !== undefined || signing !== undefined;

/**
 * Whether a route serves callers without a key of their own: sendable, with platform credential and
 * price.
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

/** Whether a provider can be called with a credential of the platform. */
export const isPlatformServed = (provider: Provider): boolean =>
  hasCredential(provider) && provider.baseUrl !== undefined;

/** Whether any provider but the simulated one has a credential of the platform and an address. */
export const hasPlatformCredential = ({ providers }: Pick<CatalogSnapshot, "providers">): boolean =>
  providers.values().some((provider) => isPlatformServed(provider) && !provider.simulated);
