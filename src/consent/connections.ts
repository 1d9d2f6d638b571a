import type { Kysely } from "kysely";
import type { CredentialDirectory } from "../identity/keys/credential-directory.ts";
import type { LlmKeyEditor } from "../identity/keys/llm-key-editor.ts";
import type { LlmKeyMinter } from "../identity/keys/llm-key-minter.ts";
import type { KeyConnection, LimitReset, LlmKey } from "../identity/keys/llm-key-store.ts";
import { isScope, type Scope } from "../identity/keys/scopes.ts";
import { dayMs, hourMs, type Clock } from "../platform/kernel/clock.ts";
import { GatewayError } from "../platform/kernel/errors.ts";
import { mayBeId, newId } from "../platform/kernel/ids.ts";
import type { ConsentTables } from "./consent-tables.ts";

/**
 * The terms that a person approves for a key or an access token: its spending limit, lifetime,
 * models and scopes.
 */
export interface Terms {
  label: string | null;
  limitNanoUsd: bigint | null;
  limitReset: LimitReset;
  expiresAtMs: number | null;
  /** Lower-case model ids; null allows all. */
  allowedModels: readonly string[] | null;
  scopes: readonly Scope[];
}

/** Serialises terms for the database. */
export const termsText = ({ limitNanoUsd, ...terms }: Terms): string =>
  JSON.stringify({ ...terms, limitNanoUsd: limitNanoUsd === null ? null : String(limitNanoUsd) });

/** Parses terms that `termsText` wrote. */
export function termsOf(text: string): Terms {
  const read = JSON.parse(text) as Omit<Terms, "limitNanoUsd" | "scopes"> & {
    limitNanoUsd: string | null;
    scopes: string[];
  };
  return {
    ...read,
    limitNanoUsd: read.limitNanoUsd === null ? null : BigInt(read.limitNanoUsd),
    scopes: read.scopes.filter(isScope),
  };
}

/**
 * The flow that connected an app: a device code, OAuth's authorization code, a key from the page at
 * `/auth`, or the dashboard's own playground.
 */
type ConnectionOrigin = "device" | "oauth" | "key" | "playground";

/**
 * A connected app: the client, the person who granted, and what was granted. Times are in
 * milliseconds.
 */
export interface Connection {
  /** A `con_` id. */
  id: string;
  /** The LLM key whose secret is the access token. It carries limits and spending. */
  keyId: string;
  workspaceId: string;
  userId: string;
  clientId: string | null;
  clientName: string;
  origin: ConnectionOrigin;
  scopes: readonly Scope[];
  /** The consent bundle that was chosen; null where scopes were chosen individually. */
  bundle: string | null;
  /** The resource that its tokens are for (RFC 8707). */
  resource: string | null;
  /** Whether it has refresh tokens. */
  offline: boolean;
  /** The address that it was connected from. */
  address: string;
  userAgent: string;
  createdAtMs: number;
  refreshedAtMs: number | null;
  endedAtMs: number | null;
  endReason: string | null;
}

/** The fields of a new connection. */
export interface NewConnection
  extends Pick<
    Connection,
    | "workspaceId"
    | "userId"
    | "clientId"
    | "clientName"
    | "origin"
    | "bundle"
    | "resource"
    | "offline"
    | "address"
    | "userAgent"
  > {
  terms: Terms;
  /** When the first access token expires; null where it lasts as long as the connection. */
  tokenExpiresAtMs: number | null;
}

/** Selects connections by owner; without either member, all. */
interface ConnectionOwner {
  workspaceId?: string;
  userId?: string;
}

/** Options of connections. */
export interface ConnectionsOptions {
  database: Kysely<ConsentTables>;
  clock: Clock;
  directory: CredentialDirectory;
  llmKeyMinter: LlmKeyMinter;
  llmKeyEditor: LlmKeyEditor;
}

/** The default number of connections in a list. */
const listedMax = 1_000;

/** Milliseconds for which an ended connection is kept. */
const keptMs = 90 * dayMs;

type Row = ConsentTables["connections"];

/**
 * Returns the audience of tokens for a resource of this service (RFC 8707): its MCP server or its
 * API. A token for no resource, or for the service as a whole, is for both.
 */
function audienceOf(resource: string | null): Partial<Pick<KeyConnection, "audience">> {
  const path = resource === null ? "" : new URL(resource).pathname.replace(/\/$/, "");
  if (path === "") return {};
  return { audience: /\/mcp(?:\/[^/]+)?$/.test(path) ? "mcp" : "rest" };
}

