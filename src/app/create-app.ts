import type { RateCounters } from "../access/count-request.ts";
import { Guard } from "../access/guard.ts";
import { RateTiers } from "../access/rate-limiter.ts";
import type { MeterEvents } from "../billing/customers/meter-events.ts";
import type { Payments } from "../billing/payments/open-payments.ts";
import type { KeyProber } from "../byok/key-prober.ts";
import { type Consent, type ConsentParts, openConsent } from "../consent/open-consent.ts";
import { type Documents, openDocuments } from "../documents/open-documents.ts";
import type { Files } from "../files/open-files.ts";
import type { Dependencies } from "../endpoints/dependencies.ts";
import { withDoor } from "../endpoints/runs/run-door.ts";
import { withAzurePaths } from "../endpoints/doors/azure-deployments.ts";
import { endpoints } from "../endpoints/index.ts";
import { missingBelowPages } from "../endpoints/ops/documentation.ts";
import { screenAtRoot } from "../endpoints/pages/dashboard.ts";
import { errorPage } from "../endpoints/pages/error-page.ts";
import { clientAddressReader, encryptionReader } from "../http/request-context.ts";
import { compileRoutes } from "../http/router.ts";
import type { CatalogModel, CatalogSnapshot } from "../inference/catalog/model.ts";
import { PriceHistory, RouteHistory } from "../inference/catalog/catalog-history.ts";
import type { InferenceDependencies } from "../inference/pipeline/execution.ts";
import {
  probeKeyThrough,
  providerTrial,
  smokePort,
} from "../inference/pipeline/unbilled-requests.ts";
import { findModel } from "../inference/routing/resolve-models.ts";
import type { Insights } from "../insights/open-insights.ts";
import type { OperatorEntries } from "../operator/operator-entries.ts";
import { ConfigurationError } from "../platform/config/configuration-error.ts";
import { type Clock, systemClock } from "../platform/kernel/clock.ts";
import type { Replica } from "../platform/storage/postgres/replica.ts";
import type { Storage } from "../platform/storage/storage.ts";
import type { AppSettings } from "./settings-of.ts";
import type { App, AppTools } from "./app.ts";
import { buildAccount, buildMeterEvents, buildPayments } from "./parts/build-account.ts";
import { buildSpools } from "./parts/build-spools.ts";
import { buildHub, type HubParts } from "./parts/build-hub.ts";
import { buildGateway, type Gateway } from "./parts/build-gateway.ts";
import {
  buildInference,
  endInference,
  ownKeyLookup,
  buildStoredResponses,
  type StoredResponses,
} from "./parts/build-inference.ts";
import { buildBatches, type BuiltBatches } from "./parts/build-batches.ts";
import { buildFiles } from "./parts/build-files.ts";
import { buildInsights } from "./parts/build-insights.ts";
import {
  buildDocuments,
  buildMcp,
  type JoinedOperations,
  layerEntries,
  openOperations,
} from "./parts/build-operations.ts";
import { type AppTables, openDatabase, openReplica } from "./parts/build-storage.ts";
import { openDashboard } from "./dashboard-files.ts";
import { LiveCatalog } from "./live-catalog.ts";
import { observeErrors, observeRequests, watchFigures } from "./observe.ts";
import type { Account } from "./open-account.ts";
import {
  closeShared,
  hasSeveralGateways,
  openCounters,
  openEmbeddingCache,
  openShared,
  type Shared,
  type SharedWork,
  shareWork,
  sharedProbe,
  stopSharing,
  whileLeading,
} from "./open-shared.ts";
import { startKeyProber, startRounds } from "./start-rounds.ts";

const buildCatalog = async (settings: AppSettings, clock: Clock): Promise<LiveCatalog> =>
  new LiveCatalog({ ...settings, clock }, settings);

/** The parts that all others are built on. */
interface BaseParts {
  clock: Clock;
  shared: Shared | undefined;
  work: SharedWork;
  storage: Storage<AppTables>;
  /** Undefined where every read goes to the database itself. */
  replica: Replica | undefined;
  catalog: LiveCatalog;
}

