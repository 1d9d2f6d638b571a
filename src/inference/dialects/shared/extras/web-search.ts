import type { DialectId } from "../../../canonical/dialect-id.ts";
import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import type { OpaquePart } from "../../../canonical/message.ts";
import type { Tool, ToolChoice } from "../../../canonical/request.ts";
import type { EncodeState } from "../encode-state.ts";
import { asArray, asObject, asString } from "../wire-fields.ts";

type Value = Readonly<Record<string, unknown>>;

/** What a request may say of the searches that its provider makes. */
type SearchTerm = "allowedDomains" | "blockedDomains" | "maxUses" | "contextSize" | "userLocation";

/** The names of terms in all dialects. */
const termByName: Readonly<Record<string, SearchTerm>> = {
  allowed_domains: "allowedDomains",
  blocked_domains: "blockedDomains",
  excluded_domains: "blockedDomains",
  max_uses: "maxUses",
  search_context_size: "contextSize",
  user_location: "userLocation",
};

/** Members with terms of their own: of Responses, of OpenRouter's tool and of Google's. */
const holders: ReadonlySet<string> = new Set(["filters", "parameters", "googleSearch"]);
const unmeant: ReadonlySet<string> = new Set(["type", "name", "external_web_access"]);

/** The prices of a route, as far as they say whether its provider searches the web. */
export type RunPrice = { base: { searches?: bigint } } | undefined;

/**
 * Dialects that offer a model no search: Converse has none, and with chat's `web_search_options` each
 * request searches and pays for it, where a client of another dialect leaves it to the model.
 */
const offersNoSearch: ReadonlySet<DialectId> = new Set(["amazon-converse", "openai-chat"]);

/** Returns whether a route runs searches that a client of another dialect asks for. */
export const runsSearches = (upstream: DialectId, price: RunPrice): boolean =>
  !offersNoSearch.has(upstream) && price?.base.searches !== undefined;

/** Returns whether a tool that a provider runs searches the web, in any dialect. */
const isSearch = (value: Value): boolean =>
  /^(?:openrouter:)?web_search/.test(asString(value["type"]) ?? "") || "googleSearch" in value;

/**
 * Returns whether the tools of a request for Responses search the web, which models refuse with the
 * effort `minimal`. Source: openai/codex#3559 (2025-09).
 */
export const searchesAtOpenai = (tools: unknown): boolean =>
  (asArray(tools) ?? []).some((tool) => isSearch(asObject(tool) ?? {}));

/**
 * Returns whether a tool is a search that another provider may run: OpenAI's may be one of the pages
 * alone that OpenAI has stored.
 */
export const isOpenSearch = (value: Value): boolean =>
  isSearch(value) && value["external_web_access"] !== false;

/** Returns whether an upstream of another dialect runs the search that a tool asks for. */
export const isTranslated = (tool: Tool, state: EncodeState): boolean =>
  tool.type === "hosted" &&
  tool.dialect !== state.dialect &&
  state.options.searches === true &&
  isOpenSearch(tool.value);

/** Declares the searches that a request of another dialect asks for as lost. */
export function loseSearches(state: EncodeState, reason: string): void {
  const { tools = [], webSearch } = state.request;
  if (webSearch !== undefined) state.lose("web_search_options", reason);
  for (const [index, tool] of tools.entries())
    if (isTranslated(tool, state)) state.lose(`tools[${index}]`, reason);
}

/** Returns whether a choice forces a search. */
export const choosesSearch = ({ value }: Extract<ToolChoice, { type: "hosted" }>): boolean =>
  value.type === "tool" ? value.name === "web_search" : isSearch(value);

/**
 * Returns what a request of another dialect says of its searches, as far as the upstream has fields
 * for it, and declares everything else as lost; undefined where it may not search.
 */
