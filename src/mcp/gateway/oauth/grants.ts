import type { AuthProvider, OAuthTokens } from "@modelcontextprotocol/client";
import type { Generated, Kysely } from "kysely";
import { createHash, randomBytes } from "node:crypto";
import type { Clock } from "../../../platform/kernel/clock.ts";
import { badField, GatewayError } from "../../../platform/kernel/errors.ts";
import { KeyedMutex } from "../../../platform/kernel/keyed-mutex.ts";
import type { AddressGuard } from "../../../platform/notify/public-address.ts";
import type { KeyVault } from "../../../platform/vault/key-vault.ts";
import { serverFetch } from "../server-fetch.ts";
import { discoverClient, type KnownClient } from "./authorization-server.ts";
import { storageKeyOf, type ServerUser, type UpstreamServer } from "../upstream-server.ts";

/** Rows of tokens, and of consents that are under way. */
export interface GrantTables {
  mcp_grants: {
    server_key: string;
    workspace_id: string;
    person_id: string;
    sealed: string;
    updated_at_ms: number;
    /** Until when one gateway alone refreshes the tokens; 0 while none does. */
    refreshing_until_ms: Generated<number>;
  };
  mcp_consents: {
    state: string;
    server_id: string;
    workspace_id: string;
    user_id: string;
    sealed: string;
    expires_at_ms: number;
  };
}

/** The tokens of a person. */
interface Grant extends KnownClient {
  tokens: OAuthTokens;
  /** What the server has asked for beside the scope of the tokens. */
  wantedScope?: string | undefined;
}

interface Consent extends KnownClient {
  verifier: string;
  redirectUrl: string;
  /** What was asked for; absent where the server says nothing of scopes. */
  scope?: string | undefined;
}

/** Thrown where a person has not connected a server, or the server takes its tokens no longer. */
class NotConnectedError extends Error {
  constructor(server: UpstreamServer) {
    super(`${server.name} is not connected.`);
  }
}

/** The most refused tokens that are remembered. */
const refusedMax = 1_000;

/** Milliseconds after which another gateway may refresh tokens that one has begun to refresh. */
const refreshMs = 15_000;

/** Milliseconds between two looks at tokens that another gateway refreshes. */
const lookMs = 50;

/** Milliseconds that a person has for consenting. */
const consentMs = 10 * 60_000;

/** The id under which the tokens of a server are kept that everyone uses alike. */
const everyone = "*";

/** Returns whose tokens are used: the person's own, or those that everyone uses. */
function holderOf(server: UpstreamServer, { workspaceId, personId }: ServerUser) {
  return {
    serverKey: storageKeyOf(server),
    workspaceId,
    personId: server.auth.type === "oauth" ? everyone : personId,
  };
}

type Holder = ReturnType<typeof holderOf>;

const stateHash = (state: string): string => createHash("sha256").update(state).digest("hex");

interface GrantsOptions {
  database: Kysely<GrantTables>;
  vault: KeyVault;
  guard: AddressGuard;
  clock: Clock;
  /** The workspace under whose key tokens are kept that all workspaces use. */
  operatorWorkspaceId: string;
  /** Returns where the gateway describes itself as a client; undefined where it is not public. */
  documentUrl(): string | undefined;
}

/**
 * The tokens with which people use MCP servers, by server, workspace and person. The gateway is the
 * OAuth client: it discovers the authorization server, registers itself, and refreshes.
 */
export class Grants {
  private readonly mutex = new KeyedMutex();
  /** The newest access tokens that servers have refused. */
  private readonly refused = new Set<string>();

  constructor(private readonly options: GrantsOptions) {}

  /** Returns whether a person has connected a server. */
  async isConnected(server: UpstreamServer, user: ServerUser): Promise<boolean> {
    return (await this.find(this.holder(server, user), server)) !== undefined;
  }

