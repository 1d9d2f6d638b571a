import { createHash } from "node:crypto";
import type { ConfiguredSearch } from "../../platform/config/search-settings.ts";
import { isObject } from "../../platform/kernel/json/json-members.ts";

/**
 * How a server is reached: over Streamable HTTP, or as a process of the operator's machine. The
 * search of the web is called as a server's tool is, and is none.
 */
type ServerTarget =
  | { transport: "streamable_http"; url: string }
  | {
      transport: "stdio";
      command: string;
      args: readonly string[];
      env: Readonly<Record<string, string>>;
    }
  | { transport: "search"; search: ConfiguredSearch };

/** The client that a server's authorization server knows; absent registers one. */
interface OauthClientSettings {
  clientId?: string | undefined;
  clientSecret?: string | undefined;
  scope?: string | undefined;
}

/** How the gateway authenticates to a server. The caller's own credential is never sent. */
export type ServerAuth =
  | { type: "none" }
  | { type: "headers"; headers: Readonly<Record<string, string>> }
  | ({ type: "oauth" | "oauth_per_person" } & OauthClientSettings);

/** An MCP server that the gateway calls for its callers. */
export interface UpstreamServer {
  /** The name in paths and labels. */
  id: string;
  name: string;
  /** The workspace that registered it; null where the operator did. */
  workspaceId: string | null;
  target: ServerTarget;
  auth: ServerAuth;
  /** The tools that may be listed and called; null means all of them. */
  allowedTools: readonly string[] | null;
  /** The price of a call, in nano-USD. */
  priceNanoUsd: bigint;
  timeoutMs: number;
  /** The most bytes of a result that are passed on. */
  resultBytesMax: number;
  createdAtMs: number | null;
  updatedAtMs: number | null;
}

/** The ids of servers: they are part of paths and of tools' names. */
export const serverIdPattern = /^[a-z0-9][a-z0-9-]{0,22}$/;

/** The id of all servers of a caller together. */
export const allServers = "all";

/** The caller whose session at a server it is, and the person whose tokens are used there. */
export interface ServerUser {
  /** The name of the session. */
  session: string;
  workspaceId: string;
  personId: string;
}

/** Returns whether a server is used with tokens that people have given the gateway. */
export const usesOauth = ({ auth }: Pick<UpstreamServer, "auth">): boolean =>
  auth.type === "oauth" || auth.type === "oauth_per_person";

/** The defaults of a server's limits. */
export const defaultTimeoutMs = 60_000;
export const defaultResultBytes = 256 * 1024;

/** Returns the name under which the tools of a server are stored. */
export const storageKeyOf = ({
  id,
  workspaceId,
}: Pick<UpstreamServer, "id" | "workspaceId">): string => `${workspaceId ?? "operator"}/${id}`;

/** Hints of a tool about its effect (MCP, "ToolAnnotations"). */
interface ToolHints {
  title?: string;
  readOnlyHint?: boolean;
  [hint: string]: unknown;
}

/** A tool as its server defines it. Other members are kept. */
export interface ToolDefinition {
  name: string;
  title?: string;
  description?: string;
  inputSchema: Record<string, unknown>;
  annotations?: ToolHints;
  [member: string]: unknown;
}

/** A tool with the definition that is in force, pinned by its hash. */
export interface PinnedTool {
  definition: ToolDefinition;
  hash: string;
  /**
   * A definition that its server sends now and that no one has accepted yet. The tool is neither
   * listed nor callable until then.
   */
  changed?: { definition: ToolDefinition; hash: string };
  /** Set while the server does not list the tool. The pin stays, so that it cannot return changed. */
  gone?: true;
}

/** Returns JSON whose members are sorted, so that equal values have equal texts. */
function canonicalText(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    isObject(each)
      ? Object.fromEntries(
          Object.entries(each).sort(([left], [right]) =>
            left < right ? -1 : left > right ? 1 : 0,
          ),
        )
      : each,
  );
}

/** Returns the hash that pins a definition: of its name, texts, schemas and hints. */
export const hashOf = (definition: ToolDefinition): string =>
  createHash("sha256").update(canonicalText(definition)).digest("hex");

/**
 * Returns the pins after a server has listed its tools. New tools are pinned as they are. A tool
 * whose definition differs from its pin is quarantined, unless `accepts` names it.
 */
export function pinnedTools(
  pinned: readonly PinnedTool[],
  { listed, accepts }: { listed: readonly ToolDefinition[]; accepts: (name: string) => boolean },
): PinnedTool[] {
  const before = new Map(pinned.map((tool) => [tool.definition.name, tool]));
  const now = new Map(listed.map((definition) => [definition.name, definition]));
  const present = [...now.values()].map((definition): PinnedTool => {
    const hash = hashOf(definition);
    const pin = before.get(definition.name);
    if (pin === undefined || pin.hash === hash || accepts(definition.name))
      return { definition, hash };
    return { definition: pin.definition, hash: pin.hash, changed: { definition, hash } };
  });
  const gone = pinned
    .filter(({ definition }) => !now.has(definition.name))
    .map(({ definition, hash }): PinnedTool => ({ definition, hash, gone: true }));
  return [...present, ...gone];
}

/** Returns whether a tool may be used: its server lists it, and as it was pinned. */
export const isUsable = ({ changed, gone }: PinnedTool): boolean =>
  changed === undefined && gone === undefined;
