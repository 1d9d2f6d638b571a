import { createHash } from "node:crypto";
import type { LlmKeyCaller } from "../../../identity/keys/caller.ts";
import {
  exposedTools,
  keyLimitsOf,
  type ReadServer,
  type ToolLimits,
} from "../../../mcp/gateway/exposed-tools.ts";
import { userOf } from "../../../mcp/gateway/tool-calls.ts";
import {
  defaultResultBytes,
  defaultTimeoutMs,
  hashOf,
  type ToolDefinition,
  type UpstreamServer,
} from "../../../mcp/gateway/upstream-server.ts";
import { badField } from "../../../platform/kernel/errors.ts";
import type { Dependencies } from "../../dependencies.ts";
import { isMcpTool } from "./asked-tools.ts";
import { mcpToolSchema, type McpToolRequest } from "./mcp-tool-schema.ts";

/** What a request says of its searches. */
export interface SearchLimits {
  /** The most searches. */
  usesMax: number;
  /** The domains that pages may be of; undefined means every one. */
  allowedDomains: readonly string[] | undefined;
  blockedDomains: readonly string[];
}

/** A tool that the gateway runs for a model. */
export interface GatewayTool {
  /** The name that the model knows it by. */
  name: string;
  /** The label of its server in the request. */
  label: string;
  server: UpstreamServer;
  definition: ToolDefinition;
  needsApproval: boolean;
  /** What the request says of searches, where this is the search of the web. */
  search?: SearchLimits;
}

/** Returns whether a tool says that it only reads, as a search of the web does. */
export const onlyReads = ({ search, definition }: GatewayTool): boolean =>
  search !== undefined || definition.annotations?.readOnlyHint === true;

/** The tools of one entry of the request. */
export interface ListedServer {
  label: string;
  tools: readonly GatewayTool[];
  /** The reason why they could not be read; null where they could. */
  error: string | null;
}

/** The gateway's tools in a request. */
export class GatewayTools {
  private readonly byName: ReadonlyMap<string, GatewayTool>;

  constructor(
    readonly servers: readonly ListedServer[],
    search: GatewayTool | undefined,
  ) {
    const tools = servers.flatMap(({ tools: listed }) => listed);
    this.byName = new Map(
      [...tools, ...(search === undefined ? [] : [search])].map(
        (tool) => [tool.name, tool] as const,
      ),
    );
  }

  /** Returns every tool, in the order of the request. */
  get all(): readonly GatewayTool[] {
    return [...this.byName.values()];
  }

  /** Whether the gateway searches the web for the model. */
  get searches(): boolean {
    return this.all.some(({ search }) => search !== undefined);
  }

  /** Returns the tool that a model calls by a name; undefined for the client's own tools. */
  find(name: unknown): GatewayTool | undefined {
    return typeof name === "string" ? this.byName.get(name) : undefined;
  }

  /** Returns a tool by its server's label and its own name; undefined where it is not there. */
  ofServer(label: string, name: string): GatewayTool | undefined {
    return this.all.find((tool) => tool.label === label && tool.definition.name === name);
  }
}

type ToolDependencies = Pick<Dependencies, "upstreamServers" | "publicUrl">;

/** The entries of `tools` with their places in the list. */
const entriesOf = (tools: readonly unknown[]) =>
  tools.flatMap((tool, index) =>
    isMcpTool(tool) ? [{ entry: parsedEntry(tool, index), index }] : [],
  );

function parsedEntry(tool: unknown, index: number): McpToolRequest {
  const parsed = mcpToolSchema.safeParse(tool);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const param = ["tools", index, ...(issue?.path ?? [])]
    .map((part, place) =>
      place === 0 ? part : typeof part === "number" ? `[${part}]` : `.${String(part)}`,
    )
    .join("");
  throw badField(param, issue?.message ?? "is invalid");
}

/**
 * Reads the tools of the MCP servers that a request names. A registered server is named by its id,
 * in `server` or `server_label`, or by this gateway's address of it; any other by `server_url`. The
 * names that models know are those of the tools where no two are equal, and longer ones
 * otherwise. Throws `bad_request` for servers that are not known.
 */
