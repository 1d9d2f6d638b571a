import { type Kysely, sql } from "kysely";
import { isScope, type Scope } from "./scopes.ts";

/** The rolling windows of a spending limit; null is the 30-day window. */
export type LimitReset = "daily" | "weekly" | "monthly" | null;

const windowHours = { daily: 24, weekly: 7 * 24, monthly: 30 * 24 } as const;

/** Returns the length, in hours, of the window of a limit. */
export const limitWindowHours = (reset: LimitReset): number => windowHours[reset ?? "monthly"];

/** An LLM key, with the keyed hash of its secret; the secret itself is never kept. */
export interface LlmKey {
  /** A `key_` id. It survives rotation, so counters refer to it. */
  id: string;
  /** The keyed hash of the secret, in hexadecimal; it changes on rotation. */
  hash: string;
  workspaceId: string;
  name: string;
  /** The masked form of the secret. */
  label: string;
  createdAtMs: number;
  updatedAtMs: number | null;
  expiresAtMs: number | null;
  disabled: boolean;
  /** The spending limit in nano-USD within the window of `limitReset`; null means none. */
  limitNanoUsd: bigint | null;
  limitReset: LimitReset;
  /**
   * The limit of a run as it is now, also for requests that began before it was changed: what it
   * lost belongs to others. Absent for keys of no run.
   */
  presentLimit?: { limitNano: bigint; windowHours: number };
  includeByokInLimit: boolean;
  /** Requests per minute; null uses the plan's rate. */
  rateLimitPerMinute: number | null;
  tokensPerMinute: number | null;
  /** Lower-case model ids; null allows all. */
  allowedModels: readonly string[] | null;
  allowedEndpoints: readonly string[] | null;
  /** Servers and tools (`server`, `server/tool`) that it may use; absent or null allows all. */
  allowedTools?: readonly string[] | null;
  /** Whether it may call providers' own routes (scope `passthrough`); absent where it may not. */
  passthrough?: true;
  /** The most of each run that it opens, in nano-USD; absent means no bound beside its own. */
  runLimitNano?: bigint | null;
  creatorUserId: string;
  /**
   * The person to whose session the present secret was shown; absent where a key, an app or a file
   * received it, or where that was not recorded.
   */
  holderUserId?: string;
  /** The operator who gave it an operator's rights; absent for nearly all keys. */
  operatorUserId?: string;
  /**
   * The secret from before the last rotation, while it is still accepted; absent where it was
   * refused at once.
   */
  previous?: { hash: string; untilMs: number };
  /** The key that created this one, and whose limits also apply; absent where no key did. */
  parentKeyId?: string;
  /** The end customer whose key this is, by its own id; absent for keys of no customer. */
  customer?: string;
  /** The team that it belongs to; absent or null for none. Keys that it created belong to it too. */
  teamId?: string | null;
  /**
   * The connected app whose access token this key is; absent for keys that people and programs hold
   * themselves.
   */
  connection?: KeyConnection;
}

/** The parts of the service that access tokens can be restricted to. */
const tokenAudiences = ["mcp", "rest"] as const;
type TokenAudience = (typeof tokenAudiences)[number];

/**
 * A person's grant to a connected app (OAuth 2.0, RFC 6749 section 3.3). Its key carries the
 * limits, the spending and the secret.
 */
export interface KeyConnection {
  /** A `con_` id. */
  id: string;
  scopes: readonly Scope[];
  /** The part of the service that its tokens are for (RFC 8707); absent means all of it. */
  audience?: TokenAudience;
  /**
   * When the current access token expires; null where it lasts as long as the key. A refresh
   * replaces the key's secret.
   */
  tokenExpiresAtMs: number | null;
}

/** The fields of a key that its owner may change; absent ones stay as they are. */
export type LlmKeyChanges = Partial<
  Pick<
    LlmKey,
    | "name"
    | "disabled"
    | "includeByokInLimit"
    | "limitNanoUsd"
    | "limitReset"
    | "rateLimitPerMinute"
    | "expiresAtMs"
    | "allowedModels"
    | "allowedEndpoints"
    | "tokensPerMinute"
    | "runLimitNano"
    | "allowedTools"
    | "teamId"
  >
