import { createHmac, timingSafeEqual } from "node:crypto";
import type { Kysely } from "kysely";
import type { AppSettings } from "./app-settings.ts";
import { ConfigurationError } from "../platform/config/configuration-error.ts";
import type { GatewayTables } from "../platform/storage/database-epoch.ts";

/** Says nothing about the key but whether it is the same. */
const fingerprintOf = (key: Uint8Array): string =>
  createHmac("sha256", key).update("switchyard key fingerprint").digest("hex");

const isSame = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));

/**
 * Refuses keys other than those that the database was first opened with: what one gateway wrote no other could read, from the first
 * credential on. A secrets key may follow one that is named as the previous.
 */
export async function requireSameKeys(
  database: Kysely<GatewayTables>,
  { encryptionKey, masterSecrets }: Pick<AppSettings, "encryptionKey" | "masterSecrets">,
): Promise<void> {
  await requireSame(database, {
    name: "encryption_key",
    variable: "SWITCHYARD_ENCRYPTION_KEY",
    key: encryptionKey,
    previous: [],
  });
  const { current, previous } = masterSecrets ?? { current: encryptionKey, previous: [] };
  await requireSame(database, {
    name: "secrets_key",
    variable: "SWITCHYARD_SECRETS_KEY",
    key: current,
    previous,
  });
}

async function requireSame(
  database: Kysely<GatewayTables>,
  {
    name,
    variable,
    key,
    previous,
  }: { name: string; variable: string; key: Uint8Array; previous: readonly Uint8Array[] },
): Promise<void> {
  const value = fingerprintOf(key);
  await database
    .insertInto("gateway_facts")
    .values({ name, value })
    .onConflict((conflict) => conflict.column("name").doNothing())
    .execute();
  const kept = (
    await database
      .selectFrom("gateway_facts")
      .select("value")
      .where("name", "=", name)
      .executeTakeFirstOrThrow()
  ).value;
  if (isSame(kept, value)) return;
  if (!previous.some((each) => isSame(kept, fingerprintOf(each)))) {
    throw new ConfigurationError([
      {
        key: variable,
        message:
          "is not the key that this database was first opened with; give every gateway on it the same one",
      },
    ]);
  }
  await database.updateTable("gateway_facts").set({ value }).where("name", "=", name).execute();
}
