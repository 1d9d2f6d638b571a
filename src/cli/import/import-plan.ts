import { buildCatalog } from "../../inference/catalog/build-catalog.ts";
import {
  type ConfiguredModel,
  type ConfiguredProvider,
  configuredProviderSchema,
} from "../../inference/catalog/configured/configured-provider.ts";
import { makerOfName } from "../../inference/catalog/names/model-names.ts";
import type { CatalogSnapshot } from "../../inference/catalog/model.ts";
import { providerDefinitions } from "../../inference/providers/index.ts";
import type { AliasTarget } from "../../platform/kernel/models/model-alias.ts";
import { isOwnServer } from "./server-address.ts";

/** The body of a request that creates a record of the account. */
export type NewRecord = Readonly<Record<string, unknown>>;

/** A server in another gateway's file. */
export interface Upstream {
  /** The id of a provider that the gateway knows; absent for any other server. */
  vendor?: string | undefined;
  /** The name of any other provider. */
  name?: string | undefined;
  baseUrl?: string | undefined;
  /** In the configuration's form: `${NAME}`. */
  apiKey?: string | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  timeouts?: ConfiguredProvider["timeouts_ms"] | undefined;
}

/** A model with its name at one upstream. */
export interface Deployment {
  id: string;
  upstreamModel: string;
  /** The model whose price applies, where its own name has none. */
  pricedAs?: string | undefined;
  settings: Partial<ConfiguredModel>;
}

type Pricing = NonNullable<ConfiguredModel["pricing"]>;

/** Converts a price per token to USD per million tokens. */
export const usdPerMillion = (usdPerToken: number): string =>
  (usdPerToken * 1e6).toFixed(9).replace(/\.?0+$/, "");

const slugOf = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "");

/**
 * The outcome of adding a model: the source of its price, `free` for one of a server of the
 * operator's own, `none` for one that the gateway cannot charge for, or why it could not be added.
 */
export type Added = "file" | "catalog" | "free" | "none" | { problem: string };

/** Returns the report of a model that was added without a price; undefined where it has one. */
export const withoutPrice = (added: Added): string | undefined =>
  added === "free"
    ? "no price is known, and the server is your own, so it is free: write its pricing to charge for it"
    : added === "none"
      ? "no price is known, so it serves callers with a provider key of their own alone: write its pricing"
      : undefined;

/** Returns whether a provider is a server of the operator's own. */
const isOwn = (entry: ConfiguredProvider): boolean =>
  providerDefinitions.some(({ id, local }) => id === (entry.like ?? entry.id) && local === true) ||
  isOwnServer(withDefaults(entry.base_url));

/** The configuration that an import writes, and the records that it creates. */
export class ImportPlan {
  readonly providers: ConfiguredProvider[] = [];
  /** Values from the file itself, by the variable from which the configuration reads them. */
  readonly variables = new Map<string, string>();
  readonly keys: NewRecord[] = [];
  readonly presets: NewRecord[] = [];
  readonly budgets: NewRecord[] = [];
  /** Names that clients use, and the ids that they are to mean. */
  readonly names = new Map<string, string>();
  /** Names that mean several models, by weight, by condition or as fallbacks. */
  readonly aliases = new Map<string, AliasTarget>();
  private readonly catalog: CatalogSnapshot;
  /** Ids of the catalog, each by a provider and the plain wire name there. */
  private readonly byWireName = new Map<string, string>();
  private readonly upstreams = new Map<string, string>();

  constructor(/** The time of the import, by which keys have expired. */ readonly nowMs: number) {
    this.catalog = buildCatalog({ environment: {}, configuredProviders: [], nowMs });
    for (const { id, routes } of this.catalog.models.values())
      for (const { provider, upstreamModel } of routes) {
        const name = `${provider.id} ${plainWireName(upstreamModel)}`;
        if (!this.byWireName.has(name)) this.byWireName.set(name, id);
      }
  }