>;

interface LlmKeyRow {
  id: string;
  hash: string;
  workspace_id: string;
  name: string;
  label: string;
  created_at_ms: number;
  updated_at_ms: number | null;
  expires_at_ms: number | null;
  disabled: number;
  deleted_at_ms: number | null;
  limit_nano: number | bigint | null;
  limit_reset: LimitReset;
  include_byok_in_limit: number;
  rate_limit_per_minute: number | null;
  tokens_per_minute: number | null;
  allowed_models: string | null;
  allowed_endpoints: string | null;
  allowed_tools: string | null;
  creator_user_id: string;
  parent_key_id: string | null;
  connection_id: string | null;
  connection_scopes: string | null;
  token_expires_at_ms: number | null;
  previous_hash: string | null;
  previous_until_ms: number | null;
  holder_user_id: string | null;
  operator_user_id: string | null;
  run_limit_nano: number | bigint | null;
  customer: string | null;
  team_id: string | null;
  passthrough: number;
}

/** The name and the creator of a key or a run, which may be deleted. */
export type KeyCreator = Pick<LlmKey, "name" | "creatorUserId">;

/** The table of LLM keys. */
export interface LlmKeyTables {
  llm_keys: LlmKeyRow;
  runs: { id: string; workspace_id: string; name: string; creator_user_id: string };
}

/** The most ids of one statement, and the most runs that are looked through for a person's. */
const idsMax = 5_000;

const textList = (value: string | null): readonly string[] | null =>
  value === null ? null : (JSON.parse(value) as string[]);

const numberOrNull = (nano: bigint | null): number | null => (nano === null ? null : Number(nano));

const listText = (value: readonly string[] | null): string | null =>
  value === null ? null : JSON.stringify(value);

/** Returns a connection's scopes as they are stored, with the audience of its tokens. */
const scopesText = ({ scopes, audience }: KeyConnection): string =>
  JSON.stringify([...scopes, ...(audience === undefined ? [] : [`audience:${audience}`])]);

function connectionOf(row: LlmKeyRow & { connection_id: string }): KeyConnection {
  const stored = textList(row.connection_scopes) ?? [];
  const audience = tokenAudiences.find((each) => stored.includes(`audience:${each}`));
  return {
    id: row.connection_id,
    scopes: stored.filter(isScope),
    ...(audience !== undefined && { audience }),
    tokenExpiresAtMs: row.token_expires_at_ms,
  };
}

const fromRow = (row: LlmKeyRow): LlmKey => ({
  id: row.id,
  hash: row.hash,
  workspaceId: row.workspace_id,
  name: row.name,
  label: row.label,
  createdAtMs: row.created_at_ms,
  updatedAtMs: row.updated_at_ms,
  expiresAtMs: row.expires_at_ms,
  disabled: row.disabled === 1,
  limitNanoUsd: row.limit_nano === null ? null : BigInt(row.limit_nano),
  limitReset: row.limit_reset,
  includeByokInLimit: row.include_byok_in_limit === 1,
  rateLimitPerMinute: row.rate_limit_per_minute,
  tokensPerMinute: row.tokens_per_minute,
  allowedModels: textList(row.allowed_models),
  allowedEndpoints: textList(row.allowed_endpoints),
  ...(row.allowed_tools === null ? {} : { allowedTools: textList(row.allowed_tools) }),
  ...(row.run_limit_nano === null ? {} : { runLimitNano: BigInt(row.run_limit_nano) }),
  ...(row.passthrough === 1 && { passthrough: true as const }),
  creatorUserId: row.creator_user_id,
  ...(row.holder_user_id === null ? {} : { holderUserId: row.holder_user_id }),
  ...(row.operator_user_id === null ? {} : { operatorUserId: row.operator_user_id }),
  ...(row.previous_hash === null
    ? {}
    : { previous: { hash: row.previous_hash, untilMs: Number(row.previous_until_ms) } }),
  ...(row.parent_key_id === null ? {} : { parentKeyId: row.parent_key_id }),
  ...(row.customer === null ? {} : { customer: row.customer }),
  ...(row.team_id === null ? {} : { teamId: row.team_id }),
  ...(row.connection_id === null
    ? {}
    : { connection: connectionOf({ ...row, connection_id: row.connection_id }) }),
});