const fromRow = (row: Row): Connection => ({
  id: row.id,
  keyId: row.key_id,
  workspaceId: row.workspace_id,
  userId: row.user_id,
  clientId: row.client_id,
  clientName: row.client_name,
  origin: row.origin as ConnectionOrigin,
  scopes: (JSON.parse(row.scopes) as string[]).filter(isScope),
  bundle: row.bundle,
  resource: row.resource,
  offline: row.offline === 1,
  address: row.address,
  userAgent: row.user_agent,
  createdAtMs: row.created_at_ms,
  refreshedAtMs: row.refreshed_at_ms,
  endedAtMs: row.ended_at_ms,
  endReason: row.end_reason,
});

/**
 * Apps that people connected. Their access tokens are LLM keys, so ending a connection deletes its
 * key on every gateway.
 */
export class Connections {
  constructor(private readonly options: ConnectionsOptions) {}

  /** Connects an app. The access token is returned only here. */
  async create({
    terms,
    tokenExpiresAtMs,
    ...wanted
  }: NewConnection): Promise<{ accessToken: string; connection: Connection; key: LlmKey }> {
    const { clock, llmKeyMinter } = this.options;
    const nowMs = clock.nowMs();
    const id = newId("con", nowMs);
    const { secret, key } = await llmKeyMinter.mint({
      workspaceId: wanted.workspaceId,
      creatorUserId: wanted.userId,
      name: terms.label ?? wanted.clientName,
      limitNanoUsd: terms.limitNanoUsd,
      limitReset: terms.limitReset,
      expiresAtMs: terms.expiresAtMs,
      allowedModels: terms.allowedModels,
      connection: {
        id,
        scopes: terms.scopes,
        ...audienceOf(wanted.resource),
        tokenExpiresAtMs,
      },
    });
    const connection = await this.write({
      ...wanted,
      id,
      keyId: key.id,
      scopes: terms.scopes,
      createdAtMs: nowMs,
    });
    return { accessToken: secret, connection, key };
  }

  /**
   * Lists an app that was given a key of its own. The key is an ordinary one, and ending the
   * connection deletes it.
   */
  noteKey(
    key: LlmKey,
    from: Pick<Connection, "clientName" | "address" | "userAgent">,
  ): Promise<Connection> {
    return this.write({
      ...from,
      id: newId("con", key.createdAtMs),
      keyId: key.id,
      workspaceId: key.workspaceId,
      userId: key.creatorUserId,
      clientId: null,
      origin: "key",
      scopes: ["inference"],
      bundle: null,
      resource: null,
      offline: false,
      createdAtMs: key.createdAtMs,
    });
  }

  /**
   * Returns the connections of a workspace that have not ended, newest first; of one person where
   * one is named.
   */
  async list({
    limit = listedMax,
    offset = 0,
    ...of
  }: ConnectionOwner & { limit?: number; offset?: number }): Promise<Connection[]> {
    const rows = await this.openOf(of)
      .selectAll()
      .orderBy("created_at_ms", "desc")
      .orderBy("id", "desc")
      .limit(limit)
      .offset(offset)
      .execute();
    // Keys of apps may also be deleted from the list of keys, which ends their connection.
    return rows
      .map(fromRow)
      .filter(
        ({ origin, keyId }) =>
          origin !== "key" || this.options.directory.llmKeyById(keyId) !== undefined,
      );
  }

  /** Returns the number of these connections. */
  async count(of: ConnectionOwner): Promise<number> {
    const counted = this.openOf(of).select(({ fn }) =>
      fn.countAll<number | bigint | string>().as("total"),
    );
    const { total } = await counted.executeTakeFirstOrThrow();
    return Number(total);
  }

  private openOf({ workspaceId, userId }: ConnectionOwner) {
    const open = this.options.database.selectFrom("connections").where("ended_at_ms", "is", null);
    const within = workspaceId === undefined ? open : open.where("workspace_id", "=", workspaceId);
    return userId === undefined ? within : within.where("user_id", "=", userId);
  }

