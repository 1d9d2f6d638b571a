import { Guard } from "../access/guard.ts";
import { RateTiers } from "../access/rate-tiers.ts";
import type { RateCounters } from "../access/count-request.ts";
import { type Documents, openDocuments } from "../documents/open-documents.ts";
import type { Dependencies } from "../endpoints/dependencies.ts";
import { withAzurePaths } from "../endpoints/doors/azure-deployments.ts";
import { endpoints } from "../endpoints/index.ts";
import { missingBelowPages } from "../endpoints/ops/documentation.ts";
import { screenAtRoot } from "../endpoints/pages/dashboard.ts";
import { errorPage } from "../endpoints/pages/error-page.ts";
import { clientAddressReader, encryptionReader } from "../http/request-context.ts";
import { compileRoutes } from "../http/router.ts";
import { probeKeyThrough, smokePort } from "../inference/pipeline/unbilled-requests.ts";
import { type Clock, systemClock } from "../platform/kernel/clock.ts";
import type { AppSettings } from "./settings-of.ts";
import type { App, AppTools } from "./app.ts";
import { buildAccount, buildMeterEvents, buildPayments } from "./parts/build-account.ts";
import { buildDependencies } from "./parts/build-dependencies.ts";
import { buildHub } from "./parts/build-hub.ts";
import { buildGateway } from "./parts/build-gateway.ts";
import {
  buildInference,
  buildStoredResponses,
  endInference,
  ownKeyLookup,
} from "./parts/build-inference.ts";
import { buildBatches } from "./parts/build-batches.ts";
import { buildFiles } from "./parts/build-files.ts";
import { buildInsights } from "./parts/build-insights.ts";
import { layerEntries, openOperations } from "./parts/build-operations.ts";
import { openDatabase, openReplica } from "./parts/build-storage.ts";
import type { BaseParts, Core, Parts } from "./parts/built-parts.ts";
import { LiveCatalog } from "./live-catalog.ts";
import { observeErrors, observeRequests, watchFigures } from "./observe.ts";
import type { Account } from "./open-account.ts";
import {
  closeShared,
  openCounters,
  openShared,
  shareWork,
  sharedProbe,
  stopSharing,
  whileLeading,
} from "./open-shared.ts";
import { startKeyProber, startRounds } from "./start-rounds.ts";
import { withTables } from "../platform/storage/with-tables.ts";

/** Builds every part once and passes it on. */
export async function createApp(settings: AppSettings, tools: AppTools): Promise<App> {
  const parts = await openParts(settings, tools);
  const { core, stored, documents, files } = parts;
  const { account, clock, counters, insights } = core;
  const dependencies = buildDependencies(settings, { parts, tools });
  const { consent, priceHistory } = dependencies;
  watchFigures(tools.metrics, {
    account,
    clock,
    ledger: account.ledger,
    commits: core.storage.commits,
    uncollected: core.inference.uncollected,
    archive: insights.archive,
    replica: core.replica,
  });
  const stopRounds = startRounds(account, {
    settings,
    work: core.work,
    insights,
    documents,
    payments: parts.payments,
    background: stored.background,
    consent,
    priceHistory,
    clock,
    logger: tools.logger,
  });
  files.sweep.start();
  await Promise.all([stored.start(), documents.start()]);
  const compiled = compileApp(settings, { account, dependencies, counters, clock, tools });
  parts.built.connect(compiled.runInBackground);
  await parts.built.batches.runner.start();
  return appOf(parts, {
    routes: compiled.routes,
    fallback: compiled.fallback,
    consent,
    async close() {
      await stopRounds();
      await closeParts(parts, dependencies.mcp);
      await tools.tracing.shutdown();
    },
  });
}

async function openBaseParts(
  settings: AppSettings,
  { clock = systemClock, logger }: AppTools,
): Promise<BaseParts> {
  const shared = await openShared(settings, { clock, logger });
  // The catalog is built while the database's threads start.
  const [storage, catalog] = await Promise.all([
    openDatabase(settings, { shared, clock, logger }),
    buildCatalog(settings, clock),
  ]);
  const replica = await openReplica(settings, { storage, clock, logger });
  return { clock, shared, work: shareWork(shared, settings), storage, replica, catalog };
}

