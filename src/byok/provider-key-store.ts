import type { Kysely } from "kysely";
import { changesOf } from "../platform/storage/changes-of.ts";
import { recordColumns, type RowOf } from "../platform/storage/record-columns.ts";
import type { QuotaReset, PauseReason, ProviderKey } from "./provider-key.ts";

interface ProviderKeyRow extends RowOf<Omit<ProviderKey, "quota" | "donation">> {
  quota_limit_nano: number | bigint | null;
  quota_reset: string | null;
  donated_at_ms: number | null;
  daily_limit_nano: number | bigint | null;
  pause_reason: string | null;
}

/** Rows of provider keys. */
export interface ProviderKeyTables {
  provider_keys: ProviderKeyRow;
}

const nanoOrNull = (nano: number | bigint | null): bigint | null =>
  nano === null ? null : BigInt(nano);
const numberOrNull = (nano: bigint | null | undefined): number | null =>
  nano === null || nano === undefined ? null : Number(nano);

const columns = recordColumns<Omit<ProviderKey, "quota" | "donation">>({
  id: "plain",
  workspaceId: "plain",
  providerId: "plain",
  label: "plain",
  preview: "plain",
  sealed: "plain",
  enabled: "flag",
  source: "plain",
  createdAtMs: "plain",
  updatedAtMs: "plain",
});

const fromRow = (row: ProviderKeyRow): ProviderKey => ({
  ...columns.fromRow(row),
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
});

const toRow = (key: ProviderKey): ProviderKeyRow => ({
  ...columns.rowOf(key),
  quota_limit_nano: numberOrNull(key.quota?.limitNano),
  quota_reset: key.quota?.reset ?? null,
  donated_at_ms: key.donation?.donatedAtMs ?? null,
  daily_limit_nano: numberOrNull(key.donation?.dailyLimitNano),
  pause_reason: key.donation?.paused ?? null,
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