/** The parts that serve inference and accounts. */
interface Core extends BaseParts {
  account: Account;
  counters: RateCounters;
  insights: Insights;
  inference: InferenceDependencies;
  keyProber: KeyProber;
  entries: OperatorEntries;
}

/** Every part that is opened and has to be closed. */
interface Parts extends Core, JoinedOperations {
  stored: StoredResponses;
  hubParts: HubParts;
  gateway: Gateway;
  documents: Documents;
  files: Files;
  built: BuiltBatches;
  payments: Payments | undefined;
  meterEvents: MeterEvents;
}

/** Builds every part once and passes it on. */
export async function createApp(settings: AppSettings, tools: AppTools): Promise<App> {
  const parts = await openParts(settings, tools);
  const { account, clock, counters, insights, inference, stored, documents, files } = parts;
  const dependencies = dependenciesOf(settings, { ...parts, tools });
  watchFigures(tools.metrics, {
    ...account,
    ...parts,
    ...parts.storage,
    ...insights,
    ...inference,
  });
  const stopRounds = startRounds(account, {
    ...dependencies,
    ...parts.work,
    settings,
    logger: tools.logger,
  });
  files.sweep.start();
  await Promise.all([stored.start(), documents.start()]);
  const { runInBackground, ...compiled } = compileApp(settings, {
    ...account,
    dependencies,
    counters,
    clock,
    tools,
  });
  parts.built.connect(runInBackground);
  await parts.built.batches.runner.start();
  return {
    ...compiled,
    ...processParts(parts),
    consent: dependencies.consent,
    async close() {
      await stopRounds();
      await closeParts({ ...parts, mcp: dependencies.mcp });
      await tools.tracing.shutdown();
    },
  };
}

async function openBaseParts(settings: AppSettings, tools: AppTools): Promise<BaseParts> {
  const clock = tools.clock ?? systemClock;
  const shared = await openShared(settings, { clock, logger: tools.logger });
  // The catalog is built while the database's threads start.
  const [storage, catalog] = await Promise.all([
    openDatabase(settings, { ...tools, shared, clock }),
    buildCatalog(settings, clock),
  ]);
  const replica = await openReplica(settings, { storage, clock, logger: tools.logger });
  return { clock, shared, work: shareWork(shared, settings), storage, replica, catalog };
}

async function openCore(settings: AppSettings, tools: AppTools): Promise<Core> {
  const base = await openBaseParts(settings, tools);
  const { clock, shared, work, storage, replica, catalog } = base;
  const { logger, passwordCost } = tools;
  const account = await buildAccount(settings, { storage, clock, shared, logger, passwordCost });
  const entries = await layerEntries(settings, { account, storage, catalog, clock, logger });
  const counters = await openCounters(shared, {
    ...tools,
    ...account,
    tiers: new RateTiers(settings.plans),
    clock,
    database: storage.database.withTables(),
  });
  const insights = await buildInsights(settings, {
    ...tools,
    providerKeyVault: account.providerKeyVault,
    storage,
    database: storage.database.withTables(),
    reads: replica?.database.withTables(),
    clock,
    catalog: catalog.snapshot,
    sharedUp: sharedProbe(shared, settings),
    isLeader: work.isLeader,
    smoke: whileLeading(tools.smoke ?? smokePort(() => inference), work),
  });
  const inference = buildInference(settings, {
    ...tools,
    clock,
    catalog: catalog.snapshot,
    commits: storage.commits,
    database: storage.database.withTables(),
    ...account,
    insights,
    shared,
  });
  const keyProber = startKeyProber(account, tools.probeKey ?? probeKeyThrough(inference), {
    ...work,
    clock,
    logger: tools.logger,
  });
  return { ...base, account, counters, insights, inference, keyProber, entries };
}