  /** Returns the reference to a secret in the file itself; its value goes to a separate file. */
  secret(hint: string, value: string): string {
    const wanted = hint
      .toUpperCase()
      .replaceAll(/[^A-Z0-9]+/g, "_")
      .replace(/^(?=\d)/, "_");
    let name = wanted;
    for (let next = 2; this.variables.has(name) && this.variables.get(name) !== value; next++)
      name = `${wanted}_${next}`;
    this.variables.set(name, value);
    return `\${${name}}`;
  }

  /**
   * Returns the catalog's id of a model that clients call by a name, or an id formed from the name.
   */
  modelId(name: string, vendor: string): string {
    const plain = name.trim().toLowerCase().replaceAll(/\s+/g, "-");
    const known = this.catalog.models.has(plain) ? plain : this.catalog.aliases?.get(plain);
    if (known !== undefined) return known;
    return /^[^/]+\/./.test(plain) ? plain : `${makerOfName(plain) ?? vendor}/${plain}`;
  }

  /** Returns whether a model of an id is in the catalog or was added. */
  knows(id: string): boolean {
    return (
      this.catalog.models.has(id) ||
      this.providers.some(({ models = [] }) => models.some((model) => model.id === id))
    );
  }

  /** Returns a slug that no other preset of the plan has. */
  presetSlug(name: string): string {
    const wanted = slugOf(name) || "preset";
    let slug = wanted;
    for (let next = 2; this.presets.some((preset) => preset["slug"] === slug); next++)
      slug = `${wanted}-${next}`;
    return slug;
  }

  /**
   * Returns the id of an upstream's provider, which is created where there is none; or why the
   * gateway could not use it.
   */
  provider(upstream: Upstream): string | { problem: string } {
    const entry = this.entryOf(upstream);
    const problem = this.problemOf(entry, upstream);
    if (problem !== undefined) return { problem };
    this.keep(entry, upstream);
    return entry.id;
  }

  /** Returns the entry of an upstream that lacks a model, or a new one that is not yet kept. */
  private entryOf(upstream: Upstream, modelId?: string): ConfiguredProvider {
    const place = placeOf(upstream);
    for (const entry of this.providers) {
      const hasModel = entry.models?.some(({ id }) => id === modelId) ?? false;
      if (this.upstreams.get(entry.id) === place && !hasModel) return entry;
    }
    return this.newEntry(upstream);
  }

  private keep(entry: ConfiguredProvider, upstream: Upstream): void {
    if (this.providers.includes(entry)) return;
    this.providers.push(entry);
    this.upstreams.set(entry.id, placeOf(upstream));
  }

  /** Returns why the gateway could not use an entry; undefined where it can. */
  private problemOf(entry: ConfiguredProvider, { vendor, apiKey }: Upstream): string | undefined {
    if (entry.id !== vendor && isSigned(vendor) && apiKey === undefined)
      return `one account of ${vendor} serves a model only once, and ${vendor} is in use already`;
    const checked = { ...entry, base_url: withDefaults(entry.base_url) };
    const [issue] = configuredProviderSchema.safeParse(checked).error?.issues ?? [];
    if (issue === undefined) return undefined;
    const path = issue.path.join(".").replace(/^models\.\d+\.?/, "");
    return `the gateway could not use it: ${path === "" ? "" : `${path}: `}${issue.message}`;
  }

  private newEntry({ vendor, name, baseUrl, apiKey, headers, timeouts }: Upstream) {
    const wanted = vendor ?? (slugOf(name ?? "") || "server");
    let id = wanted;
    const isTaken = (): boolean =>
      this.providers.some((other) => other.id === id) ||
      (vendor === undefined && providerDefinitions.some((known) => known.id === id));
    for (let next = 2; isTaken(); next++) id = `${wanted}-${next}`;
    const definition = providerDefinitions.find((known) => known.id === vendor);
    const known = typeof definition?.baseUrl === "string" ? definition.baseUrl : undefined;
    const address = baseUrl ?? (id === vendor ? undefined : known);
    const entry: ConfiguredProvider = { id };
    if (id !== vendor && definition !== undefined) entry.like = definition.id;
    if (address !== undefined) entry.base_url = address;
    const [usualVariable] = definition?.credentialVariables ?? [];
    // Only the entry with the vendor's own id reads the vendor's usual variable by itself.
    const usualKey =
      id === vendor || usualVariable === undefined || isSigned(vendor)
        ? undefined
        : `\${${usualVariable}}`;
    const key = apiKey ?? usualKey;
    if (key !== undefined) entry.api_key = key;
    const allHeaders = { ...(id === vendor ? {} : definition?.headers), ...headers };
    if (Object.keys(allHeaders).length > 0) entry.headers = allHeaders;
    if (timeouts !== undefined) entry.timeouts_ms = timeouts;
    return entry;
  }

