import {
  levelFields,
  levelOf,
  searchTool,
  type ChargedExtras,
  type Levels,
} from "../../../../platform/kernel/models/charged-extras.ts";
import type { DialectId } from "../../../canonical/dialect-id.ts";
import type { Loss } from "../../../canonical/request.ts";
import type { DialectDeviations } from "../../deviations.ts";
import { fieldsOf } from "../openai-fields.ts";
import { isOpenSearch, runsSearches, type RunPrice } from "./web-search.ts";

type Body = Readonly<Record<string, unknown>>;

/** A tool that the provider runs, as a request offers it. */
interface HostedTool {
  /** The name by which calls are priced; `web_search` for all searches of the web. */
  name: string;
  /** The place in the request, such as `tools[2]` or `web_search_options`. */
  field: string;
  /** The most calls; undefined where the request names no bound. */
  most: number | undefined;
  /** Whether providers of other dialects can be asked for it in their own words. */
  isTranslated?: true;
}

/** What a request asks for beside tokens at the ordinary price. */
export interface AskedExtras {
  levels: Levels;
  tools: readonly HostedTool[];
  /** Whether the client offers functions of its own beside them. */
  besideFunctions: boolean;
}

/** The extras that one provider is sent. */
export interface SentExtras extends Pick<AskedExtras, "levels" | "tools"> {
  upstream: DialectId;
}

/**
 * Tools without a price of their own: the client runs them, they only load what the request has,
 * or their results are charged as tokens. Sources: OpenAI's and Anthropic's price pages (2026-11).
 */
const freeTools: ReadonlySet<string> = new Set([
  "function",
  "custom",
  "namespace",
  "mcp",
  "mcp_toolset",
  "mcp_toolset_reference",
  "local_shell",
  "apply_patch",
  "programmatic_tool_calling",
]);
const freeFamilies =
  /^(?:computer|text_editor|bash|memory|browser_toolset|tool_search|web_fetch|url_context)/;
/** Tools that search the web, under the names of all vendors. */
const searches = /^(?:openrouter:)?(?:web_search\w*|x_search|google_search\w*|browser_search)$/;
/** The date or version at the end of Anthropic's tool types. */
const toolDate = /_20\d{6}$/;

/** Reads what a request of any client dialect asks for; undefined where that is nothing. */
export function askedExtras(body: Body): AskedExtras | undefined {
  const levels: Levels = {};
  let isAsked = false;
  for (const field of levelFields) {
    const level = levelOf(field, body[field]);
    if (level === undefined) continue;
    levels[field] = level;
    isAsked = true;
  }
  const tools = mayOfferTools(body) ? [...hostedTools(body), ...hostedFields(body)] : [];
  return isAsked || tools.length > 0
    ? { levels, tools, besideFunctions: tools.length > 0 && offersFunctions(body) }
    : undefined;
}

/** The fields in which a request can offer tools of its provider. */
const offeringFields = [
  "tools",
  "web_search_options",
  "search_parameters",
  "plugins",
  "fallbacks",
  "prompt",
] as const;

const mayOfferTools = (body: Body): boolean =>
  offeringFields.some((field) => isObject(body[field]));

/** Returns whether a request of any dialect but Google's offers functions of the client's own. */
const offersFunctions = ({ tools, functions }: Body): boolean =>
  [tools, functions].flat().some((tool) => {
    const { type, name } = fieldsOf(tool);
    return (type ?? null) === null ? name !== undefined : ownTypes.has(String(type));
  });

/** The types of tools that clients run themselves under any name. */
const ownTypes: ReadonlySet<string> = new Set(["function", "custom", "namespace"]);

function* hostedTools(body: Body): Generator<HostedTool> {
  const { tools } = body;
  if (!Array.isArray(tools)) return;
  const mostOfAll = countOf(body["max_tool_calls"]);
  for (const [index, value] of tools.entries()) {
    const tool = fieldsOf(value);
    for (const name of toolNames(tool)) {
      const most =
        countOf(tool.max_uses) ?? mostOfAll ?? (oncePerRequest.test(name) ? 1 : undefined);
      const translated = isOpenSearch(tool) && { isTranslated: true as const };
      yield { name, field: `tools[${index}]`, most, ...translated };
    }
  }
}

