import type { LedgerPort } from "../account/ledger/ledger-port.ts";
import { grantInsert } from "../account/ledger/grants.ts";
import { accountAdd, keyByokAdd, keySpendAdd, transferInsert } from "../account/ledger/transfer.ts";
import { KeyProber, type ProbeKey } from "../account/byok/key-prober.ts";
import { providerKeyAdd } from "../account/byok/provider-key-usage.ts";
import { RateTiers } from "../account/limits/rate-tier.ts";
import { openAccount, type Account, type AccountTables } from "../account/open-account.ts";
import type { Payments } from "../account/payments/open-payments.ts";
import { paymentInserts } from "../account/payments/payment-rows.ts";
import type { PaymentTables } from "../account/payments/payment-tables.ts";
import { auditInsert, auditOutcomeInsert } from "../account/security/audit-log.ts";
import type { AppSettings } from "./app-settings.ts";
import { buildInsights } from "./build-insights.ts";
import { openDocuments } from "../documents/open-documents.ts";
import type { DocumentJobTables } from "../documents/jobs/document-job-store.ts";
import type { Dependencies } from "../endpoints/dependencies.ts";
import { endpoints } from "../endpoints/index.ts";
import { clientAddressReader } from "../http/client-address.ts";
import type { RateCounters } from "../http/count-request.ts";
import { compileRoutes } from "../http/router.ts";
import type { CatalogChange } from "../inference/catalog/catalog-change.ts";
import type { CatalogSnapshot } from "../inference/catalog/model.ts";
import { RouteHistory, type RouteHistoryTables } from "../inference/catalog/route-history.ts";
import { probeKeyThrough } from "../inference/probe-key.ts";
import { smokePort } from "../inference/smoke-ask.ts";
import type { Sandbox } from "../inference/sandbox/sandbox.ts";
import { BackgroundRunner } from "../inference/stored-responses/background-runner.ts";
import { storedResponseInserts, type ResponseTables } from "../inference/stored-responses/response-rows.ts";
import { generationInsert } from "../insights/generation-record.ts";
import { GenerationStore, type GenerationTables } from "../insights/generation-store.ts";
import type { Insights, InsightTables } from "../insights/open-insights.ts";
import { Retention } from "../insights/retention.ts";
import { SpendStore } from "../insights/spend-store.ts";
import { usageAddStatements } from "../insights/usage-rollup.ts";
import { LiveCatalog, type CatalogSources } from "./live-catalog.ts";
import { observeErrors, observeRequests } from "./observe.ts";
import { ocrModelOf } from "./ocr-model-of.ts";
import {
  closeShared, hasSeveralGateways, openCounters, openEmbeddingCache, openShared, shareChanges, shareWork, stopSharing,
  takeUpWhatIsLeft, type Shared, type SharedWork, whileLeading,
} from "./open-shared.ts";
import { systemClock, type Clock } from "../platform/lib/clock.ts";
import { migrations } from "../platform/storage/migrations/index.ts";
import { openStorage } from "../platform/storage/open-storage.ts";
import type { Storage } from "../platform/storage/storage.ts";
import type { Logger } from "../platform/telemetry/logger.ts";
import { buildDocuments, buildOperations } from "./build-operations.ts";
import { buildPayments } from "./build-payments.ts";
import { buildInference, ownKeyLookup } from "./build-inference.ts";
import { buildStoredResponses } from "./build-stored-responses.ts";
import type { CommitStatements } from "../platform/storage/packed-unit.ts";
import type { AppTools } from "./app-tools.ts";

type Schema = AccountTables & GenerationTables & ResponseTables & RouteHistoryTables & InsightTables & DocumentJobTables & PaymentTables;

