import type { Kysely } from "kysely";
import type { ProviderKeyUsage } from "./provider-key-usage.ts";

/** Rows of what went through each key, by hour. */
export interface ProviderKeyUsageTables {
  provider_key_hours: {
    key_id: string;
    hour: number;
    spend_nano: number | bigint;
    requests: number;
    pool_nano: number | bigint;
    pool_requests: number;
  };
}

/** Fills the windows of quotas as the database has them, and forgets what stood in them; they are written through the commit queue only. */
export async function loadProviderKeyUsage(
  database: Kysely<ProviderKeyUsageTables>,
  usage: ProviderKeyUsage,
): Promise<void> {
  const rows = await database
    .selectFrom("provider_key_hours")
    .select(["key_id", "hour", "spend_nano", "pool_nano"])
    .orderBy("hour")
    .execute();
  usage.forgetUsed();
  for (const row of rows) {
    usage.restore(row.key_id, {
      hour: row.hour,
      spendNano: BigInt(row.spend_nano),
      poolNano: BigInt(row.pool_nano),
    });
  }
}