async function openParts(settings: AppSettings, tools: AppTools): Promise<Parts> {
  const core = await openCore(settings, tools);
  const { clock, shared, work, storage, catalog, account, insights, inference } = core;
  const operations = await openOperations(settings, {
    ...tools,
    storage,
    shared,
    catalog,
    entries: core.entries,
    clock,
  });
  const gateway = buildGateway(settings, {
    ...core,
    logger: tools.logger,
    metrics: tools.metrics,
    shared,
  });
  const documents = openDocuments({
    ...tools,
    ...inference,
    ...work,
    database: storage.database.withTables(),
    ownKeyOf: ownKeyLookup(account.providerKeys),
    onRetention: (ok) =>
      insights.jobs.ran("document_retention", ok, ok ? undefined : "The last run failed."),
  });
  const stored = buildStoredResponses(settings, {
    ...tools,
    ...work,
    documents,
    gateway,
    storage,
    inference,
    directory: account.directory,
    insights,
  });
  const hubParts = buildHub(settings, {
    ...stored,
    ...work,
    storage,
    account,
    clock,
    logger: tools.logger,
  });
  const files = await buildFiles(settings, { ...core, ...work, logger: tools.logger });
  const built = buildBatches(settings, {
    ...core,
    files,
    upstream: inference.upstream,
    catalog: inference.catalog,
    logger: tools.logger,
  });
  const payments = await buildPayments(settings, { ...tools, storage, account, insights, clock });
  const meterEvents = buildMeterEvents(settings, { ...core, ...work, ...tools, payments });
  const surfaces = { stored, hubParts, gateway, documents, files, built };
  return { ...core, ...operations, ...surfaces, payments, meterEvents };
}

/** Returns the dependencies of the endpoints' handlers. */
const dependenciesOf = (
  settings: AppSettings,
  { tools, account, storage, catalog, shared, clock, ...parts }: Parts & { tools: AppTools },
): Dependencies => ({
  ...account,
  runs: withDoor(account.runs, shared !== undefined && hasSeveralGateways(settings)),
  documents: parts.documents,
  files: parts.files,
  batches: parts.built.batches,
  payments: parts.payments,
  meterEvents: parts.meterEvents,
  inference: parts.inference,
  dashboard: openDashboard(settings.dashboard, tools.logger),
  hasOllamaDoor: settings.doors?.["ollama"] !== undefined,
  consent: buildConsent(settings, { ...account, database: storage.database.withTables(), clock }),
  operations: parts.operations,
  entries: parts.entries,
  tryProvider: providerTrial(parts.inference, settings.environment),
  insights: parts.insights,
  clock,
  counters: parts.counters,
  keyProber: parts.keyProber,
  ...parts.hubParts,
  responses: parts.stored.responses,
  background: parts.stored.background,
  publicUrl: settings.publicUrl,
  socketLanes: settings.sockets?.lanes ?? 8,
  claudeCode: settings.claudeCode ?? {},
  generations: parts.insights.generations,
  ...openHistories(storage, { catalog: catalog.snapshot, clock }),
  embeddingCache: openEmbeddingCache(shared, clock),
  mcp: buildMcp(settings, tools),
  ...parts.gateway,
  ocrModel: ocrModelOf(settings.ocrModel, catalog.snapshot()),
  ...buildSpools(settings, clock),
  audioBytesMax: settings.audioBytesMax ?? 200 * 1024 ** 2,
  ...buildDocuments(settings, catalog.snapshot),
});

/** Returns what the process does with the app, beside serving its routes. */
const processParts = ({
  account,
  insights,
  inference,
  stored,
  documents,
  catalog,
  ...parts
}: Parts): Omit<App, "routes" | "fallback" | "consent" | "close"> => ({
  storage: parts.storage,
  mintFirstKey: account.mintFirstKey,
  issueClaim: () => account.people.claim.issue(),
  mintCommandKey: () => account.mintCommandKey(),
  ledger: account.ledger,
  closedMonths: account.closedMonths,
  budgets: account.budgets,
  people: account.people,
  referrals: account.referrals,
  insights,
  payments: parts.payments,
  meterEvents: parts.meterEvents,
  background: stored.background,
  prober: parts.keyProber,
  ...parts.hubParts,
  catalog: catalog.snapshot,
  sandbox: catalog.sandbox,
  nodes: parts.nodes,
  refreshCatalog: (sources) => catalog.refresh(sources),
  startDraining: () => {
    parts.state.draining = true;
    stored.background.drain();
    documents.drain();
    parts.built.batches.runner.drain();
    parts.gateway.agentStreams.end();
  },
  breakOffUpstreams() {
    // Stopped first, so that background responses see a shutdown and not a failed provider.
    // Resolves within its own time limit.
    void stored.background.stop();
    inference.upstream.breakOff();
  },
});

