import type { Dependencies } from "../../dependencies.ts";

type Members = Readonly<Record<string, unknown>>;

const membersOf = (value: unknown): Members => Object(value) as Members;

const has = (list: unknown, isAsked: (entry: unknown) => boolean): boolean =>
  Array.isArray(list) && list.some(isAsked);

/** Returns whether an entry of `plugins` is OpenRouter's parser of files. */
export const isParserPlugin = (plugin: unknown): boolean =>
  membersOf(plugin)["id"] === "file-parser";

/** Returns whether a body asks for its files to be read as text. */
export const asksForParser = ({ plugins }: Members): boolean => has(plugins, isParserPlugin);

/** Returns whether an entry of `tools` is a server of MCP tools. */
export const isMcpTool = (tool: unknown): boolean => membersOf(tool)["type"] === "mcp";

/** Returns whether a body asks for tools of MCP servers. */
export const asksForMcp = ({ tools }: Members): boolean => has(tools, isMcpTool);

/** Returns whether a body of Messages names MCP servers of its own (Anthropic's connector). */
export const asksForConnector = ({ mcp_servers: servers }: Members): boolean =>
  Array.isArray(servers) && servers.length > 0;

/** Returns whether an entry of `tools` is a search of the web, in any dialect. */
export const isSearchTool = (tool: unknown): boolean =>
  /^(?:openrouter:)?web_search/.test(String(membersOf(tool)["type"] ?? ""));

/** Returns whether an entry of `plugins` is OpenRouter's search of the web. */
export const isSearchPlugin = (plugin: unknown): boolean => membersOf(plugin)["id"] === "web";

/** The ending of a model's id that asks for searches (OpenRouter). */
const onlineSuffix = ":online";

/** Returns a model's id without the ending that asks for searches. */
export const withoutOnline = (model: unknown): unknown =>
  typeof model === "string" && model.endsWith(onlineSuffix)
    ? model.slice(0, -onlineSuffix.length)
    : model;

/** Returns whether a body asks for searches, and the operator has configured them. */
export const asksForSearch = ({ search }: Pick<Dependencies, "search">, body: Members): boolean =>
  search !== undefined &&
  (has(body["tools"], isSearchTool) ||
    has(body["plugins"], isSearchPlugin) ||
    membersOf(body["web_search_options"]) === body["web_search_options"] ||
    withoutOnline(body["model"]) !== body["model"]);
