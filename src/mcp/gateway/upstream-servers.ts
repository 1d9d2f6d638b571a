import type { Clock } from "../../platform/kernel/clock.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import {
  UnsafeTargetError,
  resolveTarget,
  type AddressGuard,
} from "../../platform/notify/public-address.ts";
import type { ReadServer } from "./exposed-tools.ts";
import type { Grants } from "./oauth/grants.ts";
import type { ServerConnections } from "./server-connections.ts";
import type { ToolList, UpstreamServerStore, WorkspaceServer } from "./upstream-server-store.ts";
import {
  isUsable,
  type PinnedTool,
  pinnedTools,
  type ServerUser,
  storageKeyOf,
  type ToolDefinition,
  type UpstreamServer,
  usesOauth,
} from "./upstream-server.ts";

/** Milliseconds after which a list of tools is read again in the background. */
const listMs = 5 * 60_000;

/** Milliseconds for which a server whose tools could not be read is left alone. */
const retryMs = 30_000;

/** Milliseconds that a server may take to list its tools. */
const readMs = 10_000;

/** The most servers of a workspace, and the most tools of a server. */
const serversPerWorkspaceMax = 100;
const toolsPerServerMax = 1_000;

/**
 * The tool of a server whose tools are not known, because no one has connected it. Its call answers
 * with the link to do so, as that of every other tool does.
 */
const connectTool: PinnedTool = {
  definition: {
    name: "connect",
    description: "Returns the link with which a person connects this server.",
    inputSchema: { type: "object", properties: {} },
    annotations: { readOnlyHint: true },
  },
  hash: "",
};

const notConnected = {
  error: "You have not connected this server yet.",
  checkedAtMs: null,
  needsConnection: true,
} as const;

/** The options of the registry. */
interface UpstreamServersOptions {
  /** The servers that the operator configured. */
  operators: readonly UpstreamServer[];
  store: UpstreamServerStore;
  connections: ServerConnections;
  grants: Pick<Grants, "isConnected" | "removeAll">;
  guard: AddressGuard;
  clock: Clock;
  /** Receives what went wrong while a list was read in the background. */
  onError(error: unknown): void;
}

const noServer = (): GatewayError =>
  new GatewayError(
    "not_found",
    "There is no MCP server with this id. GET /mcp-servers lists them.",
  );

/** The upstream MCP servers that callers may use, with their tools. */
export class UpstreamServers {
  /**
   * Called where a server was registered, changed or deleted, and where its tools are other ones than
   * before (`isListAlone`).
   */
  onChanged:
    | ((server: Pick<UpstreamServer, "id" | "workspaceId">, isListAlone?: boolean) => void)
    | undefined;
  /** Lists that are being read, by server. */
  private readonly reading = new Map<string, Promise<ToolList>>();

  constructor(private readonly options: UpstreamServersOptions) {}

  /**
   * Returns the servers that a workspace may use: its own, and the operator's. Its own server hides
   * the operator's of the same id.
   */
  async visibleTo(workspaceId: string): Promise<UpstreamServer[]> {
    const { operators, store } = this.options;
    const own = await store.serversOf(workspaceId);
    const ids = new Set(own.map(({ id }) => id));
    return [...own, ...operators.filter(({ id }) => !ids.has(id))];
  }

  /** Returns a server that a workspace may use; undefined where there is none. */
  async find(workspaceId: string, id: string): Promise<UpstreamServer | undefined> {
    return (await this.visibleTo(workspaceId)).find((server) => server.id === id);
  }

  /** Returns a server that the workspace registered. Throws `not_found` and `forbidden`. */
  async ownedBy(workspaceId: string, id: string): Promise<WorkspaceServer> {
    const server = await this.find(workspaceId, id);
    if (server === undefined) throw noServer();
    if (server.workspaceId === null)
      throw new GatewayError(
        "forbidden",
        "This server comes from the operator's configuration file (mcp_servers) and is changed there.",
      );
    return { ...server, workspaceId: server.workspaceId };
  }

  /** Registers a server of a workspace. Throws `conflict` where the id is taken. */
  async create(server: WorkspaceServer): Promise<void> {
    const { store, operators } = this.options;
    await this.assertReachable(server);
    const own = await store.serversOf(server.workspaceId);
    if (own.length >= serversPerWorkspaceMax)
      throw new GatewayError(
        "conflict",
        `A workspace has at most ${serversPerWorkspaceMax} MCP servers. Delete one first.`,
      );
    const isOperators = operators.some(({ id }) => id === server.id);
    if (isOperators || !(await store.insert(server)))
      throw new GatewayError(
        "conflict",
        `id: there is an MCP server ${server.id} already; choose another id.`,
        { param: "id" },
      );
    this.onChanged?.(server);
  }

  /**
   * Changes a server of a workspace, as the changes before this one left it, and returns it. Throws as
   * `ownedBy` does, and `bad_request` for an address that may not be reached.
   */
  async change(
    { workspaceId, id }: Pick<WorkspaceServer, "workspaceId" | "id">,
    changed: (before: WorkspaceServer) => WorkspaceServer,
  ): Promise<WorkspaceServer> {
    const { store, grants, clock } = this.options;
    for (;;) {
      const before = await this.ownedBy(workspaceId, id);
      // Later than the change before, by which others see that this one was made.
      const updatedAtMs = Math.max(clock.nowMs(), (before.updatedAtMs ?? 0) + 1);
      const after = { ...changed(before), updatedAtMs };
      await this.assertReachable(after);
      if (!(await store.update(before, after))) continue;
      if (JSON.stringify(before.target) !== JSON.stringify(after.target))
        await Promise.all([
          store.forgetTools(storageKeyOf(after)),
          grants.removeAll(storageKeyOf(after)),
        ]);
      this.onChanged?.(after);
      return after;
    }
  }