/** Returns the priced names of an entry, which of Google's may be several. */
function toolNames(tool: Body): string[] {
  const isNamed = ["type", "name", "function"].some((member) => member in tool);
  const members = isNamed ? [] : Object.keys(tool);
  const tools = members.length > 1 ? members.map((name) => ({ [name]: tool[name] })) : [tool];
  return tools.flatMap((one) => toolName(one) ?? []);
}

/** Tools that are charged once a request at most: a container that runs code. */
const oncePerRequest = /^(?:code_interpreter|shell)/;

/** Returns the size of a container as part of its price's name; empty for the smallest. */
function containerSize(tool: Body): string {
  const { memory_limit: limit } = fieldsOf(tool["container"]);
  return typeof limit === "string" && limit !== "1g" ? `_${limit}` : "";
}

/** Returns the priced name of a tool; undefined where it costs nothing beside its tokens. */
function toolName(tool: Body): string | undefined {
  const type = typeof tool["type"] === "string" ? tool["type"] : typelessName(tool);
  if (type === undefined || freeTools.has(type) || freeFamilies.test(type)) return undefined;
  if (type === "shell") return isHostedShell(tool) ? type : undefined;
  if (type === "code_interpreter") return `${type}${containerSize(tool)}`;
  if (type === "builtin_function")
    return String(fieldsOf(tool["function"]).name).includes("search") ? searchTool : type;
  return searches.test(type) ? searchTool : type.replace(toolDate, "");
}

/**
 * Tools of Google's without a price of their own. Code that runs there is charged as tokens
 * (ai.google.dev/gemini-api/docs/code-execution, "Billing", 2026-11).
 */
const freeOfGoogle: ReadonlySet<string> = new Set(["functionDeclarations", "codeExecution"]);

