import { RateTiers } from "../account/limits/rate-tier.ts";
import type { App } from "./app.ts";
import type { AppSettings } from "./app-settings.ts";
import type { AppTools } from "./app-tools.ts";
import { buildAccount } from "./build-account.ts";
import { buildHub } from "./build-hub.ts";
import { buildInference, endInference, ownKeyLookup } from "./build-inference.ts";
import { buildInsights } from "./build-insights.ts";
import { buildDocuments, buildMcp, buildOperations } from "./build-operations.ts";
import { buildPayments } from "./build-payments.ts";
import { openDatabase } from "./build-storage.ts";
import { buildStoredResponses } from "./build-stored-responses.ts";
import { compileApp } from "./compile-app.ts";
import { openConsent, type Consent, type ConsentParts } from "../consent/open-consent.ts";
import { openDocuments } from "../documents/open-documents.ts";
import type { Dependencies } from "../endpoints/dependencies.ts";
import { RouteHistory } from "../inference/catalog/route-history.ts";
import { probeKeyThrough } from "../inference/probe-key.ts";
import { smokePort } from "../inference/smoke-ask.ts";
import { GenerationStore } from "../insights/generation-store.ts";
import { openDashboard } from "./dashboard-files.ts";
import { LiveCatalog } from "./live-catalog.ts";
import { watchFigures } from "./observe.ts";
import { ocrModelOf } from "./ocr-model-of.ts";
import {
  closeShared,
  openCounters,
  openEmbeddingCache,
  openSessionPlaces,
  openShared,
  sharedProbe,
  shareWork,
  stopSharing,
  whileLeading,
} from "./open-shared.ts";
import { systemClock, type Clock } from "../platform/lib/clock.ts";
import { startKeyProber, startRounds } from "./start-rounds.ts";

const buildCatalog = async (settings: AppSettings, clock: Clock): Promise<LiveCatalog> =>
  new LiveCatalog({ ...settings, clock }, settings);

/** Builds every part once and hands it down. */
export async function createApp(settings: AppSettings, tools: AppTools): Promise<App> {
  const clock = tools.clock ?? systemClock;
  const shared = await openShared(settings, { clock, logger: tools.logger });
  const work = shareWork(shared, settings);
  // The catalog is built while the threads of the database start.
  const [storage, catalog] = await Promise.all([
    openDatabase(settings, { ...tools, shared, clock }),
    buildCatalog(settings, clock),
  ]);
  const account = await buildAccount(settings, { storage, clock, shared, logger: tools.logger });
  const counters = await openCounters(shared, {
    ...tools,
    ...account,
    tiers: new RateTiers(settings.plans),
    clock,
    database: storage.database.withTables(),
  });
  const insights = await buildInsights(settings, {
    ...tools,
    storage,
    database: storage.database.withTables(),
    clock,
    catalog: catalog.snapshot,
    isSharedUp: sharedProbe(shared, settings),
    smoke: whileLeading(tools.smoke ?? smokePort(() => inference), work),
  });
  const inference = buildInference(settings, {
    ...tools,
    clock,
    catalog: catalog.snapshot,
    commits: storage.commits,
    ...account,
    insights,
    sessionPlaces: openSessionPlaces(shared),
  });
  const keyProber = startKeyProber(account, tools.probeKey ?? probeKeyThrough(inference), {
    ...work,
    clock,
    logger: tools.logger,
  });
  const state = { draining: false };
  const operations = buildOperations(settings, {
    ...tools,
    storage,
    state,
    isSharedUp: sharedProbe(shared, settings),
  });
  const stored = buildStoredResponses(settings, {
    ...tools,
    ...work,
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
  const documents = openDocuments({
    ...tools,
    ...inference,
    ...work,
    database: storage.database.withTables(),
    ownKeyOf: ownKeyLookup(account.providerKeys),
    onRetention: (ok) =>
      insights.jobs.ran("document_retention", ok, ok ? undefined : "The last run failed."),
  });
  const payments = await buildPayments(settings, { ...tools, storage, account, insights, clock });
  const dependencies: Dependencies = {
    ...account,
    documents,
    payments,
    inference,
    dashboard: openDashboard(settings.dashboard, tools.logger),
    consent: buildConsent(settings, { ...account, database: storage.database.withTables(), clock }),
    operations,
    insights,
    clock,
    counters,
    keyProber,
    ...hubParts,
    responses: stored.responses,
    background: stored.background,
    publicUrl: settings.publicUrl,
    claudeCode: settings.claudeCode ?? {},
    generations: new GenerationStore({
      database: storage.database.withTables(),
      commits: storage.commits,
    }),
    routeHistory: new RouteHistory({ database: storage.database.withTables(), clock }),
    embeddingCache: openEmbeddingCache(shared, clock),
    mcp: buildMcp(settings, tools),
    ocrModel: ocrModelOf(settings.ocrModel, catalog.snapshot()),
    ...buildDocuments(settings, catalog.snapshot),
  };
  watchFigures(tools.metrics, { ...account, ...storage, uncollected: inference.uncollected });
  const stopRounds = startRounds(account, {
    ...dependencies,
    ...work,
    settings,
    logger: tools.logger,
  });
  await Promise.all([stored.start(), documents.start()]);
  const compiled = compileApp(settings, { ...account, dependencies, counters, clock, tools });
  return {
    ...compiled,
    storage,
    mintFirstKey: account.mintFirstKey,
    issueClaim: () => account.people.claim.issue(),
    ledger: account.ledger,
    budgets: account.budgets,
    people: account.people,
    referrals: account.referrals,
    insights,
    payments,
    background: stored.background,
    prober: keyProber,
    consent: dependencies.consent,
    ...hubParts,
    catalog: catalog.snapshot,
    sandbox: catalog.sandbox,
    refreshCatalog: (sources) => catalog.refresh(sources),
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
      await Promise.all([
        stored.stop(),
        account.useWriter.stop(),
        account.monthlyCredits.stop(),
        insights.stop(),
      ]);
      await Promise.all([account.referrals?.stop(), keyProber.stop()]);
      await Promise.all([documents.stop(), dependencies.mcp.close(), hubParts.stopHub()]);
      await endInference(inference);
      await catalog.stop();
      await stopSharing(shared, account);
      await storage.close();
      closeShared(shared);
      await tools.tracing.shutdown();
    },
  };
}

const buildConsent = (
  { clientDocumentNetworks, extraCertificates }: AppSettings,
  parts: ConsentParts,
): Consent =>
  openConsent({
    ...parts,
    documents: { networks: clientDocumentNetworks, certificates: extraCertificates },
  });