  /** Returns the connection with this id, ended or not; undefined where there is none. */
  async find(id: string): Promise<Connection | undefined> {
    if (!mayBeId(id)) return undefined;
    const row = await this.options.database
      .selectFrom("connections")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  /** Returns the connection of this key, ended or not. */
  async ofKey(keyId: string): Promise<Connection | undefined> {
    const row = await this.options.database
      .selectFrom("connections")
      .selectAll()
      .where("key_id", "=", keyId)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  /** Returns whether any person has connected this client before. */
  async wereMade(clientId: string): Promise<boolean> {
    const query = this.options.database
      .selectFrom("connections")
      .select("id")
      .where("client_id", "=", clientId)
      .limit(1);
    return (await query.executeTakeFirst()) !== undefined;
  }

  /** Returns whether a person has given an app a key before. */
  async wereGivenKey(userId: string, clientName: string): Promise<boolean> {
    const query = this.options.database.selectFrom("connections").select("id").limit(1);
    const own = query
      .where("user_id", "=", userId)
      .where("client_name", "=", clientName)
      .where("origin", "=", "key");
    return (await own.executeTakeFirst()) !== undefined;
  }

  /** Replaces the access token of a connection; undefined where it has ended. */
  async renew(
    { id, keyId, workspaceId }: Connection,
    { tokenExpiresAtMs, address }: { tokenExpiresAtMs: number; address: string },
  ): Promise<string | undefined> {
    const { database, clock, llmKeyEditor } = this.options;
    const key = await llmKeyEditor.current(keyId);
    if (key === undefined) return undefined;
    const { secret } = await llmKeyEditor.rotate(
      { workspaceId, hash: key.hash },
      { tokenExpiresAtMs },
    );
    await database
      .updateTable("connections")
      .set({ refreshed_at_ms: clock.nowMs(), refreshed_address: address })
      .where("id", "=", id)
      .execute();
    return secret;
  }

  /**
   * Ends what a person connected in a workspace, such as when they are no longer a member. Returns
   * the ended connections.
   */
  async endAll(of: ConnectionOwner & { userId: string }, reason: string): Promise<Connection[]> {
    const ended: Connection[] = [];
    for (const row of await this.openOf(of).selectAll().execute()) {
      const connection = fromRow(row);
      if (await this.end(connection, reason)) ended.push(connection);
    }
    return ended;
  }

  /** Ends a connection and its tokens, on every gateway. Returns false where it had ended. */
  async end(
    { id, keyId, workspaceId }: Pick<Connection, "id" | "keyId" | "workspaceId">,
    reason: string,
  ): Promise<boolean> {
    const { database, clock, llmKeyEditor } = this.options;
    const row = await database
      .updateTable("connections")
      .set({ ended_at_ms: clock.nowMs(), end_reason: reason })
      .where("id", "=", id)
      .where("ended_at_ms", "is", null)
      .returning("id")
      .executeTakeFirst();
    await database.deleteFrom("refresh_tokens").where("connection_id", "=", id).execute();
    const key = await llmKeyEditor.current(keyId);
    if (key !== undefined) {
      await llmKeyEditor.remove({ workspaceId, hash: key.hash }).catch((error: unknown) => {
        if (!(error instanceof GatewayError) || error.code !== "not_found") throw error;
      });
    }
    return row !== undefined;
  }

  /** Deletes connections that ended long ago. The audit log keeps what happened to them. */
  async removeEnded(): Promise<void> {
    const { database, clock, directory } = this.options;
    const nowMs = clock.nowMs();
    // A key may also be deleted from the list of keys, or with its workspace. A deletion on another
    // gateway is known here within the hour.
    const open = await database
      .selectFrom("connections")
      .select(["id", "key_id"])
      .where("ended_at_ms", "is", null)
      .where("created_at_ms", "<", nowMs - hourMs)
      .execute();
    for (const { id, key_id: keyId } of open) {
      if (directory.llmKeyById(keyId) !== undefined) continue;
      const ended = { ended_at_ms: nowMs, end_reason: "Its key was deleted." };
      await database.updateTable("connections").set(ended).where("id", "=", id).execute();
    }
    await database
      .deleteFrom("connections")
      .where("ended_at_ms", "<", nowMs - keptMs)
      .execute();
  }

  private async write(
    connection: Omit<Connection, "refreshedAtMs" | "endedAtMs" | "endReason">,
  ): Promise<Connection> {
    await this.options.database
      .insertInto("connections")
      .values({
        id: connection.id,
        key_id: connection.keyId,
        workspace_id: connection.workspaceId,
        user_id: connection.userId,
        client_id: connection.clientId,
        client_name: connection.clientName,
        origin: connection.origin,
        scopes: JSON.stringify(connection.scopes),
        bundle: connection.bundle,
        resource: connection.resource,
        offline: connection.offline ? 1 : 0,
        address: connection.address,
        user_agent: connection.userAgent,
        created_at_ms: connection.createdAtMs,
        refreshed_at_ms: null,
        refreshed_address: null,
        ended_at_ms: null,
        end_reason: null,
      })
      .execute();
    return { ...connection, refreshedAtMs: null, endedAtMs: null, endReason: null };
  }
}