  /**
   * Begins a consent, and returns the address to send the person to. Throws `bad_request` where the
   * server has no authorization server that can be used.
   */
  async begin(
    server: UpstreamServer,
    { user, userId, redirectUrl }: { user: ServerUser; userId: string; redirectUrl: string },
  ): Promise<string> {
    const { database, vault, clock } = this.options;
    const sdk = await import("@modelcontextprotocol/client");
    const { scope: usual, ...known } = await discoverClient(server, {
      redirectUrl,
      documentUrl: this.options.documentUrl(),
      fetchFn: this.fetchTo(server),
    });
    const state = randomBytes(32).toString("base64url");
    const given = await this.find(this.holder(server, user), server);
    // What was granted is asked for again, since new tokens take the place of the old ones.
    const scope = sdk.computeScopeUnion(usual, given?.tokens.scope, given?.wantedScope);
    const { authorizationUrl, codeVerifier } = await sdk.startAuthorization(known.issuer, {
      ...(known.metadata && { metadata: known.metadata }),
      clientInformation: known.client,
      redirectUrl,
      state,
      resource: known.resource,
      ...(scope !== undefined && { scope }),
    });
    const consent: Consent = { ...known, verifier: codeVerifier, redirectUrl, scope };
    const hash = stateHash(state);
    await database.deleteFrom("mcp_consents").where("expires_at_ms", "<", clock.nowMs()).execute();
    await database
      .insertInto("mcp_consents")
      .values({
        state: hash,
        server_id: server.id,
        workspace_id: user.workspaceId,
        user_id: userId,
        sealed: await vault.sealRecord(
          { workspaceId: user.workspaceId, id: hash, facts: ["mcp-consent"] },
          Buffer.from(JSON.stringify(consent), "utf8"),
        ),
        expires_at_ms: clock.nowMs() + consentMs,
      })
      .execute();
    return authorizationUrl.href;
  }

  /**
   * Takes the consent that a state belongs to, once. Throws `bad_request` for one that is not known,
   * has ended, or was begun by another person.
   */
  async take(state: string, userId: string) {
    const { database, clock, vault } = this.options;
    const row = await database
      .deleteFrom("mcp_consents")
      .where("state", "=", stateHash(state))
      .where("user_id", "=", userId)
      .returningAll()
      .executeTakeFirst();
    if (row === undefined || row.expires_at_ms < clock.nowMs())
      throw badField(
        "state",
        "belongs to no consent of yours that is under way. Open the link again.",
      );
    await vault.learn(row.workspace_id);
    const place = { workspaceId: row.workspace_id, id: row.state, facts: ["mcp-consent"] };
    const consent = JSON.parse(vault.openRecord(place, row.sealed).toString("utf8")) as Consent;
    return { serverId: row.server_id, workspaceId: row.workspace_id, consent };
  }

  /** Exchanges the code of a consent for tokens, and keeps them for the person. */
  async finish(
    server: UpstreamServer,
    {
      user,
      consent,
      code,
      iss,
    }: { user: ServerUser; consent: Consent; code: string; iss: string | undefined },
  ): Promise<void> {
    const sdk = await import("@modelcontextprotocol/client");
    const { verifier, redirectUrl, scope, ...known } = consent;
    const { issuer, metadata, client, resource } = known;
    const tokens = await sdk
      .exchangeAuthorization(issuer, {
        ...(metadata && { metadata }),
        clientInformation: client,
        authorizationCode: code,
        ...(iss !== undefined && { iss }),
        codeVerifier: verifier,
        redirectUri: redirectUrl,
        resource,
        fetchFn: this.fetchTo(server),
      })
      .catch((error: unknown) => {
        throw new GatewayError(
          "bad_request",
          "code: the authorization server of the MCP server did not accept it. Open the link again.",
          { param: "code", cause: error },
        );
      });
    // A server that gives what was asked for need not repeat it (RFC 6749, 5.1).
    const granted = { ...tokens, ...(scope !== undefined && !tokens.scope && { scope }) };
    await this.put(this.holder(server, user), { ...known, tokens: granted });
  }

  /**
   * Notes what a server wants beside the scope of a person's tokens, where an error says so. Returns
   * whether it does: the next consent asks for it.
   */
  async noteMissingScope(
    error: unknown,
    { server, user }: { server: UpstreamServer; user: ServerUser },
  ): Promise<boolean> {
    const sdk = await import("@modelcontextprotocol/client");
    const isMissing = (each: unknown): each is InstanceType<typeof sdk.InsufficientScopeError> =>
      each instanceof sdk.InsufficientScopeError;
    const refusal = causesOf(error).find(isMissing);
    if (refusal === undefined) return false;
    const holder = this.holder(server, user);
    const grant = await this.find(holder, server);
    const { requiredScope } = refusal;
    if (grant === undefined || requiredScope === undefined || !scopePattern.test(requiredScope))
      return grant !== undefined;
    const wantedScope = sdk.computeScopeUnion(grant.wantedScope, requiredScope);
    await this.put(holder, { ...grant, wantedScope });
    return true;
  }

