import { afterAll, beforeAll } from "bun:test";
import type { LedgerTables } from "../../src/billing/ledger/ledger-store.ts";
import { SharedState } from "../../src/platform/shared-state/shared-state.ts";
import type { Storage } from "../../src/platform/storage/storage.ts";
import { openLedgerDatabase } from "./ledger-process.ts";
import { freshRedis } from "./redis.ts";
import { silentLogger } from "./silent-logger.ts";

/** What the processes of a shared ledger share while the surrounding tests run. */
export interface SharedLedgerStage {
  readonly storage: Storage<LedgerTables>;
  readonly shared: SharedState;
}

/**
 * Provides an empty Postgres and an empty shared server to the tests of the `describe` that calls
 * it.
 */
export function sharedLedgerStage(): SharedLedgerStage {
  let storage: Storage<LedgerTables>;
  let shared: SharedState;
  beforeAll(async () => {
    storage = await openLedgerDatabase();
    shared = await SharedState.open({ url: await freshRedis(), logger: silentLogger });
  });
  afterAll(async () => {
    shared.close();
    await storage.close();
  });
  return {
    get storage() {
      return storage;
    },
    get shared() {
      return shared;
    },
  };
}