/** The gateway, ready to be listened for. */
export interface App {
  routes: ReturnType<typeof compileRoutes>["routes"];
  fallback: ReturnType<typeof compileRoutes>["fallback"];
  /** The catalog of the moment. */
  catalog(): CatalogSnapshot;
  /** Replaces the catalog as a whole and tells what changed. Throws `ConfigurationError`, and then it stays as it was. */
  refreshCatalog(sources: CatalogSources): CatalogChange;
  /** Makes the key that a first start shows, and gives its secret; undefined on every other start. */
  mintFirstKey(): Promise<string | undefined>;
  /** Makes the token of the link that claims the owner account, in place of the one before; undefined once it is claimed. */
  issueClaim(): Promise<string | undefined>;
  sandbox: Sandbox | undefined;
  ledger: LedgerPort;
  budgets: Account["budgets"];
  people: Account["people"];
  referrals: Account["referrals"];
  insights: Insights;
  storage: Storage<Schema>;
  /** Undefined where no key for Stripe is configured. */
  payments: Payments | undefined;
  background: BackgroundRunner;
  /** Asks about donated provider keys that were refused. */
  prober: KeyProber;
  /** Tells load balancers to send no more; requests are still served. */
  startDraining(): void;
  /** Stops waiting for providers: what they have sent so far is what is settled; background responses go back to their queue. */
  breakOffUpstreams(): void;
  /** Writes what is pending and lets go of everything. */
  close(): Promise<void>;
}

/** Every statement that commits may carry. */
const commitStatements: CommitStatements = {
  inserts: [transferInsert, grantInsert, auditInsert, auditOutcomeInsert, generationInsert, ...storedResponseInserts, ...paymentInserts],
  adds: [accountAdd, keySpendAdd, keyByokAdd, providerKeyAdd, ...usageAddStatements],
};

const openStorageOf = (settings: AppSettings, logger: Logger): Promise<Storage<Schema>> => openStorage<Schema>({
  url: settings.storageUrl, durability: settings.durability, migrations, logger, commitStatements,
  severalGateways: hasSeveralGateways(settings),
});

/** What the account plane tells of what went wrong beside any request. */
const accountLog = (logger: Logger) => ({
  onLedgerError: (error: unknown) => logger.error({ err: error }, "what gateways share of the ledger could not be kept up yet"),
  onUseError: (error: unknown) => logger.error({ err: error }, "last uses of keys could not be written yet"),
  onCreditError: (error: unknown) => logger.error({ err: error }, "monthly credits could not be given or taken back yet"),
  onProviderKeyError: (error: unknown) =>
    logger.error({ err: error }, "what became of a donated provider key could not be stored"),
  onSignInLog: (level: "info" | "warn" | "error", message: string) => logger[level]({ part: "sign-in" }, message),
});

/** The account plane, which is told by the insights what was spent. */
async function openAccountOn(
  storage: Storage<Schema>, settings: AppSettings, { clock, logger, shared }: { clock: Clock; logger: Logger; shared: Shared | undefined },
): Promise<Account> {
  const { database, commits } = storage;
  const spend = new SpendStore({ database: database.withTables(), commits });
  // What the first start makes is made once, whichever gateway is the first.
  const account = await storage.alone(() => openAccount({
    ...settings, clock, commits, database: database.withTables(), spentBy: (query) => spend.spent(query), ...accountLog(logger),
    shared: hasSeveralGateways(settings) ? shared?.state : undefined, ...shareWork(shared, settings),
  }));
  if (hasSeveralGateways(settings)) shareChanges(shared, account, { database: database.withTables(), clock, logger });
  return account;
}

/** Looks, from now on, at what was spent of budgets. */
function startBudgets({ budgets }: Account, { insights, logger }: { insights: Insights; logger: Logger }): void {
  budgets.watch.start((error) => {
    insights.jobs.ran("budget_alerts", error === undefined, error === undefined ? undefined : "The last run failed.");
    if (error !== undefined) logger.error({ err: error }, "budgets could not be looked at");
  });
}

