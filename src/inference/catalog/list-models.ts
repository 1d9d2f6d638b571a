import { z } from "zod";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { compareText } from "./catalog-facts.ts";
import { outputModalities } from "./model-object.ts";
import {
  present,
  isPlatformServed,
  type CatalogModel,
  type CatalogSnapshot,
  type Provider,
} from "./model.ts";

/** The query of a list, and the functions that depend on its caller. */
interface ModelListOptions {
  query: ModelListQuery;
  /** Returns whether the caller can reach a model. */
  isRoutable(model: CatalogModel): boolean;
  /** Returns the requests that a model served in the last 7 days, for the order by usage. */
  weeklyRequests?(modelId: string): number;
}

/** Returns the models that pass every filter, in the requested order; by default sorted by id. */
export function listModels(
  among: Iterable<CatalogModel>,
  options: ModelListOptions,
): CatalogModel[] {
  const { query, isRoutable } = options;
  const models = [...among].filter(
    (model) => matches(model, query) && (query.all || isRoutable(model)),
  );
  return query.sort === undefined ? models : models.sort(order(query.sort, options));
}

/** Returns how many models a caller can reach. */
export const countModels = (
  snapshot: CatalogSnapshot,
  isRoutable: (model: CatalogModel) => boolean,
): number =>
  snapshot.models.values().reduce((count, model) => count + (isRoutable(model) ? 1 : 0), 0);

