import { openAccount, type Account } from "../open-account.ts";
import type { AppSettings } from "../app-settings.ts";
import type { AppTables } from "./build-storage.ts";
import { SpendStore } from "../../insights/service-usage-store.ts";
import {
  hasSeveralGateways,
  shareChanges,
  shareKeyUsage,
  shareWork,
  type Shared,
} from "../open-shared.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";

/** Logs the failures of the account plane's background work. */
const accountLog = (logger: Logger) => ({
  onLedgerError: (error: unknown) =>
    logger.error({ err: error }, "shared ledger not updated yet, trying again"),
  onUseError: (error: unknown) =>
    logger.error({ err: error }, "last uses of keys not written yet, trying again"),
  onCreditError: (error: unknown) =>
    logger.error({ err: error }, "monthly credits not settled yet, trying again"),
  onProviderKeyError: (error: unknown) =>
    logger.error({ err: error }, "state of a donated provider key not stored"),
  onSignInLog: (level: "info" | "warn" | "error", message: string) =>
    logger[level]({ part: "sign-in" }, message),
});

/** Builds the account plane; what was spent it reads from the insights. */
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
