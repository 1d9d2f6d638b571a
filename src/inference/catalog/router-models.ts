import { brand } from "../../platform/kernel/brand.ts";
import { closestName } from "../../platform/kernel/schema-problems.ts";
import {
  isFreeRoute,
  isReachable,
  type CatalogModel,
  type RouterName,
  type RouterPool,
} from "./model.ts";

/** A `routers:` entry of switchyard.yaml. */
interface ConfiguredRouter {
  members: readonly string[];
  quality: readonly string[];
}

/** Entries of `routers:` by preset id. */
export type ConfiguredRouters = Readonly<Record<string, ConfiguredRouter>>;

const descriptions: Readonly<Record<RouterName, { displayName: string; description: string }>> = {
  auto: {
    displayName: "Auto Router",
    description:
      "Chooses a general model by the needs of the request: tools, images, length, effort. Priced as the model that serves.",
  },
  free: {
    displayName: "Free Router",
    description: "Chooses among free models only.",
  },
  cowork: {
    displayName: "Cowork Router",
    description:
      "Chooses among models with tool calls and a long context, for agents. Priced as the model that serves.",
  },
  hermes: {
    displayName: "Hermes Router",
    description:
      "Chooses among models with tool calls and open weights. Priced as the model that serves.",
  },
  latest: {
    displayName: "Latest Router",
    description:
      "Chooses among the newest models of the large model makers, newest first. Priced as the model that serves.",
  },
};

const routerNames = Object.keys(descriptions) as RouterName[];

/** Returns the id of a routing preset, such as `service/auto`. */
export const routerId = (name: RouterName): string => `${brand.routerOwner}/${name}`;

/** The sources of pools. */
export interface RouterSources {
  models: ReadonlyMap<string, CatalogModel>;
  /** Other spellings of model ids. */
  aliases: ReadonlyMap<string, string>;
  configured: ConfiguredRouters;
}

/** Returns the routing presets as models of the catalog, each with its pool, which may be empty. */
export function routerModels(sources: RouterSources): CatalogModel[] {
  const chat = [...sources.models.values()].filter(
    (model) => model.surface === "chat" && isReachableNow(model),
  );
  // A simulated model is used only where there is no real one.
  const real = chat.filter((model) => model.routes.some(({ provider }) => !provider.simulated));
  const reachable = real.length > 0 ? real : chat;
  return routerNames.map((name) => {
    const configured = sources.configured[routerId(name)];
    const pool =
      configured === undefined
        ? { ...defaultPools[name](reachable), missing: [] }
        : configuredPool(name, configured, sources);
    return routerModel({ name, ...pool });
  });
}

/** Returns the members of configured pools that serve nothing, each with the likely name. */
export function memberWarnings({
  models,
}: {
  models: ReadonlyMap<string, CatalogModel>;
}): { key: string; message: string }[] {
  return [...models.values()].flatMap(({ id: routerId, router }) =>
    (router?.missing ?? []).map(({ id, reason }) => {
      const closest = models.has(id.toLowerCase()) ? undefined : closestName(id, models.keys());
      const meant = closest === undefined ? "" : `; did you mean ${closest}?`;
      return { key: `routers.${routerId}`, message: `${id} is ${reason} and is left out${meant}` };
    }),
  );
}

const anyDialect = { has: () => true };

const isReachableNow = (model: CatalogModel): boolean =>
  model.routes.some((route) => isReachable(route, model, anyDialect));

type Pool = Omit<RouterPool, "name">;

function configuredPool(
  name: RouterName,
  { members, quality }: ConfiguredRouter,
  sources: RouterSources,
): Pool {
  const missing: { id: string; reason: string }[] = [];
  const find = (id: string): CatalogModel[] => {
    const lower = id.toLowerCase();
    const model = sources.models.get(lower) ?? sources.models.get(sources.aliases.get(lower) ?? "");
    const reason = whyNotMember(name, model);
    if (model !== undefined && reason === undefined) return [model];
    missing.push({ id, reason: reason ?? "not in the catalog" });
    return [];
  };
  const first = new Set(quality.flatMap(find));
  const named = new Set(quality.map((id) => id.toLowerCase()));
  const all = new Set([
    ...first,
    ...members.filter((id) => !named.has(id.toLowerCase())).flatMap(find),
  ]);
  return { members: [...all], qualityCount: first.size, missing };
}

function whyNotMember(name: RouterName, model: CatalogModel | undefined): string | undefined {
  if (model === undefined) return "not in the catalog";
  if (model.surface !== "chat") return "not a chat model";
  if (name === "free" && !model.routes.some((route) => isFreeRoute(model, route)))
    return "not free";
  return undefined;
}