const buildCatalog = async (settings: AppSettings, clock: Clock): Promise<LiveCatalog> =>
  new LiveCatalog(
    { environment: settings.environment, sandbox: settings.sandbox, clock },
    settings,
  );

async function openCore(settings: AppSettings, tools: AppTools): Promise<Core> {
  const base = await openBaseParts(settings, tools);
  const { clock, shared, work, storage, replica, catalog } = base;
  const { logger, passwordCost } = tools;
  const account = await buildAccount(settings, { storage, clock, shared, logger, passwordCost });
  const entries = await layerEntries(settings, { account, storage, catalog, clock, logger });
  const counters = await openCounters(shared, {
    tiers: new RateTiers(settings.plans),
    directory: account.directory,
    database: withTables(storage.database),
    clock,
    logger,
  });
  const insights = await buildInsights(settings, {
    providerKeyVault: account.providerKeyVault,
    storage,
    database: withTables(storage.database),
    reads: replica && withTables(replica.database),
    clock,
    logger,
    catalog: catalog.snapshot,
    sharedUp: sharedProbe(shared, settings),
    isLeader: work.isLeader,
    smoke: whileLeading(tools.smoke ?? smokePort(() => inference), work),
  });
  const inference = buildInference(settings, {
    tools,
    account,
    clock,
    catalog: catalog.snapshot,
    commits: storage.commits,
    database: withTables(storage.database),
    insights,
    shared,
  });
  const keyProber = startKeyProber(account, tools.probeKey ?? probeKeyThrough(inference), {
    isLeader: work.isLeader,
    clock,
    logger,
  });
  return { ...base, account, counters, insights, inference, keyProber, entries };
}

async function openParts(settings: AppSettings, tools: AppTools): Promise<Parts> {
  const core = await openCore(settings, tools);
  const { clock, shared, work, storage, account, insights, inference } = core;
  const { logger, metrics } = tools;
  const { isLeader } = work;
  const joined = await openOperations(settings, {
    storage,
    shared,
    catalog: core.catalog,
    entries: core.entries,
    clock,
    logger,
    metrics,
  });
  const gateway = buildGateway(settings, {
    account,
    storage,
    inference,
    clock,
    logger,
    metrics,
    shared,
  });
  const documents = buildDocumentJobs(core, tools);
  const stored = buildStoredResponses(settings, {
    work,
    documents,
    gateway,
    storage,
    inference,
    directory: account.directory,
    insights,
    logger,
    runInBackground: tools.runBackground,
  });
  const { responses } = stored;
  const hub = buildHub(settings, { storage, account, responses, clock, logger, isLeader });
  const files = await buildFiles(settings, {
    account,
    storage,
    inference,
    insights,
    clock,
    logger,
    isLeader,
  });
  const built = buildBatches(settings, {
    account,
    storage,
    shared,
    files,
    upstream: inference.upstream,
    catalog: inference.catalog,
    clock,
    logger,
  });
  const payments = await buildPayments(settings, { storage, account, insights, clock, logger });
  const meterEvents = buildMeterEvents(settings, {
    storage,
    account,
    payments,
    insights,
    clock,
    logger,
    isLeader,
  });
  return { core, joined, stored, hub, gateway, documents, files, built, payments, meterEvents };
}

/** Builds the converter of files and the jobs of documents. */
const buildDocumentJobs = (
  { storage, account, insights, inference, work, clock }: Core,
  { logger, metrics, converterPool }: AppTools,
): Documents =>
  openDocuments({
    database: withTables(storage.database),
    upstream: inference.upstream,
    catalog: inference.catalog,
    ownKeyOf: ownKeyLookup(account.providerKeys),
    clock,
    logger,
    metrics,
    leases: work.leases,
    isLeader: work.isLeader,
    converterPool,
    onRetention: (ok) =>
      insights.jobs.ran("document_retention", ok, ok ? undefined : "The last run failed."),
  });