/** Writes what is pending, and releases the parts that all others are built on last. */
async function closeParts({
  account,
  shared,
  stored,
  ...parts
}: Parts & Pick<Dependencies, "mcp">): Promise<void> {
  await Promise.all([
    stored.stop(),
    account.useWriter.stop(),
    account.monthlyCredits.stop(),
    parts.insights.stop(),
    parts.files.sweep.stop(),
    parts.built.batches.runner.stop(),
  ]);
  await Promise.all([account.referrals?.stop(), parts.keyProber.stop()]);
  await Promise.all([parts.documents.stop(), parts.mcp.close(), parts.hubParts.stopHub()]);
  await parts.gateway.stopGateway();
  await endInference(parts.inference);
  await parts.catalog.stop();
  await parts.nodes.stop();
  await account.runs.stop();
  await parts.meterEvents.stop();
  await account.customers.stop();
  await stopSharing(shared, account);
  await parts.replica?.close();
  await parts.storage.close();
  closeShared(shared);
}

/**
 * Opens the histories of the catalog, beside its snapshot: how routes were used, and what they
 * cost.
 */
const openHistories = (
  { database }: Pick<Storage<AppTables>, "database">,
  parts: { catalog: LiveCatalog["snapshot"]; clock: Clock },
): Pick<Dependencies, "routeHistory" | "priceHistory"> => ({
  routeHistory: new RouteHistory({ database: database.withTables(), ...parts }),
  priceHistory: new PriceHistory({ database: database.withTables(), ...parts }),
});

const buildConsent = (
  { clientDocumentNetworks, extraCertificates }: AppSettings,
  parts: ConsentParts,
): Consent =>
  openConsent({
    ...parts,
    documents: { networks: clientDocumentNetworks, certificates: extraCertificates },
  });

/** Compiles the endpoint table's routes, with the guard, counting and observation. */
function compileApp(
  settings: AppSettings,
  {
    tools,
    people,
    ...parts
  }: Pick<
    Account,
    "directory" | "security" | "people" | "operatorWorkspaceId" | "idempotentAnswers"
  > & {
    dependencies: Dependencies;
    counters: RateCounters;
    clock: Clock;
    tools: AppTools;
  },
): ReturnType<typeof compileRoutes> {
  const observe = observeErrors({ ...tools, clock: parts.clock });
  const { refused } = parts.dependencies.insights;
  const addressOf = clientAddressReader(settings.trustProxy);
  const encrypted = encryptionReader(settings.trustProxy);
  const { dependencies, clock } = parts;
  const guard = new Guard({
    directory: parts.directory,
    runs: dependencies.runs.door,
    counters: parts.counters,
    clock,
    security: parts.security,
    sessions: { reader: people.reader, publicUrl: settings.publicUrl },
    operatorWorkspaceId: parts.operatorWorkspaceId,
    idempotentAnswers: parts.idempotentAnswers,
    doors: settings.doors,
    isProxyTrusted: settings.trustProxy !== false,
    onAnswerError: (error) =>
      tools.logger.error({ err: error }, "answer of a request with an idempotency key not stored"),
    onAuditError: (error) =>
      tools.logger.error({ err: error }, "outcome of a change not written to the audit log"),
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
    ...observeRequests(tools),
  });
}

/**
 * Returns the catalog id of the model that `ocr.model` of switchyard.yaml names. Throws
 * `ConfigurationError` for a model that cannot read pages.
 */
function ocrModelOf(id: string | undefined, catalog: CatalogSnapshot): string | undefined {
  if (id === undefined) return undefined;
  const model = findModel(catalog, id);
  const reason = unfit(model);
  if (model === undefined || reason !== undefined) {
    const message = `${reason ?? "there is no such model in the catalog"}, got ${JSON.stringify(id)}`;
    throw new ConfigurationError([{ key: "ocr.model", message }]);
  }
  return model.id;
}

function unfit(model: CatalogModel | undefined): string | undefined {
  if (model?.router !== undefined) return "expected one model; this is a pool of models";
  if (model !== undefined && model.surface !== "chat")
    return `expected a model that chats; this one serves ${model.surface}`;
  return undefined;
}
