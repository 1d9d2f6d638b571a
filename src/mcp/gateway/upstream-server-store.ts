import type { Kysely } from "kysely";
import { z } from "zod";
import type { KeyVault } from "../../platform/vault/key-vault.ts";
import {
  type PinnedTool,
  type ServerAuth,
  storageKeyOf,
  type UpstreamServer,
} from "./upstream-server.ts";

interface ServerRow {
  workspace_id: string;
  id: string;
  name: string;
  url: string;
  auth: string;
  /** The secrets of `auth`, sealed for the address; null where there are none. */
  sealed: string | null;
  allowed_tools: string | null;
  price_nano: number | bigint;
  timeout_ms: number;
  result_bytes_max: number;
  created_at_ms: number;
  updated_at_ms: number | null;
}

interface ToolListRow {
  server_key: string;
  /** Distinguishes this state of the row from every other one. */
  revision: string;
  tools: string;
  error: string | null;
  checked_at_ms: number;
}

/** Rows of upstream MCP servers, and of the tools that each of them listed. */
export interface UpstreamServerTables {
  mcp_servers: ServerRow;
  mcp_tool_lists: ToolListRow;
}

/** The tools of a server as they were last read. */
export interface ToolList {
  revision: string;
  tools: readonly PinnedTool[];
  /** The reason why the last reading failed; null where it succeeded. */
  error: string | null;
  checkedAtMs: number;
}

/** A server of a workspace. */
export type WorkspaceServer = UpstreamServer & { workspaceId: string };

const headersSchema = z.record(z.string(), z.string());
const oauthSchema = z.object({
  clientId: z.string().optional(),
  clientSecret: z.string().optional(),
  scope: z.string().optional(),
});

/** Returns the credentials of a server, which are sealed; undefined where there are none. */
const secretsOf = (auth: ServerAuth): object | undefined =>
  auth.type === "none" ? undefined : auth.type === "headers" ? auth.headers : auth;

/**
 * Returns the place that the secrets of a server are sealed for. It names the origin of the
 * server's address, so that they cannot be sent to another one.
 */
const placeOf = (server: WorkspaceServer) => ({
  workspaceId: server.workspaceId,
  id: storageKeyOf(server),
  facts: [
    "mcp-server",
    server.target.transport !== "streamable_http" ? "" : new URL(server.target.url).origin,
  ],
});

/** Stores the servers of workspaces, whose secrets are sealed, and the tools of all servers. */
export class UpstreamServerStore {
  private readonly database: Kysely<UpstreamServerTables>;
  private readonly vault: KeyVault;
  /** Tool lists by server, as they were last read from the database. */
  private readonly lists = new Map<string, ToolList>();

  constructor({
    database,
    vault,
  }: {
    database: Kysely<UpstreamServerTables>;
    vault: KeyVault;
  }) {
    this.database = database;
    this.vault = vault;
  }

  /** Returns the servers of a workspace, by id. */
  async serversOf(workspaceId: string): Promise<WorkspaceServer[]> {
    const rows = await this.database
      .selectFrom("mcp_servers")
      .selectAll()
      .where("workspace_id", "=", workspaceId)
      .orderBy("id")
      .execute();
    if (rows.some(({ sealed }) => sealed !== null)) await this.vault.learn(workspaceId);
    return rows.map((row) => this.fromRow(row));
  }

  /** Inserts a server. Returns false where the workspace has one with this id. */
  async insert(server: WorkspaceServer): Promise<boolean> {
    const row = await this.rowOf(server);
    const { numInsertedOrUpdatedRows } = await this.database
      .insertInto("mcp_servers")
      .values(row)
      .onConflict((conflict) => conflict.columns(["workspace_id", "id"]).doNothing())
      .executeTakeFirstOrThrow();
    return (numInsertedOrUpdatedRows ?? 0n) > 0n;
  }

  /** Replaces a server. Returns false where it is another one by now, or was deleted. */
  async update({ updatedAtMs }: WorkspaceServer, after: WorkspaceServer): Promise<boolean> {
    const { workspace_id: workspaceId, id, ...values } = await this.rowOf(after);
    const { numUpdatedRows } = await this.database
      .updateTable("mcp_servers")
      .set(values)
      .where("workspace_id", "=", workspaceId)
      .where("id", "=", id)
      .where("updated_at_ms", updatedAtMs === null ? "is" : "=", updatedAtMs)
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }

