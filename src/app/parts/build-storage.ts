import type { Kysely } from "kysely";
import { createHmac, timingSafeEqual } from "node:crypto";
import { auditChainInsert } from "../../access/audit/audit-chain.ts";
import { auditInsert, auditOutcomeInsert } from "../../access/audit/audit-log.ts";
import { grantInsert } from "../../billing/credits/grants.ts";
import { ledgerAdds, transferInsert } from "../../billing/ledger/transfer.ts";
import { paymentInserts } from "../../billing/payments/payment-store.ts";
import { providerKeyAdd } from "../../byok/provider-key-usage.ts";
import type { ConsentTables } from "../../consent/consent-tables.ts";
import type { DocumentJobTables } from "../../documents/jobs/document-job-store.ts";
import type { BatchTables } from "../../batches/batch.ts";
import { batchResultInsert } from "../../batches/line-store.ts";
import type { FileTables } from "../../files/file-store.ts";
import type { RouteHistoryTables } from "../../inference/catalog/route-history.ts";
import type { PriceTables } from "../../inference/catalog/price-history.ts";
import {
  type ResponseTables,
  storedResponseInserts,
} from "../../inference/responses/response-store.ts";
import {
  archiveOutboxAdd,
  archivingCommits,
  forgetOutbox,
  type OutboxTables,
} from "../../insights/archive/outbox-add.ts";
import { contentInsert, type ContentTables } from "../../insights/archive/content-insert.ts";
import { generationInsert, type GenerationTables } from "../../insights/generation-record.ts";
import type { InsightTables } from "../../insights/open-insights.ts";
import { refusedHourAdd } from "../../insights/refused-requests.ts";
import { usageAddStatements } from "../../insights/usage/usage-rollup.ts";
import type { ConversationTables } from "../../mcp/hub/conversation.ts";
import type { GrantTables } from "../../mcp/gateway/oauth/grants.ts";
import type { UpstreamServerTables } from "../../mcp/gateway/upstream-server-store.ts";
import type { HubTables } from "../../mcp/hub/entry.ts";
import type { EntryTables } from "../../operator/entry-store.ts";
import { ConfigurationError } from "../../platform/config/configuration-error.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { GatewayTables } from "../../platform/storage/database-epoch.ts";
import { migrations } from "../../platform/storage/migrations/index.ts";
import { openStorage } from "../../platform/storage/open-storage.ts";
import type { CommitStatements } from "../../platform/storage/commit-queue.ts";
import type { Replica } from "../../platform/storage/postgres/replica.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import { sumTablesOf } from "../../platform/storage/sum-reads.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { AppSettings } from "../settings-of.ts";
import type { AccountTables } from "../open-account.ts";
import type { NodeTables } from "../gateway-nodes.ts";
import { type Shared, hasSeveralGateways, openEpoch } from "../open-shared.ts";
import type { PaymentTables } from "../../billing/payments/payment-tables.ts";

/** Every table of the gateway. */
export type AppTables = AccountTables &
  GenerationTables &
  ResponseTables &
  RouteHistoryTables &
  PriceTables &
  InsightTables &
  OutboxTables &
  ContentTables &
  DocumentJobTables &
  FileTables &
  BatchTables &
  PaymentTables &
  GatewayTables &
  NodeTables &
  ConsentTables &
  HubTables &
  UpstreamServerTables &
  GrantTables &
  EntryTables &
  ConversationTables;

/** Every statement that commits may contain. */
const commitStatements: CommitStatements = {
  inserts: [
    transferInsert,
    grantInsert,
    auditInsert,
    auditOutcomeInsert,
    auditChainInsert,
    generationInsert,
    contentInsert,
    ...storedResponseInserts,
    ...paymentInserts,
    batchResultInsert,
  ],
  adds: [...ledgerAdds, providerKeyAdd, ...usageAddStatements, refusedHourAdd, archiveOutboxAdd],
};

/** The settings that opening the database depends on. */
export type StorageSettings = Pick<
  AppSettings,
  "storageUrl" | "durability" | "sharedUrl" | "mayMigrate" | "waitMs" | "poolSize"
>;

