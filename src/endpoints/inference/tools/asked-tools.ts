import type { ConfiguredSearch } from "../../../platform/config/search-settings.ts";
import {
  type JsonFields,
  isObject,
  fieldsOf,
  entriesOf,
} from "../../../platform/kernel/json/json-members.ts";

const has = (list: unknown, isAsked: (entry: unknown) => boolean): boolean =>
  entriesOf(list).some(isAsked);

/** Returns whether an entry of `plugins` is OpenRouter's parser of files. */
export const isParserPlugin = (plugin: unknown): boolean =>
  fieldsOf(plugin)["id"] === "file-parser";

/** Returns whether a body asks for its files to be read as text. */
export const asksForParser = ({ plugins }: JsonFields): boolean => has(plugins, isParserPlugin);

/** Returns whether an entry of `tools` is a server of MCP tools. */
export const isMcpTool = (tool: unknown): boolean => fieldsOf(tool)["type"] === "mcp";

/** Returns whether a body asks for tools of MCP servers. */
export const asksForMcp = ({ tools }: JsonFields): boolean => has(tools, isMcpTool);

/** Returns whether a body of Messages names MCP servers of its own (Anthropic's connector). */
export const asksForConnector = ({ mcp_servers: servers }: JsonFields): boolean =>
  Array.isArray(servers) && servers.length > 0;

/** Returns whether an entry of `tools` is a search of the web, in any dialect. */
export const isSearchTool = (tool: unknown): boolean =>
  /^(?:openrouter:)?web_search/.test(String(fieldsOf(tool)["type"] ?? ""));

/** Returns whether an entry of `plugins` is OpenRouter's search of the web. */
export const isSearchPlugin = (plugin: unknown): boolean => fieldsOf(plugin)["id"] === "web";

/** The ending of a model's id that asks for searches (OpenRouter). */
const onlineSuffix = ":online";

/** Returns a model's id without the ending that asks for searches. */
export const withoutOnline = (model: unknown): unknown =>
  typeof model === "string" && model.endsWith(onlineSuffix)
    ? model.slice(0, -onlineSuffix.length)
    : model;

/** Returns whether a body asks for searches, and the operator has configured them. */
export const asksForSearch = (
  { search }: { search: ConfiguredSearch | undefined },
  body: JsonFields,
): boolean =>
  search !== undefined &&
  (has(body["tools"], isSearchTool) ||
    has(body["plugins"], isSearchPlugin) ||
    isObject(body["web_search_options"]) ||
    withoutOnline(body["model"]) !== body["model"]);