/** Asks, from now on, about donated provider keys that were refused. */
function startKeyProber(
  account: Account, probe: ProbeKey, { clock, logger, isLeader }: { clock: Clock; logger: Logger; isLeader: SharedWork["isLeader"] },
): KeyProber {
  const prober = new KeyProber({
    directory: account.providerKeyDirectory, keys: account.providerKeys, probe, clock, isLeader,
    onError: (error) => logger.error({ err: error }, "a donated provider key could not be asked about"),
  });
  prober.start();
  return prober;
}

/** Deletes, from now on, generation records older than `keepDays`. */
function startRetention(
  keepDays: number,
  parts: {
    insights: Insights; generations: GenerationStore; clock: Clock; ledger: LedgerPort; logger: Logger; isLeader: SharedWork["isLeader"];
  },
): Retention {
  const retention = new Retention({
    ...parts.insights, generations: parts.generations, clock: parts.clock, keepDays, isLeader: parts.isLeader,
    workspaceIds: () => parts.ledger.book.workspaceIds(),
    onError: (error) => parts.logger.error({ err: error }, "old generation records could not be deleted"),
  });
  retention.start();
  return retention;
}

/** Takes back holds that no request will ever settle, and says so: each is a fault of ours. */
function expireHolds(ledger: LedgerPort, { insights, logger }: { insights: Insights; logger: Logger }): void {
  for (const id of ledger.expire()) logger.error({ hold: id }, "a hold was never settled; its request lost track of it");
  insights.jobs.ran("hold_expiry", true);
}

/** What is done every so often, and with what. */
type RoundParts = Pick<Dependencies, "payments" | "generations" | "documents" | "background"> & SharedWork & {
  insights: Insights; clock: Clock; keepDays: number; logger: Logger;
};

/** Does, from now on, what is done every so often; gives what ends it. */
function startRounds(account: Account, { insights, payments, generations, logger, ...parts }: RoundParts): () => Promise<void> {
  insights.start();
  payments?.rounds.start();
  const retention = startRetention(parts.keepDays, { ...parts, insights, generations, ledger: account.ledger, logger });
  const takeUp = [() => parts.background.start(), () => parts.documents.takeUp()];
  const stopTakingUp = takeUpWhatIsLeft(parts, { takeUp, logger });
  startBudgets(account, { insights, logger });
  const expiry = setInterval(() => expireHolds(account.ledger, { insights, logger }), 60_000);
  return async () => {
    clearInterval(expiry);
    stopTakingUp();
    await payments?.rounds.stop();
    await Promise.all([account.budgets.watch.stop(), retention.stop()]);
  };
}

/** Ends what keeps connections to providers and clients alive. */
function endInference({ openedRoutes, keepAlive, upstream }: Dependencies["inference"]): void {
  openedRoutes.stop();
  keepAlive.stop();
  upstream.close();
}

/** Shows figures that are read when somebody asks for metrics. */
function watchFigures(
  metrics: AppTools["metrics"], { ledger, storage }: { ledger: LedgerPort; storage: Pick<Storage<Schema>, "commits"> },
): void {
  metrics.watchHoldsOpen(() => ledger.openHoldCount);
  metrics.watchCommitQueuePending(() => storage.commits.pendingCount);
}

/** The routes of the endpoint table, guarded, counted and watched. */
function compileApp(
  settings: AppSettings,
  { tools, people, ...parts }: Pick<Account, "directory" | "security" | "people" | "operatorWorkspaceId"> & {
    dependencies: Dependencies; counters: RateCounters; clock: Clock; tools: AppTools;
  },
): ReturnType<typeof compileRoutes> {
  const addressOf = clientAddressReader(settings.trustProxy);
  return compileRoutes({
    ...parts, endpoints,
    sessions: { reader: people.reader, publicUrl: settings.publicUrl },
    clientAddress: (request, server) => addressOf(request, server.requestIP(request)?.address ?? ""),
    onError: observeErrors(tools),
    onAuditError: (error) => tools.logger.error({ err: error }, "the outcome of a change could not be written to the audit log"),
    ...observeRequests(tools.metrics),
  });
}

