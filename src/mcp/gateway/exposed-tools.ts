import { createHash } from "node:crypto";
import type { KnownCaller } from "../../identity/keys/caller.ts";
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

/** Returns a name that models accept. Where it had to be changed or cut, a hash keeps it distinct. */
function fittingName(wanted: string, identity: string): string {
  const clean = wanted.replaceAll(nameCharacters, "_");
  if (clean === wanted && clean.length <= nameCharactersMax) return clean;
  const hash = createHash("sha256").update(identity).digest("hex").slice(0, 10);
  return `${clean.slice(0, nameCharactersMax - hash.length - 1)}_${hash}`;
}

/**
 * Returns the tools that a caller may list and call, by their exposed names. A call looks its name
 * up here, and no name is ever taken apart.
 * @param prefixed Whether names begin with their server's id, since several servers are joined.
 */
export function exposedTools(
  servers: readonly ReadServer[],
  { limits, prefixed }: { limits: ToolLimits; prefixed: boolean },
): ReadonlyMap<string, ExposedTool> {
  const exposed = new Map<string, ExposedTool>();
  for (const { server, tools } of servers) {
    for (const tool of tools) {
      if (!mayUse({ server, tool }, limits)) continue;
      const { definition } = tool;
      const identity = `${server.id}\n${definition.name}`;
      const wanted = prefixed ? `${server.id}__${definition.name}` : definition.name;
      let name = prefixed ? fittingName(wanted, identity) : wanted;
      if (exposed.has(name)) name = fittingName(`${wanted} `, identity);
      if (!exposed.has(name)) exposed.set(name, { name, server, definition });
    }
  }
  return exposed;
}

/** Returns the lists that bound the tools of a caller: of its key, and of the key that created it. */
export const keyLimitsOf = (caller: KnownCaller): ToolLimits["keys"] =>
  caller.kind === "llm-key"
    ? [caller.key.allowedTools ?? null, caller.parent?.allowedTools ?? null]
    : [];
