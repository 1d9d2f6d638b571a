import type { LedgerPort } from "../billing/ledger/ledger-port.ts";
import type { Payments } from "../billing/payments/open-payments.ts";
import type { KeyProber, ProbeKey } from "../byok/key-prober.ts";
import type { Consent } from "../consent/open-consent.ts";
import type { ConverterPoolOptions } from "../documents/converter/converter-pool.ts";
import type { compileRoutes } from "../http/router.ts";
import type { CatalogChange } from "../inference/catalog/build-catalog.ts";
import type { CatalogSnapshot } from "../inference/catalog/model.ts";
import type { RunBackground } from "../inference/responses/job-store.ts";
import type { BackgroundRunner } from "../inference/responses/background-runner.ts";
import type { Sandbox } from "../inference/sandbox/sandbox.ts";
import type { SmokePort } from "../insights/health/smoke-tests.ts";
import type { Insights } from "../insights/open-insights.ts";
import type { BuildMcpServer } from "../mcp/mcp-service.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import type { Storage } from "../platform/storage/storage.ts";
import type { Logger } from "../platform/telemetry/logger.ts";
import type { Metrics } from "../platform/telemetry/metrics.ts";
import type { Tracing } from "../platform/telemetry/tracing.ts";
import type { AppTables } from "./parts/build-storage.ts";
import type { CatalogSources } from "./live-catalog.ts";
import type { Account } from "./open-account.ts";
import type { Nodes } from "./reload.ts";

/** The gateway, ready to be listened for. */
export interface App {
  routes: ReturnType<typeof compileRoutes>["routes"];
  fallback: ReturnType<typeof compileRoutes>["fallback"];
  /** The catalog of the moment. */
  catalog(): CatalogSnapshot;
  /**
   * Replaces the catalog as a whole and tells what changed. Throws `ConfigurationError`, and then
   * it stays as it was.
   */
  refreshCatalog(sources: CatalogSources): CatalogChange;
  /** The gateways on the database, and how all of them read their configuration again. */
  nodes: Nodes;
  /**
   * Makes the key that a first start shows, and gives its secret; undefined on every other start.
   */
  mintFirstKey(): Promise<string | undefined>;
  /**
   * Makes the token of the link that claims the owner account, in place of the one before;
   * undefined once it is claimed.
   */
  issueClaim(): Promise<string | undefined>;
  sandbox: Sandbox | undefined;
  ledger: LedgerPort;
  closedMonths: Account["closedMonths"];
  budgets: Account["budgets"];
  people: Account["people"];
  referrals: Account["referrals"];
  insights: Insights;
  consent: Consent;
  storage: Storage<AppTables>;
  /** Undefined where no key for Stripe is configured. */
  payments: Payments | undefined;
  background: BackgroundRunner;
  /** Asks about donated provider keys that were refused. */
  prober: KeyProber;
  /** Deletes conversations that are older than they are kept. */
  purgeConversations(): Promise<void>;
  /** Tells load balancers to send no more; requests are still served. */
  startDraining(): void;
  /**
   * Stops waiting for providers: what they have sent so far is what is settled; background
   * responses go back to their queue.
   */
  breakOffUpstreams(): void;
  /** Writes what is pending and lets go of everything. */
  close(): Promise<void>;
}

/** Tools that outlive the app's own parts and are given to it. */
export interface AppTools {
  logger: Logger;
  metrics: Metrics;
  tracing: Tracing;
  clock?: Clock;
  random?: () => number;
  /** Does the work of background responses in place of the inference. */
  runBackground?: RunBackground;
  /** Changes to the children that convert files. */
  converterPool?: Partial<ConverterPoolOptions>;
  /** Asks providers about keys in place of a request to them. */
  probeKey?: ProbeKey;
  /** Makes the server behind `/mcp` in place of the one with this service's tools. */
  buildMcpServer?: BuildMcpServer;
  /** Asks providers for smoke tests in place of the inference. */
  smoke?: SmokePort | undefined;
}