  /** Deletes a server of a workspace with its secrets and pins. Throws `not_found`. */
  async remove(server: WorkspaceServer): Promise<void> {
    await this.options.grants.removeAll(storageKeyOf(server));
    if (!(await this.options.store.remove(server))) throw noServer();
    this.options.connections.forget(server);
    this.onChanged?.(server);
  }

  /**
   * Returns servers with their tools. Those that were never read are read now, all at once; lists
   * that are old are read again in the background. A server that cannot be read does not keep the
   * others away.
   */
  async withTools(servers: readonly UpstreamServer[], user: ServerUser): Promise<ReadServer[]> {
    const { store, clock } = this.options;
    const lists = await store.toolLists(servers.map(storageKeyOf));
    const nowMs = clock.nowMs();
    return Promise.all(
      servers.map(async (server): Promise<ReadServer> => {
        let list = lists.get(storageKeyOf(server));
        if (usesOauth(server) && !(await this.options.grants.isConnected(server, user)))
          return { server, tools: list?.tools ?? [connectTool], ...notConnected };
        if (list === undefined) list = await this.refresh(server, { user });
        else if (nowMs - list.checkedAtMs > (list.error === null ? listMs : retryMs))
          this.refresh(server, { user }).catch(this.options.onError);
        return { server, tools: list.tools, error: list.error, checkedAtMs: list.checkedAtMs };
      }),
    );
  }

  /**
   * Reads the tools of a server again. Changed definitions are quarantined unless `accepts` names
   * the tool. A failure is kept with the list and not thrown.
   */
  refresh(
    server: UpstreamServer,
    { user, accepts }: { user: ServerUser; accepts?: (name: string) => boolean },
  ): Promise<ToolList> {
    const key = storageKeyOf(server);
    const current = this.reading.get(key);
    if (current !== undefined && accepts === undefined) return current;
    const reading = this.read(server, { user, accepts: accepts ?? (() => false) }).finally(() => {
      if (this.reading.get(key) === reading) this.reading.delete(key);
    });
    this.reading.set(key, reading);
    return reading;
  }

  private async read(
    server: UpstreamServer,
    { user, accepts }: { user: ServerUser; accepts: (name: string) => boolean },
  ): Promise<ToolList> {
    const { store, clock } = this.options;
    const key = storageKeyOf(server);
    const known = (await store.toolLists([key])).get(key);
    const before = known?.tools ?? [];
    const answered = await this.listNow(server, user);
    const list: ToolList = {
      revision: crypto.randomUUID(),
      tools:
        "error" in answered ? before : pinnedTools(before, { listed: answered.tools, accepts }),
      error: "error" in answered ? answered.error : null,
      checkedAtMs: clock.nowMs(),
    };
    await store.putTools(key, list);
    // A first list is seen by the request that reads it, and its server was reported as new.
    if (known !== undefined && usableText(before) !== usableText(list.tools))
      this.onChanged?.(server, true);
    return list;
  }

  /** Reads the tools of a server, and neither pins nor stores them. A failure is returned. */
  async listNow(
    server: UpstreamServer,
    user: ServerUser,
  ): Promise<{ tools: ToolDefinition[] } | { error: string }> {
    try {
      const { tools } = await this.options.connections.use(server, user, (client) =>
        // What a server says of how long its list may be kept does not keep a change away.
        client.listTools(undefined, {
          timeout: readMs,
          maxTotalTimeout: readMs,
          cacheMode: "refresh",
        }),
      );
      return { tools: tools.slice(0, toolsPerServerMax) as ToolDefinition[] };
    } catch (error) {
      return { error: failureText(error) };
    }
  }

  private async assertReachable({ target }: WorkspaceServer): Promise<void> {
    if (target.transport !== "streamable_http") return;
    try {
      await resolveTarget(target.url, this.options.guard);
    } catch (error) {
      if (!(error instanceof UnsafeTargetError)) throw error;
      throw badField(
        "url",
        `${error.message}. Networks of your own are named in mcp.allowed_networks.`,
      );
    }
  }
}

/** Returns a text that is another one where other tools may be used, or another definition is in force. */
const usableText = (tools: readonly PinnedTool[]): string =>
  JSON.stringify(
    tools
      .filter(isUsable)
      .map(({ definition, hash }) => [definition.name, hash])
      .toSorted(),
  );

/** The most characters that are passed on of a server's own words about a failure. */
const failureCharactersMax = 300;

/** Returns what went wrong with a server, as it is shown to its callers. */
export function failureText(error: unknown): string {
  if (error instanceof UnsafeTargetError) return `The server's URL ${error.message}.`;
  const text = error instanceof Error ? error.message : String(error);
  return text.slice(0, failureCharactersMax).replaceAll(/\p{Cc}+/gu, " ");
}