  /** Returns the people of a workspace who have connected a server, and when; null means everyone. */
  async peopleOf(
    server: UpstreamServer,
    workspaceId: string,
  ): Promise<{ personId: string | null; connectedAtMs: number }[]> {
    const holder = this.holder(server, { session: "", workspaceId, personId: "" });
    const rows = await this.options.database
      .selectFrom("mcp_grants")
      .select(["person_id", "updated_at_ms"])
      .where("server_key", "=", holder.serverKey)
      .where("workspace_id", "=", holder.workspaceId)
      .orderBy("updated_at_ms", "desc")
      .execute();
    return rows.map(({ person_id: person, updated_at_ms: at }) => ({
      personId: person === everyone ? null : person,
      connectedAtMs: Number(at),
    }));
  }

  /**
   * Forgets the tokens of a person, and revokes them at the authorization server where it has an
   * address for that. Returns whether there were any.
   */
  async remove(server: UpstreamServer, user: ServerUser): Promise<boolean> {
    const holder = this.holder(server, user);
    const { serverKey, workspaceId, personId } = holder;
    const grant = await this.find(holder, server).catch(() => undefined);
    await this.options.database
      .deleteFrom("mcp_grants")
      .where("server_key", "=", serverKey)
      .where("workspace_id", "=", workspaceId)
      .where("person_id", "=", personId)
      .execute();
    if (grant !== undefined) await this.revoke(server, grant);
    return grant !== undefined;
  }

  /** Forgets all tokens for a server. */
  async removeAll(serverKey: string): Promise<void> {
    await this.options.database
      .deleteFrom("mcp_grants")
      .where("server_key", "=", serverKey)
      .execute();
  }

  /** Returns what gives a connection the person's present token, and refreshes it. */
  providerOf(server: UpstreamServer, user: ServerUser): AuthProvider {
    const holder = this.holder(server, user);
    return {
      token: async () => {
        const grant = await this.find(holder, server);
        if (grant === undefined) throw new NotConnectedError(server);
        return grant.tokens.access_token;
      },
      onUnauthorized: () =>
        this.mutex.run(JSON.stringify(holder), () => this.refresh(server, holder)),
    };
  }

  /** Notes the answer of a server to a request with a token. */
  note(request: Headers, { status }: Pick<Response, "status">): void {
    const token = request.get("authorization")?.replace(/^Bearer /, "");
    if (status !== 401 || token === undefined) return;
    this.refused.add(token);
    for (const oldest of this.refused) {
      if (this.refused.size <= refusedMax) return;
      this.refused.delete(oldest);
    }
  }

  /**
   * Refreshes tokens, unless another request or gateway has done so since they were sent. A refresh
   * token that rotates is used once, whichever gateway needs it: authorization servers take one
   * that is used twice for stolen, and end them all.
   */
  private async refresh(server: UpstreamServer, holder: Holder): Promise<void> {
    for (;;) {
      const grant = await this.find(holder, server);
      if (grant === undefined) throw new NotConnectedError(server);
      if (!this.refused.has(grant.tokens.access_token)) return;
      if (await this.takeRefresh(holder)) return this.refreshAlone(server, holder);
      await Bun.sleep(lookMs);
    }
  }

  /** Takes the refresh of tokens for this gateway. Returns false while another one does it. */
  private async takeRefresh({ serverKey, workspaceId, personId }: Holder): Promise<boolean> {
    const { database, clock } = this.options;
    const { numUpdatedRows } = await database
      .updateTable("mcp_grants")
      .set({ refreshing_until_ms: clock.nowMs() + refreshMs })
      .where("server_key", "=", serverKey)
      .where("workspace_id", "=", workspaceId)
      .where("person_id", "=", personId)
      .where("refreshing_until_ms", "<", clock.nowMs())
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }

  private async endRefresh({ serverKey, workspaceId, personId }: Holder): Promise<void> {
    await this.options.database
      .updateTable("mcp_grants")
      .set({ refreshing_until_ms: 0 })
      .where("server_key", "=", serverKey)
      .where("workspace_id", "=", workspaceId)
      .where("person_id", "=", personId)
      .execute();
  }