/** Builds every part once and hands it down. */
export async function createApp(settings: AppSettings, tools: AppTools): Promise<App> {
  const clock = tools.clock ?? systemClock;
  const shared = await openShared(settings, { clock, logger: tools.logger });
  const work = shareWork(shared, settings);
  const storage = await openStorageOf(settings, tools.logger);
  const account = await openAccountOn(storage, settings, { clock, shared, logger: tools.logger });
  const counters = await openCounters(shared, {
    ...tools, ...account, tiers: new RateTiers(settings.plans), clock, database: storage.database.withTables(),
  });
  const catalog = new LiveCatalog({ ...settings, clock }, settings);
  const insights = await buildInsights(settings, {
    ...tools, storage, database: storage.database.withTables(), clock, catalog: catalog.snapshot,
    smoke: whileLeading(tools.smoke ?? smokePort(() => inference), work),
  });
  const inference = buildInference(settings, {
    ...tools, clock, catalog: catalog.snapshot, commits: storage.commits, ...account, insights,
  });
  const keyProber = startKeyProber(account, tools.probeKey ?? probeKeyThrough(inference), { ...work, clock, logger: tools.logger });
  const state = { draining: false };
  const operations = buildOperations(settings, { storage, state, metrics: tools.metrics });
  const stored = buildStoredResponses(settings, { ...tools, ...work, storage, inference, directory: account.directory, insights });
  const documents = openDocuments({
    ...tools, ...inference, ...work, database: storage.database.withTables(), ownKeyOf: ownKeyLookup(account.providerKeys),
    onRetention: (ok) => insights.jobs.ran("document_retention", ok, ok ? undefined : "The last run failed."),
  });
  const payments = await buildPayments(settings, { ...tools, storage, account, insights, clock });
  const dependencies: Dependencies = {
    ...account, documents, payments, inference, operations, insights, clock, counters, keyProber,
    responses: stored.responses, background: stored.background, publicUrl: settings.publicUrl,
    generations: new GenerationStore({ database: storage.database.withTables(), commits: storage.commits }),
    routeHistory: new RouteHistory({ database: storage.database.withTables(), clock }),
    embeddingCache: openEmbeddingCache(shared, clock),
    ocrModel: ocrModelOf(settings.ocrModel, catalog.snapshot()),
    ...buildDocuments(settings, catalog.snapshot),
  };
  watchFigures(tools.metrics, { ledger: account.ledger, storage });
  const stopRounds = startRounds(account, { ...dependencies, ...work, keepDays: settings.generationDays, logger: tools.logger });
  await Promise.all([stored.start(), documents.start()]);
  const compiled = compileApp(settings, { ...account, dependencies, counters, clock, tools });
  return {
    ...compiled, storage, mintFirstKey: account.mintFirstKey, issueClaim: () => account.people.claim.issue(),
    ledger: account.ledger, budgets: account.budgets, people: account.people, referrals: account.referrals, insights, payments,
    background: stored.background, prober: keyProber,
    catalog: catalog.snapshot, sandbox: catalog.sandbox, refreshCatalog: (sources) => catalog.refresh(sources),
    startDraining: () => {
      state.draining = true;
      stored.background.drain();
      documents.drain();
    },
    breakOffUpstreams() {
      // First, so that they hear of a shutdown and not of a provider that failed. Resolves within its own patience.
      void stored.background.stop();
      inference.upstream.breakOff();
    },
    async close() {
      await stopRounds();
      await Promise.all([stored.stop(), account.useWriter.stop(), account.monthlyCredits.stop(), insights.stop()]);
      await account.referrals?.stop();
      await keyProber.stop();
      await documents.stop();
      endInference(inference);
      await catalog.stop();
      await stopSharing(shared, account);
      await storage.close();
      closeShared(shared);
      await tools.tracing.shutdown();
    },
  };
}
