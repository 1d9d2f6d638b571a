import { brand } from "../../platform/lib/brand.ts";
import { defaultPools } from "./default-pools.ts";
import { isFreeRoute } from "./free-route.ts";
import type { CatalogModel, RouterName, RouterPool } from "./model.ts";
import { isReachable } from "./reachability.ts";

/** A `routers:` entry of switchyard.yaml. */
export interface ConfiguredRouter {
  members: readonly string[];
  quality: readonly string[];
}

/** Entries of `routers:` by preset id. */
export type ConfiguredRouters = Readonly<Record<string, ConfiguredRouter>>;

const descriptions: Readonly<Record<RouterName, { displayName: string; description: string }>> = {
  auto: {
    displayName: "Auto Router",
    description:
      "A general model, by what the request needs: tools, images, length, effort. Costs what the member that serves costs.",
  },
  free: {
    displayName: "Free Router",
    description: "Chooses among the models that cost nothing, and never goes to another.",
  },
  cowork: {
    displayName: "Cowork Router",
    description:
      "Tool-capable models with a long context, for agents. Costs what the member that serves costs.",
  },
  hermes: {
    displayName: "Hermes Router",
    description: "Tool-capable models with open weights. Costs what the member that serves costs.",
  },
  latest: {
    displayName: "Latest Router",
    description:
      "The newest model of each big maker, the newest first. Costs what the member that serves costs.",
  },
};

const routerNames = Object.keys(descriptions) as RouterName[];

/** The id of a routing preset, such as `service/auto`. */
export const routerId = (name: RouterName): string => `${brand.routerOwner}/${name}`;

/** What pools are made of. */
export interface RouterSources {
  models: ReadonlyMap<string, CatalogModel>;
  /** Other spellings of model ids. */
  aliases: ReadonlyMap<string, string>;
  configured: ConfiguredRouters;
}

/** The routing presets as models of the catalog, each with its pool; a pool may be empty. */
export function routerModels(sources: RouterSources): CatalogModel[] {
  const chat = [...sources.models.values()].filter(
    (model) => model.surface === "chat" && isReachableNow(model),
  );
  // A simulated model answers for a real one only where there is no real one.
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

/** A preset's facts are those of its members: what any of them can do, it can find a member for. */
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
