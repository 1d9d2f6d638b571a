import type { CatalogModel } from "../../../inference/catalog/model.ts";
import { chatDialectOf } from "../../../inference/pipeline/adapt.ts";
import type { ChatCall } from "../../../inference/pipeline/inference-call.ts";
import { modelFor } from "../../../inference/pipeline/plan/plan-call.ts";
import { searchDefinition, searchServer } from "../../../mcp/search/search-tool.ts";
import type { FoundPage } from "../../../mcp/search/web-search.ts";
import type { Dependencies } from "../../dependencies.ts";
import { isSearchPlugin, isSearchTool, withoutOnline } from "./asked-tools.ts";
import type { GatewayTool, SearchLimits } from "./gateway-tools.ts";
import {
  type JsonFields,
  fieldsOf,
  entriesOf,
} from "../../../platform/kernel/json/json-members.ts";
import { searchTool } from "../../../platform/kernel/models/charged-extras.ts";

const textsOf = (value: unknown): string[] =>
  entriesOf(value).filter((each): each is string => typeof each === "string");

/** Returns what a body says of its searches. */
function limitsIn(body: JsonFields): SearchLimits {
  const tool = entriesOf(body["tools"]).find(isSearchTool);
  const { filters, max_uses: uses, ...domains } = fieldsOf(tool);
  const { allowed_domains: allowed, blocked_domains: blocked } = {
    ...domains,
    ...fieldsOf(filters),
  };
  return {
    usesMax: typeof uses === "number" ? uses : Number.POSITIVE_INFINITY,
    allowedDomains: Array.isArray(allowed) ? textsOf(allowed) : undefined,
    blockedDomains: textsOf(blocked),
  };
}

/** The dialects whose providers search the web themselves. */
const searching: ReadonlySet<string> = new Set([
  "openai-responses",
  "anthropic-messages",
  "google-generate",
]);

/**
 * Returns whether every provider of a model searches the web itself, and is sent what the request
 * says of it: only some dialects have words for each other's searches.
 */
const searchesItself = ({ routes }: CatalogModel, call: ChatCall): boolean =>
  routes.every((route) => {
    const sent = call.requirements.extrasAt?.(call.routeFor?.(route) ?? route);
    return (
      (searching.has(chatDialectOf(route)) || route.price?.base.searches !== undefined) &&
      sent?.tools.some(({ name }) => name === searchTool) === true
    );
  });

/**
 * Returns the search as a tool of a request that asks for searches (`asksForSearch`); undefined
 * where every provider of its model searches for it.
 */
export function searchToolFor(
  { search, inference }: Pick<Dependencies, "search" | "inference">,
  call: ChatCall,
): GatewayTool | undefined {
  if (search === undefined) return undefined;
  const { model } = modelFor(inference, { ...call, id: String(withoutOnline(call.body["model"])) });
  if (searchesItself(model, call)) return undefined;
  return {
    name: searchDefinition.name,
    label: "",
    server: searchServer(search),
    definition: searchDefinition,
    needsApproval: false,
    search: limitsIn(call.body),
  };
}

/** Returns the members of a request without what asks for searches. */
export function searchEdits(body: JsonFields): [string, unknown][] {
  const plugins = entriesOf(body["plugins"]).filter((plugin) => !isSearchPlugin(plugin));
  return [
    ["model", withoutOnline(body["model"])],
    ["web_search_options", undefined],
    ["plugins", plugins.length === 0 ? undefined : plugins],
  ];
}

const isOfDomain = (url: string, domain: string): boolean => {
  const host = URL.canParse(url) ? new URL(url).hostname : "";
  return host === domain || host.endsWith(`.${domain}`);
};

/** Returns the pages of the domains that a request allows. */
export const allowedPages = (
  pages: readonly FoundPage[],
  { allowedDomains, blockedDomains }: SearchLimits,
): FoundPage[] =>
  pages.filter(
    ({ url }) =>
      (allowedDomains?.some((domain) => isOfDomain(url, domain)) ?? true) &&
      !blockedDomains.some((domain) => isOfDomain(url, domain)),
  );

/** A page that a text cites, and where its address is in the text. */
interface Citation {
  page: FoundPage;
  startIndex: number;
  endIndex: number;
}

/** Returns the pages whose addresses are in a text, in the order of the text. */
export function citationsIn(text: string, pages: readonly FoundPage[]): Citation[] {
  const known = new Map(pages.map((page) => [page.url, page]));
  const found = [...known.values()].flatMap((page): Citation[] => {
    const startIndex = text.indexOf(page.url);
    // An address may be the beginning of a longer one that was found too.
    const isWhole = !/^[\w/?#&=%.-]*[\w/]/.test(text.slice(startIndex + page.url.length));
    return startIndex < 0 || !isWhole
      ? []
      : [{ page, startIndex, endIndex: startIndex + page.url.length }];
  });
  return found.sort((left, right) => left.startIndex - right.startIndex);
}