/** Returns the name of a tool of Google's, whose only member it is, in OpenAI's spelling. */
function typelessName(tool: Body): string | undefined {
  const [name, ...others] = Object.keys(tool);
  if (name === undefined || others.length > 0 || freeOfGoogle.has(name)) return undefined;
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const isHostedShell = (tool: Body): boolean => {
  const { type } = fieldsOf(tool["environment"]);
  return typeof type === "string" && type.startsWith("container");
};

/** Reads tools that are asked for by fields of their own. */
function* hostedFields(body: Body): Generator<HostedTool> {
  if (isObject(body["web_search_options"]))
    yield { name: searchTool, field: "web_search_options", most: 1, isTranslated: true };
  // xAI's live search; it searches unless it is off.
  if (isObject(body["search_parameters"]) && fieldsOf(body["search_parameters"]).mode !== "off")
    yield { name: searchTool, field: "search_parameters", most: undefined };
  for (const name of pluginNames(body["plugins"])) yield { name, field: "plugins", most: 1 };
  // A prompt of the provider's account adds text and tools that nothing here bounds.
  if (isObject(body["prompt"])) yield { name: "stored_prompt", field: "prompt", most: 1 };
  // Anthropic serves the request with another model, at that model's price.
  if (Array.isArray(body["fallbacks"]) && body["fallbacks"].length > 0)
    yield { name: "fallbacks", field: "fallbacks", most: 1 };
}

/** Returns the priced names of OpenRouter's plugins. */
const pluginNames = (plugins: unknown): string[] =>
  Array.isArray(plugins)
    ? plugins.flatMap((plugin) => {
        const { id, enabled } = fieldsOf(plugin);
        if (typeof id !== "string" || enabled === false || freePlugins.has(id)) return [];
        return [id === "web" ? searchTool : id];
      })
    : [];

const freePlugins: ReadonlySet<string> = new Set(["response-healing", "context-compression"]);

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null;

const countOf = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : undefined;

/** The two sides of a request: the dialect that it was written in, and that of the provider. */
interface Sides {
  client: DialectId;
  upstream: DialectId;
  deviations: DialectDeviations & { unknownMessagesFields?: readonly string[] };
  /** The prices of the route, which say whether its provider searches the web. */
  price: RunPrice;
  /** Whether the model searches where it is offered functions too. */
  searchesBesideFunctions: boolean;
}

const isOpenai = (dialect: DialectId): boolean =>
  dialect === "openai-chat" || dialect === "openai-responses";

/** Returns the extras that reach a provider; the others are lost in translation, and named. */
export function sentExtras(asked: AskedExtras, sides: Sides): SentExtras | undefined {
  const { levels, tools, besideFunctions } = asked;
  const { deviations } = sides;
  const refused = new Set([
    ...(deviations.unsupportedFields ?? []),
    ...(deviations.unknownMessagesFields ?? []),
  ]);
  const sentLevels: Levels = {};
  for (const field of levelFields) {
    const value = levels[field];
    if (value !== undefined && !refused.has(field) && carriesLevel(field, { value, sides }))
      sentLevels[field] = value;
  }
  const runs =
    (!besideFunctions || sides.searchesBesideFunctions) &&
    runsSearches(sides.upstream, sides.price);
  const sentTools = tools
    .filter((tool) => !refused.has(tool.field) && carriesTool(tool, { ...sides, runs }))
    .map((tool) => ({ ...tool, most: sentBound(tool, sides) }));
  return Object.keys(sentLevels).length === 0 && sentTools.length === 0
    ? undefined
    : { levels: sentLevels, tools: sentTools, upstream: sides.upstream };
}

function carriesLevel(
  field: string,
  { value, sides: { client, upstream } }: { value: string; sides: Sides },
): boolean {
  if (client === upstream) return true;
  if (field !== "service_tier") return false;
  if (upstream === "amazon-converse") return value === "flex" || value === "priority";
  return isOpenai(client) && isOpenai(upstream);
}

function carriesTool(
  { field, isTranslated }: HostedTool,
  { client, upstream, deviations, runs }: Sides & { runs: boolean },
): boolean {
  if (field === "plugins" && deviations.reasoningObject !== true) return false;
  return client === upstream || (isTranslated === true && runs);
}

/** Returns the most calls that reach a provider as a bound. */
function sentBound({ most }: HostedTool, { client, upstream }: Sides): number | undefined {
  const isSent = client === "anthropic-messages" && upstream === "openai-responses";
  return client === upstream || isSent ? most : undefined;
}

/** Fields that choose a price or a paid tool, and that a server may be known to refuse. */
const pricedFields = [...levelFields, "web_search_options"];

/**
 * Removes from a client's own body the fields that choose a price and that the provider does not
 * take. Returns what is lost.
 */
export function removeRefused(
  body: Body,
  { edits, deviations }: { edits: Map<string, string | undefined>; deviations: DialectDeviations },
): Loss[] {
  const { unsupportedFields } = deviations;
  if (unsupportedFields === undefined) return [];
  const refused = pricedFields.filter(
    (field) => unsupportedFields.includes(field) && (body[field] ?? null) !== null,
  );
  for (const field of refused) edits.set(field, undefined);
  return refused.map((field) => ({ field, reason: "the provider does not take it" }));
}

/** Searches and calls that are held for a tool whose request names no bound. */
const callsAssumed = 10;

/** Returns the extras in the form in which prices are looked up. */
export function extrasOf({ levels, tools, upstream }: SentExtras): ChargedExtras {
  const names = tools.flatMap(({ name }) => (name === searchTool ? [] : [name]));
  const isSearched = names.length < tools.length;
  return {
    levels,
    tools: names,
    searches: isSearched,
    uncounted: {
      // Chat has no count of searches, and only Responses shows the calls of other tools.
      ...(isSearched && upstream === "openai-chat" && { searches: 1 }),
      ...(names.length > 0 && upstream !== "openai-responses" && { toolCalls: 1 }),
    },
  };
}

/** Returns the most searches and calls of the provider's other tools that a request may make. */
export function mostCalls({ tools }: SentExtras): { searches: number; toolCalls: number } {
  const most = { searches: 0, toolCalls: 0 };
  for (const tool of tools) {
    const kind = tool.name === searchTool ? "searches" : "toolCalls";
    most[kind] += tool.most ?? callsAssumed;
  }
  return most;
}