export function searchTerms(
  state: EncodeState,
  known: readonly SearchTerm[],
): Partial<Record<SearchTerm, JsonValue>> | undefined {
  const { tools = [], toolChoice, webSearch } = state.request;
  const asked = tools.flatMap((tool, index) =>
    tool.type === "hosted" && isTranslated(tool, state)
      ? [{ value: tool.value, place: state.at(`tools[${index}]`) }]
      : [],
  );
  if (webSearch !== undefined && state.options.searches === true) {
    const { contextSize, userLocation } = webSearch;
    const value = {
      ...(contextSize !== undefined && { search_context_size: contextSize }),
      ...(userLocation !== undefined && { user_location: userLocation }),
    };
    asked.push({ value, place: state.at("web_search_options") });
  } else if (webSearch !== undefined) {
    state.lose("web_search_options", "what the provider charges for a search is not known");
  }
  const isLeftOut =
    toolChoice?.type === "allowed" &&
    !toolChoice.tools.some((tool) => tool.type === "hosted" && isSearch(tool.value));
  if (asked.length === 0 || isLeftOut) return undefined;
  const terms: Partial<Record<SearchTerm, JsonValue>> = {};
  for (const { value, place } of asked)
    for (const [path, name, given] of membersOf(value)) {
      const term = termByName[name];
      if (term !== undefined && known.includes(term)) terms[term] ??= given;
      else place.at(path).lose(`searches of ${state.dialect} have no such field`);
    }
  return terms;
}

/** Yields the members of a tool that say something of its searches, with their paths. */
function* membersOf(value: JsonObject, path = ""): Generator<[string, string, JsonValue]> {
  for (const [name, given] of Object.entries(value)) {
    if (unmeant.has(name) || given === null || given === undefined) continue;
    const inner = holders.has(name) ? asObject(given) : undefined;
    if (inner === undefined) yield [`${path}.${name}`, name, given];
    else yield* membersOf(inner, `${path}.${name}`);
  }
}

/** Returns the place of a user as searches of OpenAI and Anthropic have it. */
export const locationOf = (value: JsonValue | undefined): JsonObject | undefined => {
  const location = asObject(value);
  return location && { ...location, type: "approximate" };
};

/** A search that a provider has run. */
export interface RanSearch {
  id: string;
  queries: readonly string[];
  /** The addresses of the pages that it found, as far as the provider says. */
  urls: readonly string[];
  failed: boolean;
}

/** Returns a search that Gemini made beside functions, or its end; undefined for other parts. */
function geminiStep({ value }: OpaquePart): JsonObject | undefined {
  const step = asObject(value.toolCall) ?? asObject(value.toolResponse);
  return asString(step?.toolType)?.startsWith("GOOGLE_SEARCH") === true ? step : undefined;
}

/** Returns whether a part is a search that a provider has run, or half of one. */
export const isRanSearch = (part: OpaquePart): boolean => {
  const { type, name, action } = part.value;
  if (type === "web_search_call") return (asObject(action)?.type ?? "search") === "search";
  if (type === "server_tool_use") return name === "web_search";
  return type === "web_search_tool_result" || geminiStep(part) !== undefined;
};

const textsOf = (value: unknown): string[] =>
  (asArray(value) ?? []).flatMap((text) => asString(text) ?? []);
const urlsOf = (value: unknown): string[] =>
  (asArray(value) ?? []).flatMap((page) => asString(asObject(page)?.url) ?? []);

/** Reads searches from the parts of one turn; Messages has a search and its result as two parts. */
export class SearchReader {
  private readonly queries = new Map<string, string[]>();

  /** Returns the search that a part completes; undefined for all others. */
  read(part: OpaquePart): RanSearch | undefined {
    if (!isRanSearch(part)) return undefined;
    const { type, id, tool_use_id: useId, input, content, action, status } = part.value;
    if (type === "server_tool_use") {
      this.queries.set(String(id), textsOf([asObject(input)?.query]));
      return undefined;
    }
    if (type === "web_search_tool_result") {
      const queries = this.queries.get(String(useId)) ?? [];
      return {
        id: String(useId),
        queries,
        urls: urlsOf(content),
        failed: asArray(content) === undefined,
      };
    }
    const step = geminiStep(part);
    if (step !== undefined) {
      const queries = textsOf(asObject(step.args)?.queries);
      // Its end says nothing of the pages, which the citations of the answer name.
      if (step.args === undefined) return undefined;
      return { id: String(step.id), queries, urls: [], failed: false };
    }
    const { query, queries, sources } = asObject(action) ?? {};
    const named = textsOf(queries);
    return {
      id: asString(id) ?? "",
      queries: named.length > 0 ? named : textsOf([query]),
      urls: urlsOf(sources),
      failed: status === "failed",
    };
  }
}
