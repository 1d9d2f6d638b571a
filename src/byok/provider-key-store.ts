import type { Kysely } from "kysely";
import type { KeySource, QuotaReset, PauseReason, ProviderKey } from "./provider-key.ts";

/** Returns the fields of a record that a change gave other values. */
export const changesOf = <Record extends object>(before: Record, after: Record): Partial<Record> =>
  Object.fromEntries(
    Object.entries(after).filter(([name, value]) => before[name as keyof Record] !== value),
  ) as Partial<Record>;

interface ProviderKeyRow {
  id: string;
  workspace_id: string;
  provider_id: string;
  label: string;
  preview: string;
  sealed: string;
  enabled: number;
  source: string;
  quota_limit_nano: number | bigint | null;
  quota_reset: string | null;
  donated_at_ms: number | null;
  daily_limit_nano: number | bigint | null;
  pause_reason: string | null;
  created_at_ms: number;
  updated_at_ms: number | null;
}

/** Rows of provider keys. */
export interface ProviderKeyTables {
  provider_keys: ProviderKeyRow;
}

const nanoOrNull = (nano: number | bigint | null): bigint | null =>
  nano === null ? null : BigInt(nano);
const numberOrNull = (nano: bigint | null | undefined): number | null =>
  nano === null || nano === undefined ? null : Number(nano);

const fromRow = (row: ProviderKeyRow): ProviderKey => ({
  id: row.id,
  workspaceId: row.workspace_id,
  providerId: row.provider_id,
  label: row.label,
  preview: row.preview,
  sealed: row.sealed,
  enabled: row.enabled === 1,
  source: row.source as KeySource,
  quota:
    row.quota_limit_nano === null
      ? null
      : { limitNano: BigInt(row.quota_limit_nano), reset: row.quota_reset as QuotaReset },
  donation:
    row.donated_at_ms === null
      ? null
      : {
          donatedAtMs: row.donated_at_ms,
          dailyLimitNano: nanoOrNull(row.daily_limit_nano),
          paused: row.pause_reason as PauseReason | null,
        },
  createdAtMs: row.created_at_ms,
  updatedAtMs: row.updated_at_ms,
});

const toRow = (key: ProviderKey): ProviderKeyRow => ({
  id: key.id,
  workspace_id: key.workspaceId,
  provider_id: key.providerId,
  label: key.label,
  preview: key.preview,
  sealed: key.sealed,
  enabled: key.enabled ? 1 : 0,
  source: key.source,
  quota_limit_nano: numberOrNull(key.quota?.limitNano),
  quota_reset: key.quota?.reset ?? null,
  donated_at_ms: key.donation?.donatedAtMs ?? null,
  daily_limit_nano: numberOrNull(key.donation?.dailyLimitNano),
  pause_reason: key.donation?.paused ?? null,
  created_at_ms: key.createdAtMs,
  updated_at_ms: key.updatedAtMs,
});

/** Stores sealed provider keys. */
export class ProviderKeyStore {
  constructor(private readonly database: Kysely<ProviderKeyTables>) {}

  /** Returns every key of all workspaces, oldest first. */
  async loadAll(): Promise<ProviderKey[]> {
    const rows = await this.database
      .selectFrom("provider_keys")
      .selectAll()
      .orderBy("created_at_ms")
      .orderBy("id")
      .execute();
    return rows.map(fromRow);
  }

  /** Returns every key of a workspace, oldest first. */
  async list(workspaceId: string): Promise<ProviderKey[]> {
    const rows = await this.database
      .selectFrom("provider_keys")
      .selectAll()
      .where("workspace_id", "=", workspaceId)
      .orderBy("created_at_ms")
      .orderBy("id")
      .execute();
    return rows.map(fromRow);
  }

  /** Returns the stored key; undefined when there is none. */
  async find(id: string): Promise<ProviderKey | undefined> {
    const row = await this.database
      .selectFrom("provider_keys")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  async insert(key: ProviderKey): Promise<void> {
    await this.database.insertInto("provider_keys").values(toRow(key)).execute();
  }

  /**
   * Writes the fields in which a key differs from before, so that the changes which another gateway
   * made to other fields stay. Returns false where the key was deleted.
   */
  async update(before: ProviderKey, after: ProviderKey): Promise<boolean> {
    const { numUpdatedRows } = await this.database
      .updateTable("provider_keys")
      .set({ ...changesOf(toRow(before), toRow(after)), updated_at_ms: after.updatedAtMs })
      .where("id", "=", after.id)
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }

  /** Deletes a key permanently, with its sealed text. */
  async remove(id: string): Promise<void> {
    await this.database.deleteFrom("provider_keys").where("id", "=", id).execute();
  }
}