/**
 * The operator's rights of a key after a change by an operator: given, or kept where this operator
 * gave them. Any other change takes them away.
 */
export type OperatorRights = { gives: string } | { keeps: string };

/** Returns the columns of the changed fields. All others keep what another write set last. */
const changedColumns = (changes: LlmKeyChanges): Partial<LlmKeyRow> => ({
  ...(changes.name === undefined ? {} : { name: changes.name }),
  ...(changes.disabled === undefined ? {} : { disabled: changes.disabled ? 1 : 0 }),
  ...(changes.expiresAtMs === undefined ? {} : { expires_at_ms: changes.expiresAtMs }),
  ...(changes.limitNanoUsd === undefined ? {} : { limit_nano: numberOrNull(changes.limitNanoUsd) }),
  ...(changes.limitReset === undefined ? {} : { limit_reset: changes.limitReset }),
  ...(changes.includeByokInLimit === undefined
    ? {}
    : { include_byok_in_limit: changes.includeByokInLimit ? 1 : 0 }),
  ...(changes.rateLimitPerMinute === undefined
    ? {}
    : { rate_limit_per_minute: changes.rateLimitPerMinute }),
  ...(changes.allowedModels === undefined
    ? {}
    : { allowed_models: listText(changes.allowedModels) }),
  ...(changes.allowedEndpoints === undefined
    ? {}
    : { allowed_endpoints: listText(changes.allowedEndpoints) }),
  ...(changes.allowedTools === undefined ? {} : { allowed_tools: listText(changes.allowedTools) }),
  ...(changes.tokensPerMinute === undefined ? {} : { tokens_per_minute: changes.tokensPerMinute }),
  ...(changes.runLimitNano === undefined
    ? {}
    : { run_limit_nano: numberOrNull(changes.runLimitNano) }),
  ...(changes.teamId === undefined ? {} : { team_id: changes.teamId }),
});

/** A new secret of a key, which replaces the one with `oldHash`. */
interface NewSecret {
  oldHash: string;
  hash: string;
  label: string;
  nowMs: number;
  /** Until when the old secret is accepted as well; absent refuses it at once. */
  previousUntilMs?: number | undefined;
  /** When the secret expires as an access token; absent leaves it as it is. */
  tokenExpiresAtMs?: number | undefined;
  /** The person to whose session it is shown; absent where no person sees it. */
  holderUserId?: string | undefined;
}

/** Stores LLM keys. Deleted keys stay as rows, so that old charges can still be explained. */
export class LlmKeyStore {
  constructor(private readonly database: Kysely<LlmKeyTables>) {}

  /**
   * Returns every key of all workspaces that was not deleted, oldest first, so that parents come
   * before their children.
   */
  async loadAll(): Promise<LlmKey[]> {
    const rows = await this.database
      .selectFrom("llm_keys")
      .selectAll()
      .where("deleted_at_ms", "is", null)
      .orderBy("created_at_ms")
      .orderBy("id")
      .execute();
    return rows.map(fromRow);
  }

  /** Returns the parent's id of every key that another one created, deleted or not: its spending still counts. */
  async loadParents(): Promise<Map<string, string>> {
    const rows = await this.database
      .selectFrom("llm_keys")
      .select(["id", "parent_key_id"])
      .where("parent_key_id", "is not", null)
      .execute();
    return new Map(rows.map((row) => [row.id, row.parent_key_id ?? ""]));
  }