/** Returns how many models each provider serves, by its slug. */
export function modelCounts(snapshot: CatalogSnapshot): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { routes, router } of snapshot.models.values()) {
    if (router !== undefined) continue;
    const providerIds = new Set(routes.map(({ provider }) => provider.id));
    for (const id of providerIds) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

function matches(model: CatalogModel, query: ModelListQuery): boolean {
  const { provider, category, minContext, capabilities, outputs } = query;
  return (
    (outputs === undefined || outputModalities(model).some((kind) => outputs.includes(kind))) &&
    (category === undefined || model.category === category) &&
    (minContext === undefined || model.contextLength >= minContext) &&
    (provider === undefined || isFrom(model, provider.toLowerCase())) &&
    capabilities.every((wanted) => model.capabilities.some((one) => capabilitySlug(one) === wanted))
  );
}

/**
 * Returns whether a model is of a provider or owner. The contract's `provider` of a model is its
 * owner; callers also mean a provider that serves it. A router has only its own owner.
 */
const isFrom = ({ owner, routes, router }: CatalogModel, wanted: string): boolean =>
  owner === wanted ||
  (router === undefined &&
    routes.some(
      ({ provider }) => provider.id === wanted || provider.name.toLowerCase() === wanted,
    ));

type Comparison = (left: CatalogModel, right: CatalogModel) => number;

function order(sort: ModelSort, { weeklyRequests }: ModelListOptions): Comparison {
  const byId: Comparison = (left, right) => compareText(left.id, right.id);
  if (sort === "name") return byId;
  if (sort === "added")
    return (left, right) => right.addedAtMs - left.addedAtMs || byId(left, right);
  const volume = (model: CatalogModel): number => weeklyRequests?.(model.id) ?? 0;
  return (left, right) => volume(right) - volume(left) || byId(left, right);
}

type ModelSort = "added" | "usage" | "name";

/** The filters and order of `GET /models`, parsed from its query string. */
export interface ModelListQuery {
  /** Whether to include models that the caller cannot reach. */
  all: boolean;
  /** A provider's slug or name, or the owner of models. */
  provider?: string;
  category?: CatalogModel["category"];
  minContext?: number;
  /** Kinds of output of which a model must make one. */
  outputs?: readonly string[];
  /** Capabilities that a model must have, in the catalog's spelling. */
  capabilities: readonly string[];
  sort?: ModelSort;
  /** Whether to include models of providers that the caller's privacy settings exclude. */
  ignoresPrivacy: boolean;
  /** Whether to omit presets. */
  withoutPresets: boolean;
  /** The number of models to skip, as OpenRouter's clients page. */
  offset: number;
  /** The most models in the answer; absent means all. */
  limit?: number;
}

const sortNames: Readonly<Record<string, ModelSort>> = {
  added: "added",
  newest: "added",
  new: "added",
  created: "added",
  usage: "usage",
  top: "usage",
  "top-usage": "usage",
  popular: "usage",
  name: "name",
  id: "name",
};

const minContextSchema = z.coerce.number().int().nonnegative();

/** Parses the query string of `GET /models`. Throws `bad_request` with the invalid parameter. */
export function parseModelListQuery(parameters: URLSearchParams): ModelListQuery {
  const provider = text(parameters, "provider");
  const category = categoryOf(text(parameters, "category"));
  const minContext = minContextOf(text(parameters, "min_context"));
  const sort = sortOf(text(parameters, "sort"));
  const outputs = outputsOf(text(parameters, "output_modalities"));
  return {
    all: wantsAll(parameters),
    capabilities: capabilitiesOf(parameters),
    ignoresPrivacy: isOff(parameters, "privacy"),
    withoutPresets: isOff(parameters, "presets"),
    offset: countOf(parameters, "offset", 0) ?? 0,
    ...present({ limit: countOf(parameters, "limit", 1), outputs }),
    ...(provider !== undefined && { provider }),
    ...(category !== undefined && { category }),
    ...(minContext !== undefined && { minContext }),
    ...(sort !== undefined && { sort }),
  };
}

const text = (parameters: URLSearchParams, name: string): string | undefined =>
  parameters.get(name)?.trim() || undefined;

const isOff = (parameters: URLSearchParams, name: string): boolean =>
  ["0", "false"].includes(text(parameters, name)?.toLowerCase() ?? "");

const wantsAll = (parameters: URLSearchParams): boolean =>
  ["1", "true", "yes"].includes(text(parameters, "all")?.toLowerCase() ?? "") ||
  ["unavailable", "all"].includes(text(parameters, "include")?.toLowerCase() ?? "");

/**
 * Returns the requested capabilities. `capability` may be repeated; `supported` is its older,
 * comma-separated form.
 */
function capabilitiesOf(parameters: URLSearchParams): string[] {
  const written = [...parameters.getAll("capability"), ...parameters.getAll("supported")];
  const names = written
    .flatMap((list) => list.split(","))
    .map((name) => capabilitySlug(name.trim()));
  return [...new Set(names)].filter((name) => name !== "");
}

/** Returns the kinds of output that a list names; undefined for `all`. */
function outputsOf(written: string | undefined): readonly string[] | undefined {
  const kinds = written
    ?.toLowerCase()
    .split(",")
    .map((kind) => kind.trim());
  return kinds?.includes("all") === true ? undefined : kinds;
}

/** Normalises a capability: `function_calling` and `Function-Calling` mean `function-calling`. */
const capabilitySlug = (name: string): string => name.toLowerCase().replaceAll("_", "-");

function minContextOf(written: string | undefined): number | undefined {
  if (written === undefined) return undefined;
  const parsed = minContextSchema.safeParse(written);
  if (parsed.success) return parsed.data;
  const message = "min_context must be a number of tokens, such as 128000.";
  throw new GatewayError("bad_request", message, { param: "min_context" });
}

function countOf(parameters: URLSearchParams, name: string, minimum: number): number | undefined {
  const written = text(parameters, name);
  if (written === undefined) return undefined;
  const parsed = z.coerce.number().int().min(minimum).safeParse(written);
  if (parsed.success) return parsed.data;
  throw new GatewayError("bad_request", `${name} must be a whole number of at least ${minimum}.`, {
    param: name,
  });
}

const isCategory = (written: string): written is CatalogModel["category"] =>
  ["text", "image", "audio", "embedding"].includes(written);

function categoryOf(written: string | undefined): CatalogModel["category"] | undefined {
  const category = written?.toLowerCase();
  if (category === undefined || isCategory(category)) return category;
  throw new GatewayError("bad_request", "category must be text, image, audio or embedding.", {
    param: "category",
  });
}

function sortOf(written: string | undefined): ModelSort | undefined {
  if (written === undefined) return undefined;
  const sort = sortNames[written.toLowerCase()];
  if (sort !== undefined) return sort;
  throw new GatewayError("bad_request", "sort must be added, usage or name.", { param: "sort" });
}

/** A provider as `GET /providers` shows it. */
interface ProviderEntry {
  id: string;
  name: string;
  description: string;
  logo: string;
  /** The id again, where OpenRouter's clients look for it. */
  slug: string;
  /** Null: the catalog does not know the vendors' pages. */
  privacy_policy_url: null;
  terms_of_service_url: null;
  status_page_url: null;
  website?: string;
  /**
   * `active`: the platform's own credential serves every caller; `byok`: only callers with a key of
   * their own are served.
   */
  status: "active" | "byok";
  model_count: number;
  /** The surfaces that the provider offers. */
  endpoints: string[];
}

/** The most characters of a description (contract). */
const descriptionLengthMax = 200;

/** Returns a provider in the contract's form, with the number of catalog models that it serves. */
export const providerEntry = (provider: Provider, modelCount: number): ProviderEntry =>
  present({
    id: provider.id,
    name: provider.name,
    description: (provider.description ?? `Models served by ${provider.name}.`).slice(
      0,
      descriptionLengthMax,
    ),
    logo: providerLogoPath(provider.id),
    slug: provider.id,
    privacy_policy_url: null,
    terms_of_service_url: null,
    status_page_url: null,
    website: provider.website,
    status: isPlatformServed(provider) ? ("active" as const) : ("byok" as const),
    model_count: modelCount,
    endpoints: Object.keys(provider.dialects),
  });

/** Returns the root-relative path of a provider's logo. */
export const providerLogoPath = (providerId: string): string => `/logos/${providerId}.svg`;

/**
 * Returns a monogram in place of the vendor's trade mark, which the project may not ship: its
 * initials on a colour of its own. Safe to serve as it is, since every character of the name is
 * escaped.
 */
export function providerLogoSvg({ id, name }: Pick<Provider, "id" | "name">): string {
  const hue = [...id].reduce(
    (sum, character) => (sum * 31 + (character.codePointAt(0) ?? 0)) % 360,
    7,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" role="img" aria-label="${escapeXml(name)}">`,
    `<rect width="64" height="64" rx="14" fill="hsl(${hue} 45% 36%)"/>`,
    '<text x="32" y="41" text-anchor="middle" font-family="system-ui, sans-serif" font-size="26"',
    ` font-weight="600" fill="#fff">${escapeXml(initials(name))}</text></svg>`,
  ].join("");
}

function initials(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "");
  const letters =
    words.length > 1 ? words.slice(0, 2).map((word) => word[0]) : [words[0]?.slice(0, 2)];
  return letters.join("").toUpperCase();
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

const escapeXml = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => entities[character] ?? "");