  /** Deletes a server with its secrets and its pins. Returns false where there was none. */
  async remove(server: Pick<WorkspaceServer, "workspaceId" | "id">): Promise<boolean> {
    const { numDeletedRows } = await this.database
      .deleteFrom("mcp_servers")
      .where("workspace_id", "=", server.workspaceId)
      .where("id", "=", server.id)
      .executeTakeFirstOrThrow();
    await this.forgetTools(storageKeyOf(server));
    return numDeletedRows > 0n;
  }

  /** Deletes the pins of a server. */
  async forgetTools(key: string): Promise<void> {
    this.lists.delete(key);
    await this.database.deleteFrom("mcp_tool_lists").where("server_key", "=", key).execute();
  }

  /** Returns the tool lists of these servers; those that were never read are left out. */
  async toolLists(keys: readonly string[]): Promise<ReadonlyMap<string, ToolList>> {
    if (keys.length === 0) return new Map();
    const known = await this.database
      .selectFrom("mcp_tool_lists")
      .select(["server_key", "revision"])
      .where("server_key", "in", keys)
      .execute();
    const stale = known
      .filter(({ server_key: key, revision }) => this.lists.get(key)?.revision !== revision)
      .map(({ server_key: key }) => key);
    for (const row of await this.readLists(stale)) this.lists.set(row.server_key, listOf(row));
    return new Map(
      known.flatMap(({ server_key: key }) => {
        const list = this.lists.get(key);
        return list === undefined ? [] : [[key, list] as const];
      }),
    );
  }

  /** Replaces the tool list of a server. */
  async putTools(key: string, list: ToolList): Promise<void> {
    const row: ToolListRow = {
      server_key: key,
      revision: list.revision,
      tools: JSON.stringify(list.tools),
      error: list.error,
      checked_at_ms: list.checkedAtMs,
    };
    const { server_key: _, ...values } = row;
    await this.database
      .insertInto("mcp_tool_lists")
      .values(row)
      .onConflict((conflict) => conflict.column("server_key").doUpdateSet(values))
      .execute();
    this.lists.set(key, list);
  }

  private async readLists(keys: readonly string[]): Promise<ToolListRow[]> {
    if (keys.length === 0) return [];
    return this.database
      .selectFrom("mcp_tool_lists")
      .selectAll()
      .where("server_key", "in", keys)
      .execute();
  }

  private fromRow(row: ServerRow): WorkspaceServer {
    const server: WorkspaceServer = {
      id: row.id,
      name: row.name,
      workspaceId: row.workspace_id,
      target: { transport: "streamable_http", url: row.url },
      auth: { type: "none" },
      allowedTools: row.allowed_tools === null ? null : (JSON.parse(row.allowed_tools) as string[]),
      priceNanoUsd: BigInt(row.price_nano),
      timeoutMs: Number(row.timeout_ms),
      resultBytesMax: Number(row.result_bytes_max),
      createdAtMs: Number(row.created_at_ms),
      updatedAtMs: row.updated_at_ms === null ? null : Number(row.updated_at_ms),
    };
    return { ...server, auth: this.openAuth(server, row) };
  }

  private openAuth(server: WorkspaceServer, { auth, sealed }: ServerRow): ServerAuth {
    if (sealed === null) return { type: "none" };
    const text = this.vault.openRecord(placeOf(server), sealed).toString("utf8");
    if (auth === "oauth" || auth === "oauth_per_person")
      return { type: auth, ...oauthSchema.parse(JSON.parse(text)) };
    return { type: "headers", headers: headersSchema.parse(JSON.parse(text)) };
  }

  private async rowOf(server: WorkspaceServer): Promise<ServerRow> {
    const { auth, target } = server;
    const secrets = secretsOf(auth);
    return {
      workspace_id: server.workspaceId,
      id: server.id,
      name: server.name,
      url: target.transport === "streamable_http" ? target.url : "",
      auth: auth.type,
      sealed:
        secrets === undefined
          ? null
          : await this.vault.sealRecord(
              placeOf(server),
              Buffer.from(JSON.stringify(secrets), "utf8"),
            ),
      allowed_tools: server.allowedTools === null ? null : JSON.stringify(server.allowedTools),
      price_nano: Number(server.priceNanoUsd),
      timeout_ms: server.timeoutMs,
      result_bytes_max: server.resultBytesMax,
      created_at_ms: server.createdAtMs ?? 0,
      updated_at_ms: server.updatedAtMs,
    };
  }
}

const listOf = (row: ToolListRow): ToolList => ({
  revision: row.revision,
  tools: JSON.parse(row.tools) as PinnedTool[],
  error: row.error,
  checkedAtMs: Number(row.checked_at_ms),
});