  /** Returns the keys of one workspace, newest first. */
  async list(workspaceId: string, options: { includeDisabled: boolean }): Promise<LlmKey[]> {
    let query = this.database
      .selectFrom("llm_keys")
      .selectAll()
      .where("workspace_id", "=", workspaceId)
      .where("deleted_at_ms", "is", null);
    if (!options.includeDisabled) query = query.where("disabled", "=", 0);
    const rows = await query.orderBy("created_at_ms", "desc").orderBy("id", "desc").execute();
    return rows.map(fromRow);
  }

  /** Returns the name and creator of keys and runs of a workspace by their ids, deleted ones too. */
  async creatorsOf(workspaceId: string, ids: readonly string[]): Promise<Map<string, KeyCreator>> {
    if (ids.length === 0) return new Map();
    const asked = [...new Set(ids)];
    const others = asked.splice(idsMax);
    const found = await Promise.all([
      this.creations("llm_keys", workspaceId).where("id", "in", asked).execute(),
      this.creations("runs", workspaceId).where("id", "in", asked).execute(),
    ]);
    const creators = found.flat().map(({ id, ...creator }) => [id, creator] as const);
    return new Map([...creators, ...(await this.creatorsOf(workspaceId, others))]);
  }

  /** Returns the ids of the keys that people created, deleted ones too, and of their newest runs. */
  async createdBy(workspaceId: string, userIds: readonly string[]): Promise<string[]> {
    if (userIds.length === 0) return [];
    const found = await Promise.all([
      this.creations("llm_keys", workspaceId).where("creator_user_id", "in", userIds).execute(),
      this.creations("runs", workspaceId).orderBy("id", "desc").limit(idsMax).execute(),
    ]);
    return found.flat().flatMap((each) => (userIds.includes(each.creatorUserId) ? each.id : []));
  }