const union = (lists: readonly (readonly string[])[]): string[] => [...new Set(lists.flat())];

/**
 * Returns a preset's model. Its facts are those of its members: what any of them can do, the preset
 * can.
 */
function routerModel(router: RouterPool): CatalogModel {
  const { members } = router;
  const parameters = members.flatMap(({ supportedParameters }) =>
    supportedParameters === undefined ? [] : [supportedParameters],
  );
  return {
    id: routerId(router.name),
    ...descriptions[router.name],
    owner: brand.routerOwner,
    surface: "chat",
    category: "text",
    contextLength: members.reduce(
      (longest, { contextLength }) => Math.max(longest, contextLength),
      0,
    ),
    capabilities:
      members.length === 0 ? ["chat"] : union(members.map(({ capabilities }) => capabilities)),
    ...(parameters.length === 0 ? {} : { supportedParameters: union(parameters) }),
    addedAtMs: 0,
    routes: members.flatMap(({ routes }) => routes),
    router,
  };
}

/** The members of a routing preset that is not configured. */
interface DefaultPool {
  members: readonly CatalogModel[];
  /** The number of quality members, which are the first ones. */
  qualityCount: number;
}

/** The most members of a pool; more make no request safer and every plan slower. */
const membersMax = 8;
/**
 * The most free members. Free models are rate limited, so more of them are needed; a catalog may
 * have hundreds.
 */
const freeMembersMax = 10;
/**
 * The price of output above which a model that was not named is too expensive: 40 USD per million
 * tokens, in pico-USD per token.
 */
const outputPicoUsdMax = 40_000_000n;
/** The context, in tokens, that an agent's session grows to. */
const agentContextMin = 200_000;

/** Owners of the general models that most requests use. */
const bigMakers: ReadonlySet<string> = new Set([
  "anthropic",
  "openai",
  "google",
  "x-ai",
  "deepseek",
  "qwen",
  "z-ai",
  "moonshotai",
  "mistralai",
  "meta-llama",
  "minimax",
]);

const anyOf = (...patterns: readonly RegExp[]): RegExp =>
  new RegExp(patterns.map(({ source }) => source).join("|"));

/** Matches models for one task, which do not suit a general request. */
const specialName = anyOf(
  /guard|safety|safeguard|ocr|translat|math|embed|rerank|roleplay|-her\b/,
  /audio|tts|realtime|image/,
  /customtools|multi-agent/,
);
/** Matches models for programming, which suit an agent and not a general request. */
const codeName = /cod(?:e|er|ex|estral)\b|devstral|build/;
/**
 * Matches editions of a model: moving names, previews, faster and more expensive ones, dated
 * copies.
 */
const editionName = anyOf(
  /-(?:latest|preview|beta|exp|fast|turbo|highspeed|lightning|spark|non-reasoning)(?:$|[-:])/,
  /-(?:pro-\d+|\d{6,8}|\d{4}-\d{2}-\d{2}|\d{4})(?:$|[-:])/,
);
/** Matches small models, which serve light requests. */
const smallName = /mini|nano|lite|flash|small|haiku|micro|scout|gemma|air\b/;
/** Matches models with fewer than twenty billion parameters by their names. */
const tinyName = /-(?:\d|1\d)(?:\.\d+)?b\b/;
/** Matches families with open weights; a parameter count in a name implies them, too. */
const openName = anyOf(
  /^nousresearch\/|\/gpt-oss|\/llama-|\/deepseek-(?:v|r)\d|\/kimi-k[\d.]+|\/minimax-m[\d.]+|\/nemotron-|\/gemma-/,
  /\/glm-[\d.]+(?:-air)?$/,
  /-\d+(?:\.\d+)?b(?:-|$)/,
);

type Test = (model: CatalogModel) => boolean;

const isNamed =
  (pattern: RegExp): Test =>
  ({ id }) =>
    pattern.test(id);
const takesTools: Test = ({ capabilities }) => capabilities.includes("function-calling");
const isFree: Test = ({ id }) => id.endsWith(":free");
const isSpecial = isNamed(specialName);

const isAffordable: Test = ({ routes }) =>
  routes.some(({ price }) => price !== undefined && price.base.outputTokens <= outputPicoUsdMax);

const byAge = (left: CatalogModel, right: CatalogModel): number => right.addedAtMs - left.addedAtMs;

const highestPrice = ({ routes }: CatalogModel): number =>
  routes.reduce((most, { price }) => Math.max(most, Number(price?.base.outputTokens ?? 0n)), 0);

