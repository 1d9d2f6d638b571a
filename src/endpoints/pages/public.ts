import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { listModels, parseModelListQuery } from "../../inference/catalog/list-models.ts";
import type { CatalogModel } from "../../inference/catalog/model.ts";
import {
  catalogModelPage,
  catalogPage,
  catalogSearch,
  type CatalogEntry,
} from "../../pages/catalog-page.ts";
import type { Page } from "../../pages/page.ts";
import {
  statusFeed,
  statusFeedPath,
  statusPage,
  type StatusFacts,
} from "../../pages/status-page.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { isListedFor, modelsToList, shownObject } from "../catalog/sub-route.ts";
import type { Dependencies } from "../dependencies.ts";
import { healthHistoryOf, publicCaching } from "../insights/health.ts";
import { pageResponse, pageRoute } from "./page-response.ts";

/** Returns a page that is the same for all visitors, so that caches may keep it. */
function publicPage(context: RequestContext<unknown>, page: Page): Response {
  const response = pageResponse(context, page);
  response.headers.set("cache-control", publicCaching);
  return response;
}

const names: Readonly<Record<string, string>> = {
  api: "Requests",
  providers: "Providers",
  smoke_tests: "Smoke tests",
  workflows: "Background work",
  routing: "Routing",
  postgres: "Database",
};

/** Returns the name of a provider; one that has left the catalog keeps its id. */
const nameIn = ({ inference }: Pick<Dependencies, "inference">, id: string): string =>
  inference.catalog().providers.get(id)?.name ?? id;

/** The parts that the status page and its feed read. */
type StatusParts = Pick<Dependencies, "insights" | "routeHistory" | "clock" | "inference">;

async function statusOf(deps: StatusParts): Promise<StatusFacts> {
  const {
    status,
    description,
    checked_at: checkedAt,
    components,
  } = deps.insights.health.snapshot();
  const { providers, incidents, notices } = await healthHistoryOf(deps);
  // The database of an installation on SQLite has no signal of its own, which visitors would take for trouble.
  const isUnused = components.postgres.status === "no_signal";
  const shown = Object.entries(components).filter(
    ([name, component]) =>
      component !== null && names[name] !== undefined && !(name === "postgres" && isUnused),
  );
  return {
    status,
    description,
    checkedAt,
    providers: providers.map((each) => ({ ...each, name: nameIn(deps, each.id) })),
    incidents: incidents.map((each) => ({ ...each, name: nameIn(deps, each.upstream_id) })),
    notices,
    components: shown.map(([name, component]) => ({
      name: names[name] ?? name,
      status: component?.status ?? "",
      description: component?.description ?? "",
    })),
  };
}

export const statusPageEndpoint = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/status",
  summary: "Show the status page.",
  handle: async (context, deps: StatusParts) =>
    publicPage(context, statusPage(await statusOf(deps))),
});

export const statusFeedEndpoint = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: statusFeedPath,
  summary: "Show incidents as an Atom feed.",
  otherResponseTypes: ["application/atom+xml"],
  handle: async (context, deps: StatusParts & Pick<Dependencies, "publicUrl">) =>
    new Response(statusFeed(await statusOf(deps), deps.publicUrl()), {
      headers: {
        ...context.headers,
        "content-type": "application/atom+xml; charset=utf-8",
        "cache-control": publicCaching,
        "x-content-type-options": "nosniff",
      },
    }),
});

const nobody = { kind: "anonymous", address: "" } as const;

function entryOf(
  model: CatalogModel,
  { inference }: Pick<Dependencies, "inference">,
): CatalogEntry {
  const shown = shownObject(model, { inference });
  const pricing: Readonly<Record<string, unknown>> = { ...shown.pricing };
  const number = (value: unknown): number | undefined =>
    typeof value === "number" ? value : undefined;
  return {
    id: shown.id,
    name: shown.display_name,
    category: shown.category,
    contextLength: shown.context_length,
    description: shown.description,
    capabilities: shown.capabilities,
    parameters: shown.supported_parameters ?? [],
    inputPrice: number(pricing["input_per_1m"]),
    outputPrice: number(pricing["output_per_1m"]),
    providers: shown.per_upstream.map(({ provider, pricing: own, data_policy: policy }) => ({
      name: nameIn({ inference }, provider),
      inputPrice: own?.["input_per_1m"],
      outputPrice: own?.["output_per_1m"],
      zdr: policy.zdr === true,
    })),
  };
}

const listed = (deps: Pick<Dependencies, "inference">): readonly CatalogModel[] =>
  listModels(modelsToList(deps, nobody), {
    query: { ...parseModelListQuery(new URLSearchParams()), all: false },
    isRoutable: isListedFor(deps, nobody),
    weeklyRequests: () => 0,
  });

export const catalogPageEndpoint = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/catalog",
  summary: "Show the page of available models.",
  handle: (context, deps: Pick<Dependencies, "inference">) =>
    publicPage(
      context,
      catalogPage(
        listed(deps).map((model) => entryOf(model, deps)),
        catalogSearch(context.query),
      ),
    ),
});

export const catalogModelPageEndpoint = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/catalog/:owner/:model",
  summary: "Show the page of a model.",
  handle(context, deps: Pick<Dependencies, "inference">) {
    const id = `${context.param("owner")}/${context.param("model")}`;
    const model = listed(deps).find((each) => each.id === id);
    if (model === undefined)
      throw new GatewayError("not_found", `There is no model ${id} in the catalog.`);
    return publicPage(context, catalogModelPage(entryOf(model, deps)));
  },
});
