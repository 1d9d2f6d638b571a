import { providerKeyAdd } from "../account/byok/provider-key-usage.ts";
import { grantInsert } from "../account/ledger/grants.ts";
import { accountAdd, keyByokAdd, keySpendAdd, transferInsert } from "../account/ledger/transfer.ts";
import type { AccountTables } from "../account/open-account.ts";
import { paymentInserts } from "../account/payments/payment-rows.ts";
import type { PaymentTables } from "../account/payments/payment-tables.ts";
import { auditChainInsert } from "../account/security/audit-chain.ts";
import { auditInsert, auditOutcomeInsert } from "../account/security/audit-log.ts";
import type { AppSettings } from "./app-settings.ts";
import type { ConsentTables } from "../consent/consent-tables.ts";
import type { DocumentJobTables } from "../documents/jobs/document-job-store.ts";
import type { RouteHistoryTables } from "../inference/catalog/route-history.ts";
import {
  storedResponseInserts,
  type ResponseTables,
} from "../inference/stored-responses/response-rows.ts";
import type { ConversationTables } from "../mcp/hub/conversation.ts";
import type { HubTables } from "../mcp/hub/entry-store.ts";
import { generationInsert } from "../insights/generation-record.ts";
import type { GenerationTables } from "../insights/generation-store.ts";
import type { InsightTables } from "../insights/open-insights.ts";
import { refusedHourAdd } from "../insights/refused-requests.ts";
import { usageAddStatements } from "../insights/usage-rollup.ts";
import { requireSameKeys } from "./key-fingerprints.ts";
import { hasSeveralGateways, openEpoch, type Shared } from "./open-shared.ts";
import type { Clock } from "../platform/lib/clock.ts";
import { migrations } from "../platform/storage/migrations/index.ts";
import type { GatewayTables } from "../platform/storage/database-epoch.ts";
import { openStorage } from "../platform/storage/open-storage.ts";
import type { CommitStatements } from "../platform/storage/packed-unit.ts";
import type { Storage } from "../platform/storage/storage.ts";
import type { Logger } from "../platform/telemetry/logger.ts";

/** Every table of the gateway. */
export type AppTables = AccountTables &
  GenerationTables &
  ResponseTables &
  RouteHistoryTables &
  InsightTables &
  DocumentJobTables &
  PaymentTables &
  GatewayTables &
  ConsentTables &
  HubTables &
  ConversationTables;

/** Every statement that commits may carry. */
const commitStatements: CommitStatements = {
  inserts: [
    transferInsert,
    grantInsert,
    auditInsert,
    auditOutcomeInsert,
    auditChainInsert,
    generationInsert,
    ...storedResponseInserts,
    ...paymentInserts,
  ],
  adds: [
    accountAdd,
    keySpendAdd,
    keyByokAdd,
    providerKeyAdd,
    ...usageAddStatements,
    refusedHourAdd,
  ],
};

/** What opening the database depends on. */
export type StorageSettings = Pick<
  AppSettings,
  "storageUrl" | "durability" | "sharedUrl" | "mayMigrate" | "waitMs"
>;

/** Opens the database with the tables and the commits of every room. */
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
    mayMigrate: settings.mayMigrate ?? true,
  });

/** Opens the database for a gateway: with the keys that it was first opened with, and in its epoch. */
export async function openDatabase(
  settings: AppSettings,
  { shared, clock, logger }: { shared: Shared | undefined; clock: Clock; logger: Logger },
): Promise<Storage<AppTables>> {
  const storage = await buildStorage(settings, logger);
  await requireSameKeys(storage.database.withTables(), settings);
  await openEpoch(shared, settings, { storage, clock, logger });
  return storage;
}