export async function readGatewayTools(
  deps: ToolDependencies,
  {
    tools,
    caller,
    taken,
    search,
  }: {
    tools: readonly unknown[];
    caller: LlmKeyCaller;
    taken: ReadonlySet<string>;
    /** The search of the web; absent where the request needs none of the gateway. */
    search?: GatewayTool | undefined;
  },
): Promise<GatewayTools> {
  if (!tools.some(isMcpTool)) return new GatewayTools([], search);
  const visible = await deps.upstreamServers.visibleTo(caller.workspace.id);
  const entries = entriesOf(tools).map(({ entry, index }) => ({
    entry,
    index,
    ...serverOf(entry, { index, visible, caller, publicUrl: deps.publicUrl() }),
  }));
  assertDistinctLabels(entries);
  const read = await Promise.all(
    entries.map(({ server, isRegistered }) => readServer(deps, { server, isRegistered, caller })),
  );
  const names = new Set(search === undefined ? taken : [...taken, search.name]);
  return new GatewayTools(
    entries.map(({ entry }, index) => {
      const found = read[index];
      if (found === undefined) throw new Error("every server was read");
      return listedServer(entry, { read: found, names, keys: keyLimitsOf(caller) });
    }),
    search,
  );
}

/**
 * Throws where two servers of a request have one label: the items of an answer name servers by their
 * labels, and an approval has to be for one of them.
 */
function assertDistinctLabels(
  entries: readonly { entry: McpToolRequest; server: UpstreamServer; index: number }[],
): void {
  const labels = new Set<string>();
  for (const { entry, server, index } of entries) {
    const label = entry.server_label ?? server.id;
    const param = `tools[${index}].server_label`;
    if (labels.has(label))
      throw badField(
        param,
        `${JSON.stringify(label)} is the label of another server of this request.`,
      );
    labels.add(label);
  }
}

async function readServer(
  { upstreamServers }: ToolDependencies,
  {
    server,
    isRegistered,
    caller,
  }: { server: UpstreamServer; isRegistered: boolean; caller: LlmKeyCaller },
): Promise<ReadServer> {
  const user = userOf(caller);
  if (isRegistered) {
    const [read] = await upstreamServers.withTools([server], user);
    if (read !== undefined) return read;
  }
  const listed = await upstreamServers.listNow(server, user);
  const tools = "error" in listed ? [] : listed.tools;
  return {
    server,
    tools: tools.map((definition) => ({ definition, hash: hashOf(definition) })),
    error: "error" in listed ? listed.error : null,
    checkedAtMs: null,
  };
}

function listedServer(
  entry: McpToolRequest,
  { read, names, keys }: { read: ReadServer; names: Set<string>; keys: ToolLimits["keys"] },
): ListedServer {
  const label = entry.server_label ?? read.server.id;
  const exposed = exposedTools([read], {
    limits: { keys, request: null },
    prefixed: false,
  });
  const joined = exposedTools([{ ...read, server: { ...read.server, id: labelIn(label) } }], {
    limits: { keys: [], request: null },
    prefixed: true,
  });
  const longNames = new Map(
    [...joined.values()].map(({ name, definition }) => [definition.name, name]),
  );
  const tools = [...exposed.values()].flatMap(({ server, definition }): GatewayTool[] => {
    if (!isAllowed(entry, definition)) return [];
    const name = freeName([definition.name, longNames.get(definition.name)], names);
    if (name === undefined) return [];
    names.add(name);
    const needsApproval = needsApprovalOf(entry, definition);
    return [{ name, label, server, definition, needsApproval }];
  });
  return { label, tools, error: read.error };
}

/** Returns a label as it may begin a tool's name. */
const labelIn = (label: string): string => label.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, 30);

const plainName = /^[a-zA-Z0-9_-]{1,64}$/;

const freeName = (
  wanted: readonly (string | undefined)[],
  taken: ReadonlySet<string>,
): string | undefined =>
  wanted.find((name) => name !== undefined && plainName.test(name) && !taken.has(name));