  /**
   * Adds a model to the provider that serves it. A model without a known price is free only at a
   * server of the operator's own: elsewhere its price is left open, so that none is given away.
   */
  addModel(upstream: Upstream, deployment: Deployment): Added {
    const { id, upstreamModel, settings } = deployment;
    const entry = this.entryOf(upstream, id);
    const pricing = settings.pricing ?? this.knownPricing(entry, upstream, deployment);
    const isFree = pricing === undefined && isOwn(entry);
    const model: ConfiguredModel = {
      id,
      ...(id.slice(id.indexOf("/") + 1) === upstreamModel ? {} : { upstream_model: upstreamModel }),
      ...settings,
      ...(typeof pricing === "object" && { pricing }),
      ...(isFree && { pricing: { prompt: "0", completion: "0" } }),
    };
    const dialect = this.dialectFor(entry, settings.surface ?? "chat");
    if (dialect === "none") {
      const provider = upstream.vendor ?? entry.id;
      return { problem: `${provider} is not asked for ${settings.surface} by the gateway` };
    }
    // The models before it were checked when they were added, and none has its id.
    const problem = this.problemOf({ ...entry, ...dialect, models: [model] }, upstream);
    if (problem !== undefined) return { problem };
    Object.assign(entry, dialect);
    entry.models = [...(entry.models ?? []), model];
    this.keep(entry, upstream);
    if (settings.pricing !== undefined) return "file";
    if (isFree) return "free";
    // Models that are named free are.
    return pricing !== undefined || id.endsWith(":free") ? "catalog" : "none";
  }

  /**
   * Returns the dialects that an entry has to name to serve a surface, nothing where it serves it
   * anyway, or `none` where it cannot. Servers of the operator's own speak Jina's rerank dialect, as
   * vLLM and Infinity do.
   */
  private dialectFor(
    entry: ConfiguredProvider,
    surface: NonNullable<ConfiguredModel["surface"]>,
  ): { dialect?: NonNullable<ConfiguredProvider["dialect"]> } | "none" {
    const definition = providerDefinitions.find(({ id }) => id === (entry.like ?? entry.id));
    const written = typeof entry.dialect === "object" ? entry.dialect : undefined;
    const served: Readonly<Record<string, unknown>> =
      written ?? definition?.dialects ?? ownServerDialects;
    if (served[surface] !== undefined) return {};
    const isOwn = definition === undefined || definition.local === true;
    return isOwn && surface === "rerank"
      ? { dialect: { ...ownServerDialects, ...written, rerank: "jina-rerank" } }
      : "none";
  }

  /** Returns what the catalog says that a model does, by its wire name at a provider. */
  surfaceOf(wireName: string, vendor: string): ConfiguredModel["surface"] {
    const plain = wireName.toLowerCase();
    const id = this.catalog.models.has(plain) ? plain : this.servedAs(plain, vendor);
    return id === undefined ? undefined : this.catalog.models.get(id)?.surface;
  }

