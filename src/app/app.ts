import type { AccessLog } from "./access-log.ts";
import type { LedgerPort } from "../billing/ledger/ledger-port.ts";
import type { MeterEvents } from "../billing/customers/meter-events.ts";
import type { Payments } from "../billing/payments/open-payments.ts";
import type { KeyProber, ProbeKey } from "../byok/key-prober.ts";
import type { Consent } from "../consent/open-consent.ts";
import type { ConverterPoolOptions } from "../documents/converter/converter-pool.ts";
import type { compileRoutes } from "../http/router.ts";
import type { CatalogChange } from "../inference/catalog/build-catalog.ts";
import type { CatalogSnapshot } from "../inference/catalog/model.ts";
import type { HashCost } from "../identity/people/sign-in/password-hasher.ts";
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
import type { CommandKey } from "./process/command-socket.ts";
import type { Nodes } from "./reload.ts";

/** The gateway, ready to listen. */
export interface App {
  routes: ReturnType<typeof compileRoutes>["routes"];
  fallback: ReturnType<typeof compileRoutes>["fallback"];
  /** Returns the current catalog. */
  catalog(): CatalogSnapshot;
  /**
   * Replaces the whole catalog and returns what changed. Throws `ConfigurationError`, and then the
   * catalog stays as it was.
   */
  refreshCatalog(sources: CatalogSources): CatalogChange;
  /** The gateways on the database, and how all of them reload their configuration. */
  nodes: Nodes;
  /**
   * Creates the key that a first start shows, and returns its secret; undefined on every other
   * start.
   */
  mintFirstKey(): Promise<string | undefined>;
  /**
   * Creates a management key for one run of the command `switchyard` on this machine, which revokes
   * it; it expires by itself where the command is killed.
   */
  mintCommandKey(): Promise<CommandKey>;
  /**
   * Creates the token of the link that claims the owner account, which replaces the previous one;
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
  /** Undefined where no Stripe key is configured. */
  payments: Payments | undefined;
  /** Reports what customers are billed. */
  meterEvents: Pick<MeterEvents, "run">;
  background: BackgroundRunner;
  /** Probes donated provider keys that were refused. */
  prober: KeyProber;
  /** Deletes conversations that are past their retention. */
  purgeConversations(): Promise<void>;
  /**
   * Reports to load balancers that this gateway takes no new requests; those that arrive are still
   * served.
   */
  startDraining(): void;
  /**
   * Stops waiting for providers. What they have sent so far is settled, and background responses
   * return to their queue.
   */
  breakOffUpstreams(): void;
  /** Writes what is pending and releases every resource. */
  close(): Promise<void>;
}

/** Tools that outlive the app's own parts and are passed in. */
export interface AppTools {
  logger: Logger;
  metrics: Metrics;
  tracing: Tracing;
  /** Writes lines of the access log; absent where there is none. */
  accessLog?: AccessLog | undefined;
  clock?: Clock;
  random?: () => number;
  /** The cost of a password's hash in place of the recommended one. */
  passwordCost?: HashCost;
  /** Runs background responses in place of inference. */
  runBackground?: RunBackground;
  /** Overrides of the options of the processes that convert files. */
  converterPool?: Partial<ConverterPoolOptions>;
  /** Probes provider keys in place of a request to the provider. */
  probeKey?: ProbeKey;
  /** Builds the server behind `/mcp` in place of the one with this service's tools. */
  buildMcpServer?: BuildMcpServer;
  /** Calls providers for smoke tests in place of inference. */
  smoke?: SmokePort | undefined;
}
