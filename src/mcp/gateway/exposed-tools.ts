import { createHash } from "node:crypto";
import { keysOf, type KnownCaller } from "../../identity/keys/caller.ts";
import {
  isUsable,
  type PinnedTool,
  type ToolDefinition,
  type UpstreamServer,
} from "./upstream-server.ts";

/** A server with its tools as they were last read. */
export interface ReadServer {
  server: UpstreamServer;
  tools: readonly PinnedTool[];
  /** The reason why its tools could not be read; null where they could. */
  error: string | null;
  checkedAtMs: number | null;
  /** Set where the person has yet to connect the server. */
  needsConnection?: true;
}

/** A tool under the name by which a caller may list and call it. */
export interface ExposedTool {
  name: string;
  server: UpstreamServer;
  definition: ToolDefinition;
}

/** What narrows the tools of a caller. Each member is a list of `server` or `server/tool`. */
export interface ToolLimits {
  /** The tools that the key may use, and those of the key that created it; null means all. */
  keys: readonly (readonly string[] | null)[];
  /** The tools that the request asks for; null means all. An empty list leaves none. */
  request: readonly string[] | null;
}

/** The most characters of a tool's name at any model (OpenAI, Anthropic: 64). */
const nameCharactersMax = 64;

const nameCharacters = /[^a-zA-Z0-9_-]/g;

/** Returns whether a list of `server` and `server/tool` includes a tool. */
const includes = (
  list: readonly string[] | null,
  { server, tool }: { server: string; tool: string },
): boolean =>
  list === null || list.some((entry) => entry === server || entry === `${server}/${tool}`);

/**
 * Decides whether a tool may be listed and called: its definition is the pinned one, its server
 * allows it, the key allows it, and the request asks for it. There is no other rule.
 */
const mayUse = (
  { server, tool }: { server: UpstreamServer; tool: PinnedTool },
  { keys, request }: ToolLimits,
): boolean => {
  const { name } = tool.definition;
  const place = { server: server.id, tool: name };
  return (
    isUsable(tool) &&
    (server.allowedTools?.includes(name) ?? true) &&
    keys.every((list) => includes(list, place)) &&
    includes(request, place)
  );
};

/** Returns whether a caller may use anything of a server. */
export const mayReach = (serverId: string, { keys, request }: ToolLimits): boolean =>
  [...keys, request].every(
    (list) =>
      list === null || list.some((entry) => entry === serverId || entry.startsWith(`${serverId}/`)),
  );

/**
 * Returns whether a caller may use what a server has beside tools. Lists of tools mean those tools
 * and nothing else, so each of them has to name the server as a whole.
 */
export const mayUseWhole = (
  { id, allowedTools }: Pick<UpstreamServer, "id" | "allowedTools">,
  { keys, request }: ToolLimits,
): boolean =>
  allowedTools === null && [...keys, request].every((list) => list === null || list.includes(id));

/** Returns a name that models accept. Where it had to be changed or cut, a hash keeps it distinct. */
function fittingName(wanted: string, identity: string): string {
  const clean = wanted.replaceAll(nameCharacters, "_");
  if (clean === wanted && clean.length <= nameCharactersMax) return clean;
  const hash = createHash("sha256").update(identity).digest("hex").slice(0, 10);
  return `${clean.slice(0, nameCharactersMax - hash.length - 1)}_${hash}`;
}

/**
 * Returns values by the names under which callers know them. A name is looked up in the map and is
 * never taken apart.
 * @param prefixed Whether names begin with their server's id, since several servers are joined.
 */
export function exposedNames<Value>(
  named: readonly { serverId: string; name: string; value: Value }[],
  { prefixed }: { prefixed: boolean },
): ReadonlyMap<string, Value> {
  const exposed = new Map<string, Value>();
  for (const { serverId, name: own, value } of named) {
    const identity = `${serverId}\n${own}`;
    const wanted = prefixed ? `${serverId}__${own}` : own;
    let name = prefixed ? fittingName(wanted, identity) : wanted;
    if (exposed.has(name)) name = fittingName(`${wanted} `, identity);
    if (!exposed.has(name)) exposed.set(name, value);
  }
  return exposed;
}

/** Returns the tools that a caller may list and call, by their exposed names. */
export function exposedTools(
  servers: readonly ReadServer[],
  { limits, prefixed }: { limits: ToolLimits; prefixed: boolean },
): ReadonlyMap<string, ExposedTool> {
  const usable = servers.flatMap(({ server, tools }) =>
    tools
      .filter((tool) => mayUse({ server, tool }, limits))
      .map(({ definition }) => ({
        serverId: server.id,
        name: definition.name,
        value: { server, definition },
      })),
  );
  const named = exposedNames(usable, { prefixed });
  return new Map([...named].map(([name, tool]) => [name, { name, ...tool }]));
}

/** Returns the lists that bound the tools of a caller: of its key, and of the keys above it. */
export const keyLimitsOf = (caller: KnownCaller): ToolLimits["keys"] =>
  caller.kind === "llm-key" ? keysOf(caller).map((key) => key.allowedTools ?? null) : [];