  /** Returns whether a key with this hash was ever created, deleted or not. */
  async exists(hash: string): Promise<boolean> {
    const row = await this.database
      .selectFrom("llm_keys")
      .select("id")
      .where("hash", "=", hash)
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Returns whether any key was ever created, deleted or not. */
  async wereAnyMade(): Promise<boolean> {
    const query = this.database.selectFrom("llm_keys").select("id").limit(1);
    return (await query.executeTakeFirst()) !== undefined;
  }

  async insert(key: LlmKey): Promise<void> {
    await this.database
      .insertInto("llm_keys")
      .values({
        id: key.id,
        hash: key.hash,
        workspace_id: key.workspaceId,
        name: key.name,
        label: key.label,
        created_at_ms: key.createdAtMs,
        updated_at_ms: key.updatedAtMs,
        expires_at_ms: key.expiresAtMs,
        disabled: key.disabled ? 1 : 0,
        deleted_at_ms: null,
        limit_nano: numberOrNull(key.limitNanoUsd),
        limit_reset: key.limitReset,
        include_byok_in_limit: key.includeByokInLimit ? 1 : 0,
        rate_limit_per_minute: key.rateLimitPerMinute,
        tokens_per_minute: key.tokensPerMinute,
        allowed_models: listText(key.allowedModels),
        allowed_endpoints: listText(key.allowedEndpoints),
        allowed_tools: listText(key.allowedTools ?? null),
        creator_user_id: key.creatorUserId,
        parent_key_id: key.parentKeyId ?? null,
        customer: key.customer ?? null,
        team_id: key.teamId ?? null,
        connection_id: key.connection?.id ?? null,
        connection_scopes: key.connection === undefined ? null : scopesText(key.connection),
        token_expires_at_ms: key.connection?.tokenExpiresAtMs ?? null,
        previous_hash: null,
        previous_until_ms: null,
        holder_user_id: key.holderUserId ?? null,
        operator_user_id: key.operatorUserId ?? null,
        passthrough: key.passthrough === true ? 1 : 0,
        run_limit_nano: numberOrNull(key.runLimitNano ?? null),
      })
      .execute();
  }

  /** Returns the stored key; undefined when there is none or it was deleted. */
  async find(id: string): Promise<LlmKey | undefined> {
    const row = await this.database
      .selectFrom("llm_keys")
      .selectAll()
      .where("id", "=", id)
      .where("deleted_at_ms", "is", null)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  /**
   * Returns the id of the key whose secret has this hash now; undefined where there is none or it
   * was deleted.
   */
  async idOfHash(hash: string): Promise<string | undefined> {
    const row = await this.database
      .selectFrom("llm_keys")
      .select("id")
      .where("hash", "=", hash)
      .where("deleted_at_ms", "is", null)
      .executeTakeFirst();
    return row?.id;
  }

  /**
   * Changes some fields and returns the changed key; undefined when there is none or it was
   * deleted. An operator's rights are lost unless `rights` says otherwise, and given only to a
   * secret that their operator holds.
   */
  async change(
    id: string,
    {
      changes,
      nowMs,
      rights,
    }: { changes: LlmKeyChanges; nowMs: number; rights?: OperatorRights | undefined },
  ): Promise<LlmKey | undefined> {
    let query = this.database
      .updateTable("llm_keys")
      .set({ ...changedColumns(changes), updated_at_ms: nowMs })
      .where("id", "=", id)
      .where("deleted_at_ms", "is", null);
    if (rights === undefined) query = query.set({ operator_user_id: null });
    else if ("gives" in rights)
      query = query
        .set({ operator_user_id: rights.gives })
        .where("holder_user_id", "=", rights.gives);
    else
      query = query.set({
        operator_user_id: sql`case when operator_user_id = ${rights.keeps} then operator_user_id end`,
      });
    const row = await query.returningAll().executeTakeFirst();
    return row && fromRow(row);
  }

  /** Takes an operator's rights from every key that they gave them to; returns those keys. */
  async withdrawRights(operatorUserId: string, nowMs: number): Promise<LlmKey[]> {
    const rows = await this.database
      .updateTable("llm_keys")
      .set({ operator_user_id: null, updated_at_ms: nowMs })
      .where("operator_user_id", "=", operatorUserId)
      .returningAll()
      .execute();
    return rows.filter(({ deleted_at_ms: deletedAtMs }) => deletedAtMs === null).map(fromRow);
  }

  /** Replaces the secret of a key, which loses an operator's rights; undefined when its hash is another or it was deleted. */
  async rotate(
    id: string,
    { oldHash, hash, label, nowMs, tokenExpiresAtMs, previousUntilMs, holderUserId }: NewSecret,
  ): Promise<LlmKey | undefined> {
    const expiry = tokenExpiresAtMs === undefined ? {} : { token_expires_at_ms: tokenExpiresAtMs };
    const previous =
      previousUntilMs === undefined
        ? { previous_hash: null, previous_until_ms: null }
        : { previous_hash: oldHash, previous_until_ms: previousUntilMs };
    const row = await this.database
      .updateTable("llm_keys")
      .set({
        hash,
        label,
        updated_at_ms: nowMs,
        holder_user_id: holderUserId ?? null,
        operator_user_id: null,
        ...expiry,
        ...previous,
      })
      .where("id", "=", id)
      .where("hash", "=", oldHash)
      .where("deleted_at_ms", "is", null)
      .returningAll()
      .executeTakeFirst();
    return row && fromRow(row);
  }

  /**
   * Deletes a key softly, with the keys that it created: they are never loaded again, and their
   * rows explain old charges.
   */
  async remove(id: string, nowMs: number): Promise<void> {
    await this.database
      .updateTable("llm_keys")
      .set({ deleted_at_ms: nowMs })
      .where((where) => where.or([where("id", "=", id), where("parent_key_id", "=", id)]))
      .where("deleted_at_ms", "is", null)
      .execute();
  }

  /** Selects the ids, names and creators of the keys or the runs of a workspace. */
  private creations(table: "llm_keys" | "runs", workspaceId: string) {
    return this.database
      .selectFrom(table)
      .select(["id", "name", "creator_user_id as creatorUserId"])
      .where("workspace_id", "=", workspaceId);
  }
}