/**
 * Sorts models newest first; of two from one day, the more expensive one first, which is the
 * larger.
 */
const newestFirst = (models: readonly CatalogModel[]): CatalogModel[] =>
  [...models].sort((left, right) => byAge(left, right) || highestPrice(right) - highestPrice(left));

/** Returns the newest model of each owner, newest first. */
function newestOfEach(models: readonly CatalogModel[]): CatalogModel[] {
  const makers = new Set<string>();
  return newestFirst(models).filter(
    ({ owner }) => !makers.has(owner) && makers.add(owner) !== undefined,
  );
}

/**
 * Returns whether a model serves any request: no preview, no special task, no free copy, at a price
 * that is acceptable without being named.
 */
const isGeneral: Test = (model) =>
  takesTools(model) &&
  isAffordable(model) &&
  !isFree(model) &&
  !isSpecial(model) &&
  !isNamed(editionName)(model);

const isBig: Test = ({ owner }) => bigMakers.has(owner);
const isTiny = isNamed(tinyName);
const isSmall: Test = (model) => isTiny(model) || isNamed(smallName)(model);
const isCode = isNamed(codeName);

/**
 * Returns the pool when no model of a preset's own kind exists: tool-capable models before others,
 * newest first.
 */
function anyModels(models: readonly CatalogModel[]): DefaultPool {
  const usable = newestFirst(models.filter((model) => !isSpecial(model)));
  const members = [
    ...usable.filter(takesTools),
    ...usable.filter((model) => !takesTools(model)),
  ].slice(0, membersMax);
  return { members, qualityCount: 0 };
}

/**
 * Returns the pool `auto`: the newest general model of each big owner, newest first, followed by
 * each owner's newest small one for light requests.
 */
function autoPool(models: readonly CatalogModel[]): DefaultPool {
  const general = models.filter((model) => isBig(model) && isGeneral(model) && !isCode(model));
  const large = newestOfEach(general.filter((model) => !isSmall(model))).slice(0, membersMax);
  const small = newestOfEach(general.filter(isSmall)).slice(0, membersMax / 2);
  if (large.length + small.length === 0) return anyModels(models);
  return { members: [...large, ...small], qualityCount: large.length };
}

/**
 * Returns the pool `free`: models tagged free, those with tools first, then those with the larger
 * context.
 */
function freePool(models: readonly CatalogModel[]): DefaultPool {
  const free = models.filter((model) => isFree(model) && !isSpecial(model));
  const members = free.sort(
    (left, right) =>
      Number(takesTools(right)) - Number(takesTools(left)) ||
      right.contextLength - left.contextLength,
  );
  return { members: members.slice(0, freeMembersMax), qualityCount: 0 };
}

/**
 * Returns the pool `cowork`: tool-capable models that hold an agent's session and reason, one of
 * each owner.
 */
function coworkPool(models: readonly CatalogModel[]): DefaultPool {
  const fit = models.filter(
    (model) =>
      isGeneral(model) &&
      !isSmall(model) &&
      model.contextLength >= agentContextMin &&
      model.capabilities.includes("reasoning"),
  );
  const members = newestOfEach(fit.some(isBig) ? fit.filter(isBig) : fit).slice(0, membersMax);
  return members.length === 0
    ? anyModels(models.filter(takesTools))
    : { members, qualityCount: members.length };
}

/**
 * Returns the pool `hermes`: tool-capable models with open weights, one of each owner; the Hermes
 * family itself first.
 */
function hermesPool(models: readonly CatalogModel[]): DefaultPool {
  const open = newestOfEach(
    models.filter((model) => isGeneral(model) && isNamed(openName)(model) && !isTiny(model)),
  );
  const members = [
    ...open.filter(isNamed(/\/hermes-/)),
    ...open.filter((model) => !isNamed(/\/hermes-/)(model)),
  ].slice(0, membersMax);
  return { members, qualityCount: members.length };
}

/** Returns the pool `latest`: the newest general model of each big owner, newest first. */
function latestPool(models: readonly CatalogModel[]): DefaultPool {
  const members = newestOfEach(
    models.filter((model) => isBig(model) && isGeneral(model) && !isCode(model)),
  );
  return members.length === 0
    ? anyModels(newestOfEach(models))
    : { members, qualityCount: members.length };
}

/**
 * The choice of each preset's pool without configuration, from the chat models that this process
 * reaches.
 */
const defaultPools: Readonly<Record<RouterName, (models: readonly CatalogModel[]) => DefaultPool>> =
  {
    auto: autoPool,
    free: freePool,
    cowork: coworkPool,
    hermes: hermesPool,
    latest: latestPool,
  };