  /** Returns the catalog's price: under the same id, or of the model behind the name. */
  private knownPricing(
    { id: providerId }: ConfiguredProvider,
    { vendor }: Upstream,
    { id, upstreamModel, pricedAs }: Deployment,
  ): Pricing | "catalog" | undefined {
    const isSame = this.routeOf(id, providerId)?.upstreamModel === upstreamModel;
    if (isSame && this.routeOf(id, providerId)?.price !== undefined) return "catalog";
    if (vendor === undefined) return undefined;
    for (const name of [pricedAs, upstreamModel, id]) {
      const plain = name?.toLowerCase() ?? "";
      const priced = this.catalog.models.has(plain)
        ? plain
        : (this.catalog.aliases?.get(plain) ?? this.servedAs(plain, vendor));
      const pricing = priced === undefined ? undefined : this.catalogPricing(priced, vendor);
      if (pricing !== undefined) return pricing;
    }
    return undefined;
  }

  /** Returns the model that a provider serves under a wire name, in any of its regions. */
  private servedAs(wireName: string, providerId: string): string | undefined {
    const plain = plainWireName(wireName);
    return plain === "" ? undefined : this.byWireName.get(`${providerId} ${plain}`);
  }

  /** Returns the catalog's price of a model at a provider, as the configuration writes it. */
  catalogPricing(modelId: string, providerId: string): Pricing | undefined {
    const price = this.routeOf(modelId, providerId)?.price?.base;
    if (price === undefined) return undefined;
    const usd = (pico: bigint): string => usdPerMillion(Number(pico) / 1e12);
    return {
      prompt: usd(price.inputTokens),
      completion: usd(price.outputTokens),
      ...(price.cacheReadTokens === undefined ? {} : { cache_read: usd(price.cacheReadTokens) }),
      ...(price.cacheWriteTokens === undefined ? {} : { cache_write: usd(price.cacheWriteTokens) }),
    };
  }

  private routeOf(modelId: string, providerId: string) {
    return this.catalog.models
      .get(modelId)
      ?.routes.find(({ provider }) => provider.id === providerId);
  }
}

/** The dialects of a server that the gateway does not know. */
const ownServerDialects = {
  chat: "openai-chat",
  embeddings: "openai-embeddings",
  moderations: "openai-moderations",
} as const satisfies ConfiguredProvider["dialect"];

/** Whether the gateway knows a provider. */
export const isKnownVendor = (name: string): boolean =>
  providerDefinitions.some(({ id }) => id === name);

/** Returns whether `aliases:` may have a name: it has no owner, so that it is no model's id. */
export const canBeAlias = (name: string): boolean => /^[a-zA-Z0-9][\w.:-]{0,127}$/.test(name);

/** Whether requests to a provider can be signed with a cloud account, which it has only once. */
export const isSigned = (vendor: string | undefined): boolean =>
  providerDefinitions.some(({ id, signing }) => id === vendor && signing !== undefined);

/** Returns what distinguishes an upstream from others; a provider with a cloud account is one. */
const placeOf = (upstream: Upstream): string =>
  JSON.stringify(
    isSigned(upstream.vendor) && upstream.apiKey === undefined
      ? { vendor: upstream.vendor, baseUrl: upstream.baseUrl }
      : upstream,
  );

/** Returns an address as it is while none of its variables is set. */
const withDefaults = (address: string | undefined): string | undefined =>
  address?.replaceAll(/\$\{\w+:-([^}]*)\}/g, "$1");

/**
 * Returns a wire name without what selects a place or a revision of the same model: Bedrock's
 * `bedrock/`, region, inference profile and version.
 */
const plainWireName = (name: string): string =>
  name
    .toLowerCase()
    .replace(/^(?:.*\/)?(?:(?:us|eu|apac|jp|au|ca|us-gov|global)\.)?/, "")
    .replace(/-v\d+(?::\d+)?$/, "");

/** Returns the built-in provider at an address, if there is one. */
export function vendorAt(baseUrl: string): string | undefined {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).host : undefined;
  return providerDefinitions.find(
    (known) => typeof known.baseUrl === "string" && new URL(known.baseUrl).host === host,
  )?.id;
}

/** Returns the variable that usually holds a provider's key. */
export const credentialVariableOf = (vendor: string): string =>
  providerDefinitions.find(({ id }) => id === vendor)?.credentialVariables[0] ??
  `${vendor.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_")}_API_KEY`;
