import type { RateCounters } from "../../access/count-request.ts";
import type { MeterEvents } from "../../billing/customers/meter-events.ts";
import type { Payments } from "../../billing/payments/open-payments.ts";
import type { KeyProber } from "../../byok/key-prober.ts";
import type { Documents } from "../../documents/open-documents.ts";
import type { Files } from "../../files/open-files.ts";
import type { InferenceDependencies } from "../../inference/pipeline/execution.ts";
import type { Insights } from "../../insights/open-insights.ts";
import type { OperatorEntries } from "../../operator/operator-entries.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { Replica } from "../../platform/storage/postgres/replica.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import type { LiveCatalog } from "../live-catalog.ts";
import type { Account } from "../open-account.ts";
import type { Shared, SharedWork } from "../open-shared.ts";
import type { BuiltBatches } from "./build-batches.ts";
import type { Gateway } from "./build-gateway.ts";
import type { HubParts } from "./build-hub.ts";
import type { StoredResponses } from "./build-inference.ts";
import type { JoinedOperations } from "./build-operations.ts";
import type { AppTables } from "./build-storage.ts";

/** The parts that all others are built on. */
export interface BaseParts {
  clock: Clock;
  shared: Shared | undefined;
  work: SharedWork;
  storage: Storage<AppTables>;
  /** Undefined where every read goes to the database itself. */
  replica: Replica | undefined;
  catalog: LiveCatalog;
}

/** The parts that serve inference and accounts. */
export interface Core extends BaseParts {
  account: Account;
  counters: RateCounters;
  insights: Insights;
  inference: InferenceDependencies;
  keyProber: KeyProber;
  entries: OperatorEntries;
}

/** Every part that is opened and has to be closed. */
export interface Parts {
  core: Core;
  joined: JoinedOperations;
  stored: StoredResponses;
  hub: HubParts;
  gateway: Gateway;
  documents: Documents;
  files: Files;
  built: BuiltBatches;
  payments: Payments | undefined;
  meterEvents: MeterEvents;
}