  private async refreshAlone(server: UpstreamServer, holder: Holder): Promise<void> {
    const grant = await this.find(holder, server);
    if (grant === undefined) throw new NotConnectedError(server);
    const { tokens, issuer, metadata, client, resource } = grant;
    try {
      // Another gateway may have ended its refresh between the two looks.
      if (!this.refused.has(tokens.access_token)) return;
      if (tokens.refresh_token === undefined) throw new NotConnectedError(server);
      const sdk = await import("@modelcontextprotocol/client");
      const fresh = await sdk.refreshAuthorization(issuer, {
        ...(metadata && { metadata }),
        clientInformation: client,
        refreshToken: tokens.refresh_token,
        resource,
        fetchFn: this.fetchTo(server),
      });
      await this.put(holder, { ...grant, tokens: { ...tokens, ...fresh } });
    } catch (error) {
      const now = await this.find(holder, server);
      if (now !== undefined && now.tokens.access_token !== tokens.access_token) return;
      throw error instanceof NotConnectedError ? error : new NotConnectedError(server);
    } finally {
      await this.endRefresh(holder);
    }
  }

  /** Revokes tokens (RFC 7009). One that cannot be revoked ends by itself, and is sent no more. */
  private async revoke(server: UpstreamServer, { metadata, client, tokens }: Grant): Promise<void> {
    const { revocation_endpoint: url } = Object(metadata) as { revocation_endpoint?: unknown };
    if (typeof url !== "string") return;
    const token = tokens.refresh_token ?? tokens.access_token;
    const body = new URLSearchParams({
      token,
      token_type_hint: tokens.refresh_token === undefined ? "access_token" : "refresh_token",
      client_id: client.client_id,
      ...(client.client_secret !== undefined && { client_secret: client.client_secret }),
    });
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    await this.fetchTo(server)(url, { method: "POST", headers, body: body.toString() }).catch(
      () => undefined,
    );
  }

  private fetchTo({ workspaceId }: UpstreamServer) {
    const { guard } = this.options;
    return serverFetch({ guard, guarded: workspaceId !== null, headers: {} });
  }

  private holder(server: UpstreamServer, user: ServerUser): Holder {
    const holder = holderOf(server, user);
    const isOperators = server.workspaceId === null && server.auth.type === "oauth";
    return isOperators ? { ...holder, workspaceId: this.options.operatorWorkspaceId } : holder;
  }

  private placeOf({ serverKey, workspaceId, personId }: Holder) {
    return { workspaceId, id: serverKey, facts: ["mcp-grant", personId] };
  }

  private async find(holder: Holder, { target }: UpstreamServer): Promise<Grant | undefined> {
    const { database, vault } = this.options;
    const row = await database
      .selectFrom("mcp_grants")
      .select("sealed")
      .where("server_key", "=", holder.serverKey)
      .where("workspace_id", "=", holder.workspaceId)
      .where("person_id", "=", holder.personId)
      .executeTakeFirst();
    if (row === undefined) return undefined;
    await vault.learn(holder.workspaceId);
    const text = vault.openRecord(this.placeOf(holder), row.sealed).toString("utf8");
    const grant = JSON.parse(text) as Grant;
    // Tokens for an address are not sent to another one.
    const isSame =
      target.transport === "streamable_http" && target.url === (grant.url ?? grant.resource);
    return isSame ? grant : undefined;
  }

  private async put(holder: Holder, grant: Grant): Promise<void> {
    const { database, vault, clock } = this.options;
    const values = {
      sealed: await vault.sealRecord(
        this.placeOf(holder),
        Buffer.from(JSON.stringify(grant), "utf8"),
      ),
      updated_at_ms: clock.nowMs(),
    };
    await database
      .insertInto("mcp_grants")
      .values({
        server_key: holder.serverKey,
        workspace_id: holder.workspaceId,
        person_id: holder.personId,
        ...values,
      })
      .onConflict((conflict) =>
        conflict.columns(["server_key", "workspace_id", "person_id"]).doUpdateSet(values),
      )
      .execute();
  }
}

/** Scopes as a server may ask for them (RFC 6749, 3.3). */
const scopePattern = /^[\x21\x23-\x5b\x5d-\x7e ]{1,1000}$/;

/** Returns an error, and what caused it. */
function causesOf(error: unknown): Error[] {
  const causes: Error[] = [];
  for (let cause = error; cause instanceof Error; cause = cause.cause) causes.push(cause);
  return causes;
}

/** Returns whether an error says that a server is not connected, or was caused by one that does. */
export const isNotConnected = (error: unknown): boolean =>
  causesOf(error).some((cause) => cause instanceof NotConnectedError);
