import { openAccount, type Account } from "../account/open-account.ts";
import type { AppSettings } from "./app-settings.ts";
import type { AppTables } from "./build-storage.ts";
import { SpendStore } from "../insights/spend-store.ts";
import {
  hasSeveralGateways,
  shareChanges,
  shareKeyUsage,
  shareWork,
  type Shared,
} from "./open-shared.ts";
import type { Clock } from "../platform/lib/clock.ts";
import type { Storage } from "../platform/storage/storage.ts";
import type { Logger } from "../platform/telemetry/logger.ts";

/** What the account plane tells of what went wrong beside any request. */
const accountLog = (logger: Logger) => ({
  onLedgerError: (error: unknown) =>
    logger.error({ err: error }, "what gateways share of the ledger could not be kept up yet"),
  onUseError: (error: unknown) =>
    logger.error({ err: error }, "last uses of keys could not be written yet"),
  onCreditError: (error: unknown) =>
    logger.error({ err: error }, "monthly credits could not be given or taken back yet"),
  onProviderKeyError: (error: unknown) =>
    logger.error({ err: error }, "what became of a donated provider key could not be stored"),
  onSignInLog: (level: "info" | "warn" | "error", message: string) =>
    logger[level]({ part: "sign-in" }, message),
});

/** The account plane, which is told by the insights what was spent. */
export async function buildAccount(
  settings: AppSettings,
  {
    storage,
    clock,
    logger,
    shared,
  }: { storage: Storage<AppTables>; clock: Clock; logger: Logger; shared: Shared | undefined },
): Promise<Account> {
  const { database, commits } = storage;
  const spend = new SpendStore({ database: database.withTables(), commits });
  // What the first start makes is made once, whichever gateway is the first.
  const account = await storage.alone(() =>
    openAccount({
      ...settings,
      clock,
      commits,
      database: database.withTables(),
      spentBy: (query, reading) => spend.spent(query, reading),
      ...accountLog(logger),
      shared: hasSeveralGateways(settings) ? shared : undefined,
      ...shareWork(shared, settings),
    }),
  );
  if (hasSeveralGateways(settings)) {
    shareChanges(shared, account, { database: database.withTables(), clock, logger });
    shareKeyUsage(shared, account, { database: database.withTables(), commits, clock, logger });
  }
  return account;
}
