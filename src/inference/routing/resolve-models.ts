import { GatewayError } from "../../platform/kernel/errors.ts";
import type { CatalogModel, CatalogSnapshot } from "../catalog/model.ts";
import { routerId } from "../catalog/router-models.ts";
import { type AliasFacts, chooseModels, modelsOfAlias } from "./model-aliases.ts";
import { closestName } from "../../platform/kernel/schema-problems.ts";
import { familyOf, otherSpellings } from "../catalog/names/vendor-names.ts";
import type { SortKey } from "./provider-preferences.ts";

/** A requested model id: the catalog's model, and the meaning of the suffix shortcuts behind it. */
export interface ResolvedModel {
  model: CatalogModel;
  sort?: SortKey;
  /** Tokens, from a suffix such as `[1m]` on a router. */
  minContext?: number;
  /** Whether the model is a routing preset, so that no member counts as a fallback. */
  isRouter: boolean;
}

/**
 * Finds a model by its id or one of its other names, in any case: the vendor's own name for it,
 * with or without the owner and a date. Returns undefined when there is none.
 */
export function findModel(catalog: CatalogSnapshot, id: string): CatalogModel | undefined {
  const exact = catalog.models.get(id);
  if (exact !== undefined) return exact;
  const lower = id.toLowerCase();
  const named = byName(catalog, lower);
  if (named !== undefined) return named;
  for (const other of otherSpellings(lower)) {
    const found = byName(catalog, other);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The tag that Ollama's clients add to every name, and that its door leaves out. */
const latestTag = ":latest";

/** Returns the operator's name for an id in lower case, which may lack the tag of the name. */
function nameFor(named: CatalogSnapshot["named"], id: string): string | undefined {
  if (named === undefined || named.has(id)) return named && id;
  const tagged = id + latestTag;
  return named.has(tagged) ? tagged : undefined;
}

/** A name of the operator's own takes precedence over those that vendors gave. */
function byName(catalog: CatalogSnapshot, id: string): CatalogModel | undefined {
  const { models, aliases, named } = catalog;
  const target = named?.get(nameFor(named, id) ?? id);
  const [first] = target === undefined ? [] : modelsOfAlias(target);
  const known = first === undefined || named?.has(first) ? undefined : findModel(catalog, first);
  return known ?? models.get(id) ?? models.get(aliases?.get(id) ?? "");
}

/**
 * Finds a model by id, with or without suffix shortcuts (rule 6 of the provider object). Throws
 * `model_unavailable` when there is no such model, or it has no free copy and one was requested.
 */
export function resolveModel(catalog: CatalogSnapshot, id: string): ResolvedModel {
  const exact = findModel(catalog, id);
  if (exact !== undefined) return live({ model: exact, isRouter: exact.router !== undefined });
  const { base, sort, minContext } = splitShortcuts(id);
  const model =
    (base === id ? undefined : findModel(catalog, base)) ??
    freeRouter(catalog, base) ??
    unknown(catalog, base);
  if (model === undefined) throw unknownModel(catalog, { id, base });
  if (minContext !== undefined && model.router === undefined) throw noContextSuffix(id, model);
  return live({
    model,
    ...(sort === undefined ? {} : { sort }),
    ...(minContext === undefined ? {} : { minContext }),
    isRouter: model.router !== undefined,
  });
}

/**
 * Returns whether a key's `allowed_models` include a model. A router is allowed where any of its
 * members is.
 */
export const isModelAllowed = (
  allowedModels: readonly string[] | null,
  { id, router, aliasOf }: Pick<CatalogModel, "id" | "router" | "aliasOf">,
): boolean => {
  if (allowedModels === null) return true;
  if (aliasOf !== undefined) return aliasOf.some((target) => allowedModels.includes(target));
  return router === undefined
    ? allowedModels.includes(id.toLowerCase())
    : router.members.some((member) => allowedModels.includes(member.id));
};

/** The operator's names of a snapshot, as models that lists show. */
const shownNames = new WeakMap<CatalogSnapshot, readonly CatalogModel[]>();

/**
 * Returns the operator's names as models, each like the first model that it may mean. Names of
 * models that the catalog does not have are left out.
 */
export function namedModels(catalog: CatalogSnapshot): readonly CatalogModel[] {
  let models = shownNames.get(catalog);
  if (models === undefined) {
    models = [...(catalog.named ?? [])].flatMap(([name, target]) => {
      const targets = modelsOfAlias(target).flatMap((id) => resolvable(catalog, id) ?? []);
      const [first] = targets;
      if (first === undefined) return [];
      return [{ ...first, id: name, displayName: name, aliasOf: targets.map(({ id }) => id) }];
    });
    shownNames.set(catalog, models);
  }
  return models;
}

/** Returns the models of the operator's names that the catalog does not have. */
export const nameWarnings = (catalog: CatalogSnapshot): { key: string; message: string }[] =>
  [...(catalog.named ?? [])].flatMap(([name, target]) =>
    modelsOfAlias(target)
      .filter((id) => !isUsable(catalog, id))
      .map((id) => {
        const closest = closestName(id.toLowerCase(), catalog.models.keys());
        const meant = closest === undefined ? "" : `; did you mean ${closest}?`;
        return { key: `aliases.${name}`, message: `${id} is not in the catalog${meant}` };
      }),
  );

/** Returns one of the operator's names as a model, as lists show it; undefined where it is none. */
export const namedModel = (catalog: CatalogSnapshot, id: string): CatalogModel | undefined =>
  id.includes("/")
    ? undefined
    : namedModels(catalog).find((model) => model.id === nameFor(catalog.named, id.toLowerCase()));

/** Returns whether a name may mean an id. Presets belong to workspaces, so that any may exist. */
const isUsable = (catalog: CatalogSnapshot, id: string): boolean =>
  id.startsWith("@") ||
  (resolvable(catalog, id) ?? unknown(catalog, splitShortcuts(id).base)) !== undefined;

const resolvable = (catalog: CatalogSnapshot, id: string): CatalogModel | undefined =>
  findModel(catalog, id) ?? findModel(catalog, splitShortcuts(id).base);

function live(resolved: ResolvedModel): ResolvedModel {
  if (!resolved.model.comingSoon) return resolved;
  throw new GatewayError(
    "model_unavailable",
    `The model ${resolved.model.id} is announced but not live yet.`,
    { param: "model" },
  );
}

const freeEnding = ":free";

/**
 * Resolves `service/auto:free`, another name for `service/free`, which chooses among the models
 * that cost nothing.
 */
function freeRouter(catalog: CatalogSnapshot, base: string): CatalogModel | undefined {
  if (!base.endsWith(freeEnding)) return undefined;
  const auto = findModel(catalog, base.slice(0, -freeEnding.length));
  return auto?.router?.name === "auto" ? findModel(catalog, routerId("free")) : undefined;
}

/**
 * Returns the model that an unknown id is passed to its maker as. A free copy never resolves to a
 * model that costs something.
 */
const unknown = (catalog: CatalogSnapshot, base: string): CatalogModel | undefined =>
  base.endsWith(freeEnding) ? undefined : catalog.unknown?.find(base);

/** Builds the refusal of `acme/large[1m]`: a model's context window is fixed. */
function noContextSuffix(id: string, model: CatalogModel): GatewayError {
  const message =
    `A context in brackets, as in ${JSON.stringify(id)}, is for ${routerId("auto")}: ask for ${model.id}` +
    `${model.contextLength > 0 ? `, whose window has ${model.contextLength} tokens` : ""}.`;
  return new GatewayError("model_unavailable", message, { param: "model" });
}

function unknownModel(
  catalog: CatalogSnapshot,
  { id, base }: { id: string; base: string },
): GatewayError {
  const paid = base.endsWith(freeEnding)
    ? findModel(catalog, base.slice(0, -freeEnding.length))
    : undefined;
  if (paid !== undefined) {
    const message = `There is no free copy of ${paid.id}, and ${freeEnding} never goes to a model that costs something.`;
    return new GatewayError("model_unavailable", message, { param: "model" });
  }
  const message = `The model ${JSON.stringify(id)} is not in the catalog. GET /models lists what is.`;
  const similar = (catalog.families?.get(familyOf(base.toLowerCase())) ?? []).slice(0, 3);
  if (similar.length === 0)
    return new GatewayError("model_unavailable", message, { param: "model" });
  // The id may be of a known family and newer than the facts that the gateway was installed with.
  const ways =
    "Operators read newer models with `npm run catalog:refresh`, or let the ids of known makers pass with " +
    "`catalog.unknown_models: pass_through` in switchyard.yaml.";
  return new GatewayError(
    "model_unavailable",
    `${message} Similar ids: ${similar.join(", ")}. ${ways}`,
    {
      param: "model",
      metadata: { similar_models: similar },
    },
  );
}

/** A requested id in place of which others are asked for. */
interface ExpandedId {
  /** The operator's name; undefined where the id is no such name. */
  alias: string | undefined;
  /** Model ids, the first choice first. */
  ids: readonly string[];
}

/** Returns whether a catalog has names of models that the operator or a workspace gave. */
export const hasNames = ({ named }: CatalogSnapshot): boolean =>
  named !== undefined && named.size > 0;

/**
 * Returns the models that an id means in a request: those of the operator's name, with the
 * suffix shortcuts behind it, or else the id itself. Throws `model_unavailable` where no condition
 * of the name is met.
 */
export function expandedId(
  catalog: CatalogSnapshot,
  id: string,
  facts: () => AliasFacts,
): ExpandedId {
  const { named } = catalog;
  if (named === undefined || id.includes("/")) return { alias: undefined, ids: [id] };
  const exact = id.toLowerCase();
  const asked = nameFor(named, exact) === undefined ? splitShortcuts(exact).base : exact;
  const name = nameFor(named, asked) ?? asked;
  const target = named.get(name);
  if (target === undefined) return { alias: undefined, ids: [id] };
  const ids = chooseModels(name, { target, facts: facts() });
  if (ids.length === 0) {
    const message = `The name ${JSON.stringify(name)} means no model under the conditions of this request.`;
    throw new GatewayError("model_unavailable", message, { param: "model" });
  }
  const suffix = id.slice(asked.length);
  return { alias: name, ids: ids.map((one) => one + suffix) };
}

/** A model id without its suffix shortcuts, and the meaning of those. */
export interface SplitId {
  base: string;
  sort: SortKey | undefined;
  /** Tokens. */
  minContext: number | undefined;
}

const sorts: Readonly<Record<string, SortKey>> = {
  nitro: "throughput",
  floor: "price",
  fast: "latency",
  exacto: "exacto",
};

/** Matches a minimum context in brackets, such as `[1m]` or `[500k]`. */
const contextEnding = /\[(\d{1,9})([km])\]$/i;

const tokensOf = { k: 1_000, m: 1_000_000 } as const;

/**
 * Removes the shortcuts from an id, in any order and case: `service/auto[1m]:exacto` is
 * `service/auto` with a sort and a minimum context. Throws `bad_request` where two of them
 * contradict each other.
 */
export function splitShortcuts(id: string): SplitId {
  const split: SplitId = { base: id, sort: undefined, minContext: undefined };
  // `:free` is part of the id itself, and other shortcuts may come before it.
  let isFree = false;
  for (;;) {
    const { base } = split;
    const context = base.endsWith("]") ? contextEnding.exec(base) : null;
    const start = context?.index ?? base.lastIndexOf(":");
    const word = context === null && start >= 0 ? base.slice(start + 1).toLowerCase() : "";
    if (context !== null) split.minContext = once(id, split.minContext, contextOf(context));
    else if (Object.hasOwn(sorts, word)) split.sort = once(id, split.sort, sorts[word]);
    else if (word === "free" && !isFree) isFree = true;
    else break;
    split.base = base.slice(0, start);
  }
  if (isFree) split.base += ":free";
  return split;
}

function contextOf([, digits, unit = ""]: RegExpExecArray): number {
  return Number(digits) * tokensOf[unit.toLowerCase() as keyof typeof tokensOf];
}

function once<T>(id: string, known: T | undefined, read: T): T {
  if (known === undefined || known === read) return read;
  throw new GatewayError(
    "bad_request",
    `The suffixes of ${JSON.stringify(id)} contradict each other.`,
    { param: "model" },
  );
}