/** Opens the database with the tables and commits of every folder. */
export const buildStorage = (
  settings: StorageSettings,
  logger: Logger,
): Promise<Storage<AppTables>> =>
  openStorage<AppTables>({
    url: settings.storageUrl,
    durability: settings.durability,
    migrations,
    logger,
    commitStatements,
    severalGateways: hasSeveralGateways(settings),
    waitMs: settings.waitMs ?? 0,
    ...(settings.poolSize !== undefined && { poolSize: settings.poolSize }),
    mayMigrate: settings.mayMigrate ?? true,
  });

/**
 * Opens the database for a gateway: checks that it has the keys that the database was first opened
 * with, and enters its epoch.
 */
export async function openDatabase(
  settings: AppSettings,
  { shared, clock, logger }: { shared: Shared | undefined; clock: Clock; logger: Logger },
): Promise<Storage<AppTables>> {
  const storage = await buildStorage(settings, logger);
  await requireSameKeys(withTables(storage.database), settings);
  await openEpoch(shared, settings, { storage, clock, logger });
  if (settings.archive !== undefined)
    return { ...storage, commits: archivingCommits(storage.commits) };
  await forgetOutbox(withTables(storage.database));
  return storage;
}

/**
 * Opens the configured replica, whose code is loaded only then; undefined where none is configured.
 */
export async function openReplica(
  { replicaUrl: url, poolSize = 10 }: Pick<AppSettings, "replicaUrl" | "poolSize">,
  {
    storage,
    clock,
    logger,
  }: { storage: Pick<Storage<AppTables>, "database">; clock: Clock; logger: Logger },
): Promise<Replica | undefined> {
  if (url === undefined) return undefined;
  const { Replica } = await import("../../platform/storage/postgres/replica.ts");
  return new Replica({
    url,
    poolSize,
    primary: withTables(storage.database),
    sums: sumTablesOf(commitStatements.adds),
    clock,
    logger,
  });
}

/** Returns a fingerprint by which keys can be compared, and which reveals nothing else of them. */
const fingerprintOf = (key: Uint8Array): string =>
  createHmac("sha256", key).update("switchyard key fingerprint").digest("hex");

const isSame = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));

/**
 * Refuses keys other than those that the database was first opened with: no other gateway could
 * read what this one writes, starting with the first credential. A new secrets key is accepted
 * where the old one is named as the previous.
 */
async function requireSameKeys(
  database: Kysely<GatewayTables>,
  { encryptionKey, masterSecrets }: Pick<AppSettings, "encryptionKey" | "masterSecrets">,
): Promise<void> {
  const { current, previous } = masterSecrets ?? { current: encryptionKey, previous: [] };
  const facts = await database
    .selectFrom("gateway_facts")
    .select(["name", "value"])
    .where("name", "in", ["encryption_key", "secrets_key"])
    .execute();
  const kept = new Map(facts.map(({ name, value }) => [name, value]));
  await requireSame(database, {
    name: "encryption_key",
    kept: kept.get("encryption_key"),
    variable: "SWITCHYARD_ENCRYPTION_KEY",
    key: encryptionKey,
    previous: [],
  });
  await requireSame(database, {
    name: "secrets_key",
    kept: kept.get("secrets_key"),
    variable: "SWITCHYARD_SECRETS_KEY",
    key: current,
    previous,
  });
}

/** Adds a fact; returns its value, or that which another gateway added meanwhile. */
async function keptOrAdded(
  database: Kysely<GatewayTables>,
  { name, value }: { name: string; value: string },
): Promise<string> {
  await database
    .insertInto("gateway_facts")
    .values({ name, value })
    .onConflict((conflict) => conflict.column("name").doNothing())
    .execute();
  const kept = await database
    .selectFrom("gateway_facts")
    .select("value")
    .where("name", "=", name)
    .executeTakeFirstOrThrow();
  return kept.value;
}

async function requireSame(
  database: Kysely<GatewayTables>,
  {
    name,
    kept: found,
    variable,
    key,
    previous,
  }: {
    name: string;
    /** The fingerprint that the database has; absent at its first start. */
    kept: string | undefined;
    variable: string;
    key: Uint8Array;
    previous: readonly Uint8Array[];
  },
): Promise<void> {
  const value = fingerprintOf(key);
  const kept = found ?? (await keptOrAdded(database, { name, value }));
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