function isAllowed(
  { allowed_tools: allowed, excluded_tools: excluded }: McpToolRequest,
  tool: ToolDefinition,
): boolean {
  if (excluded?.includes(tool.name)) return false;
  if (allowed === undefined || allowed === null) return true;
  if (Array.isArray(allowed)) return allowed.includes(tool.name);
  return matches(allowed, tool);
}

/** Returns whether a filter of the request names a tool: by its name, or by its hint. */
function matches(
  {
    tool_names: names,
    read_only: readOnly,
  }: { tool_names?: readonly string[] | undefined; read_only?: boolean | undefined },
  { name, annotations }: ToolDefinition,
): boolean {
  return (
    (names === undefined || names.includes(name)) &&
    (readOnly === undefined || (annotations?.readOnlyHint === true) === readOnly)
  );
}

/** Returns whether a person has to approve the call of a tool, which is the default. */
function needsApprovalOf(
  { require_approval: rule }: McpToolRequest,
  tool: ToolDefinition,
): boolean {
  if (rule === undefined || rule === null || rule === "always") return true;
  if (rule === "never") return false;
  if (rule.always && matches(rule.always, tool)) return true;
  return !(rule.never && matches(rule.never, tool));
}

/** Returns the server that an entry names, and whether it is registered. */
function serverOf(
  entry: McpToolRequest,
  {
    index,
    visible,
    caller,
    publicUrl,
  }: {
    index: number;
    visible: readonly UpstreamServer[];
    caller: LlmKeyCaller;
    publicUrl: string;
  },
): { server: UpstreamServer; isRegistered: boolean } {
  const { server_url: url, server: named } = entry;
  const own = url === undefined ? undefined : ownServerIn(url, publicUrl);
  const id = named ?? own ?? entry.server_label;
  const registered = visible.find(
    (server) =>
      (server.id === id && (url === undefined || own !== undefined || named !== undefined)) ||
      (url !== undefined &&
        server.workspaceId !== null &&
        server.target.transport === "streamable_http" &&
        server.target.url === url &&
        entry.headers === undefined &&
        entry.authorization === undefined),
  );
  if (registered !== undefined) return { server: registered, isRegistered: true };
  if (url !== undefined && own === undefined && named === undefined)
    return { server: adHocServer(entry, { url, caller }), isRegistered: false };
  const param = `tools[${index}].${named === undefined ? "server_label" : "server"}`;
  throw badField(
    param,
    `there is no MCP server ${JSON.stringify(id ?? "")}. GET /mcp-servers lists them; any other needs server_url.`,
  );
}

/** Returns the id in this gateway's own address of a server; undefined for every other address. */
function ownServerIn(url: string, publicUrl: string): string | undefined {
  if (!URL.canParse(url) || !URL.canParse(publicUrl)) return undefined;
  const { origin, pathname } = new URL(url);
  if (origin !== new URL(publicUrl).origin) return undefined;
  return /^(?:\/api)?(?:\/v1)?\/mcp\/([^/]+)\/?$/.exec(pathname)?.[1];
}

/** Returns a server that only this request knows. Its address is guarded as a workspace's is. */
function adHocServer(
  { headers = {}, authorization }: McpToolRequest,
  { url, caller }: { url: string; caller: LlmKeyCaller },
): UpstreamServer {
  const sent = {
    ...headers,
    ...(authorization !== undefined &&
      authorization !== null && {
        authorization: `Bearer ${authorization}`,
      }),
  };
  const hash = createHash("sha256")
    .update(JSON.stringify([url, sent]))
    .digest("hex");
  return {
    id: `url-${hash.slice(0, 12)}`,
    name: url,
    workspaceId: caller.workspace.id,
    target: { transport: "streamable_http", url },
    auth: Object.keys(sent).length === 0 ? { type: "none" } : { type: "headers", headers: sent },
    allowedTools: null,
    priceNanoUsd: 0n,
    timeoutMs: defaultTimeoutMs,
    resultBytesMax: defaultResultBytes,
    createdAtMs: null,
    updatedAtMs: null,
  };
}