/** Returns what the process does with the app, beside serving its routes. */
const appOf = (
  { core, joined, stored, hub, gateway, documents, built, payments, meterEvents }: Parts,
  served: Pick<App, "routes" | "fallback" | "consent" | "close">,
): App => ({
  routes: served.routes,
  fallback: served.fallback,
  consent: served.consent,
  close: served.close,
  storage: core.storage,
  mintFirstKey: core.account.mintFirstKey,
  issueClaim: () => core.account.people.claim.issue(),
  mintCommandKey: () => core.account.mintCommandKey(),
  ledger: core.account.ledger,
  closedMonths: core.account.closedMonths,
  budgets: core.account.budgets,
  people: core.account.people,
  referrals: core.account.referrals,
  insights: core.insights,
  payments,
  meterEvents,
  background: stored.background,
  prober: core.keyProber,
  purgeConversations: hub.purgeConversations,
  catalog: core.catalog.snapshot,
  sandbox: core.catalog.sandbox,
  nodes: joined.nodes,
  refreshCatalog: (sources) => core.catalog.refresh(sources),
  startDraining: () => {
    joined.state.draining = true;
    stored.background.drain();
    documents.drain();
    built.batches.runner.drain();
    gateway.agentStreams.end();
  },
  breakOffUpstreams() {
    // Stopped first, so that background responses see a shutdown and not a failed provider.
    // Resolves within its own time limit.
    void stored.background.stop();
    core.inference.upstream.breakOff();
  },
});

/** Writes what is pending, and releases the parts that all others are built on last. */
async function closeParts(parts: Parts, mcp: Dependencies["mcp"]): Promise<void> {
  const { core, stored } = parts;
  const { account, shared } = core;
  await Promise.all([
    stored.stop(),
    account.useWriter.stop(),
    account.monthlyCredits.stop(),
    core.insights.stop(),
    parts.files.sweep.stop(),
    parts.built.batches.runner.stop(),
  ]);
  await Promise.all([account.referrals?.stop(), core.keyProber.stop()]);
  await Promise.all([parts.documents.stop(), mcp.close(), parts.hub.stopHub()]);
  await parts.gateway.stopGateway();
  await endInference(core.inference);
  await core.catalog.stop();
  await parts.joined.nodes.stop();
  await account.runs.stop();
  await parts.meterEvents.stop();
  await account.customers.stop();
  await stopSharing(shared, account);
  await core.replica?.close();
  await core.storage.close();
  closeShared(shared);
}

/** Compiles the endpoint table's routes, with the guard, counting and observation. */
function compileApp(
  settings: AppSettings,
  {
    account,
    dependencies,
    counters,
    clock,
    tools,
  }: {
    account: Pick<
      Account,
      "directory" | "security" | "people" | "operatorWorkspaceId" | "idempotentAnswers"
    >;
    dependencies: Dependencies;
    counters: RateCounters;
    clock: Clock;
    tools: Pick<AppTools, "logger" | "metrics" | "accessLog">;
  },
): ReturnType<typeof compileRoutes> {
  const { logger, metrics, accessLog } = tools;
  const observe = observeErrors({ logger, metrics, clock });
  const { refused } = dependencies.insights;
  const addressOf = clientAddressReader(settings.trustProxy);
  const encrypted = encryptionReader(settings.trustProxy);
  const guard = new Guard({
    directory: account.directory,
    runs: dependencies.runs.door,
    counters,
    clock,
    security: account.security,
    sessions: { reader: account.people.reader, publicUrl: settings.publicUrl },
    operatorWorkspaceId: account.operatorWorkspaceId,
    idempotentAnswers: account.idempotentAnswers,
    doors: settings.doors,
    isProxyTrusted: settings.trustProxy !== false,
    onAnswerError: (error) =>
      logger.error({ err: error }, "answer of a request with an idempotency key not stored"),
    onAuditError: (error) =>
      logger.error({ err: error }, "outcome of a change not written to the audit log"),
  });
  return compileRoutes({
    endpoints: withAzurePaths(endpoints),
    dependencies,
    clock,
    guard,
    sockets: settings.sockets?.enabled ?? true,
    publicUrl: settings.publicUrl,
    errorPage,
    pageElsewhere: (context) =>
      screenAtRoot(context, dependencies) ?? missingBelowPages(context, dependencies),
    clientAddress: (request) => addressOf(request, request.peerAddress),
    isEncrypted: (request) => encrypted(request, request.peerAddress),
    onError(error, context) {
      observe(error, context);
      const { caller } = context;
      if (caller.kind === "llm-key")
        refused.note({ workspaceId: caller.workspace.id, keyId: caller.key.id, code: error.code });
    },
    ...observeRequests({ metrics, accessLog }),
  });
}
