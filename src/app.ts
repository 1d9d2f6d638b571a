import { bootstrap } from "./account/bootstrap.ts";
import { CredentialDirectory } from "./account/keys/credential-directory.ts";
import { LlmKeyMinter } from "./account/keys/llm-key-minter.ts";
import { LlmKeyStore, type LlmKeyTables } from "./account/keys/llm-key-store.ts";
import { loadCredentials } from "./account/keys/load-credentials.ts";
import { ManagementKeyStore, type ManagementKeyTables } from "./account/keys/management-key-store.ts";
import { createSecretHasher } from "./account/keys/secret-hasher.ts";
import { AccountBook } from "./account/ledger/account-book.ts";
import { Ledger } from "./account/ledger/ledger.ts";
import { LedgerStore, type LedgerTables } from "./account/ledger/ledger-store.ts";
import { accountAdd, keySpendAdd, transferInsert } from "./account/ledger/transfer.ts";
import { RateLimiter } from "./account/limits/rate-limiter.ts";
import { RateTiers } from "./account/limits/rate-tier.ts";
import { WorkspaceStore, type WorkspaceTables } from "./account/workspaces/workspace-store.ts";
import type { AppSettings } from "./app-settings.ts";
import type { Dependencies, Operations } from "./endpoints/dependencies.ts";
import { endpoints } from "./endpoints/index.ts";
import { clientAddressReader } from "./http/client-address.ts";
import { docsPage } from "./http/docs-page.ts";
import type { Endpoint } from "./http/endpoint.ts";
import { openApiDocument } from "./http/open-api.ts";
import { compileRoutes } from "./http/router.ts";
import { buildCatalog } from "./inference/catalog/build-catalog.ts";
import type { CatalogSnapshot } from "./inference/catalog/model.ts";
import { hasPlatformCredential } from "./inference/catalog/reachability.ts";
import type { InferenceDependencies } from "./inference/dependencies.ts";
import { KeepAliveTicker } from "./inference/keep-alive.ts";
import { HealthWindows } from "./inference/routing/health-windows.ts";
import { startSandbox, type Sandbox } from "./inference/sandbox/sandbox.ts";
import { sandboxProvider } from "./inference/sandbox/sandbox-models.ts";
import { createTargetLookup, isServable } from "./inference/upstream-targets.ts";
import { UpstreamClient } from "./inference/upstream/upstream-client.ts";
import { generationInsert } from "./insights/generation-record.ts";
import { GenerationStore, type GenerationTables } from "./insights/generation-store.ts";
import { Retention } from "./insights/retention.ts";
import { observeErrors, observeInference, observeRequests } from "./observe.ts";
import { systemClock, type Clock } from "./platform/lib/clock.ts";
import { migrations } from "./platform/storage/migrations/index.ts";
import { openStorage } from "./platform/storage/open-storage.ts";
import type { Storage } from "./platform/storage/storage.ts";
import type { Logger } from "./platform/telemetry/logger.ts";
import type { Metrics } from "./platform/telemetry/metrics.ts";
import type { Tracing } from "./platform/telemetry/tracing.ts";

type Schema = WorkspaceTables & LlmKeyTables & ManagementKeyTables & LedgerTables & GenerationTables;

/** Tools that outlive the app's own parts and are given to it. */
export interface AppTools {
  logger: Logger;
  metrics: Metrics;
  tracing: Tracing;
  clock?: Clock;
  random?: () => number;
}

/** The gateway, ready to be listened for. */
export interface App {
  routes: ReturnType<typeof compileRoutes>["routes"];
  fallback: ReturnType<typeof compileRoutes>["fallback"];
  catalog: CatalogSnapshot;
  /** Makes the key that a first start shows, and gives its secret; undefined on every other start. */
  mintFirstKey(): Promise<string | undefined>;
  sandbox: Sandbox | undefined;
  ledger: Ledger;
  storage: Storage<Schema>;
  /** Tells load balancers to send no more; requests are still served. */
  startDraining(): void;
  /** Writes what is pending and lets go of everything. */
  close(): Promise<void>;
}

/** Builds every part once and hands it down. */
export async function createApp(settings: AppSettings, tools: AppTools): Promise<App> {
  const clock = tools.clock ?? systemClock;
  const storage = await openStorage<Schema>({
    url: settings.storageUrl, durability: settings.durability, migrations, logger: tools.logger,
    commitStatements: { inserts: [transferInsert, generationInsert], adds: [accountAdd, keySpendAdd] },
  });
  const account = await buildAccount(settings, { storage, clock });
  const { catalog, sandbox } = await buildModels(settings, clock);
  const inference = buildInference(settings, { ...tools, clock, catalog, ledger: account.ledger });
  const state = { draining: false };
  const operations = buildOperations(settings, { storage, state, metrics: tools.metrics });
  const dependencies: Dependencies = {
    inference, operations, clock, ...account,
    generations: new GenerationStore({ database: storage.database.withTables(), commits: storage.commits }),
    ...buildDocuments(settings, catalog),
  };
  tools.metrics.watchHoldsOpen(() => account.ledger.openHoldCount);
  tools.metrics.watchCommitQueuePending(() => storage.commits.pendingCount);
  const retention = new Retention({
    generations: dependencies.generations, clock, keepDays: settings.generationDays, workspaceIds: () => account.ledger.book.workspaceIds(),
    onError: (error) => tools.logger.error({ err: error }, "old generation records could not be deleted"),
  });
  retention.start();
  const addressOf = clientAddressReader(settings.trustProxy);
  const compiled = compileRoutes({
    endpoints, dependencies, directory: account.directory, counters: account.counters, clock,
    clientAddress: (request, server) => addressOf(request, server.requestIP(request)?.address ?? ""),
    onError: observeErrors(tools),
    ...observeRequests(tools.metrics),
  });
  const expiry = setInterval(() => {
    for (const id of account.ledger.expire()) tools.logger.error({ hold: id }, "a hold was never settled; its request lost track of it");
  }, 60_000);
  return {
    ...compiled, catalog, sandbox, storage, mintFirstKey: account.mintFirstKey, ledger: account.ledger,
    startDraining: () => {
      state.draining = true;
    },
    async close() {
      clearInterval(expiry);
      await retention.stop();
      inference.keepAlive.stop();
      inference.upstream.close();
      await sandbox?.stop();
      await storage.close();
      await tools.tracing.shutdown();
    },
  };
}

async function buildAccount(settings: AppSettings, { storage, clock }: { storage: Storage<Schema>; clock: Clock }) {
  const hasher = createSecretHasher(settings.encryptionKey);
  const directory = new CredentialDirectory(hasher);
  const workspaces = new WorkspaceStore(storage.database.withTables());
  const llmKeys = new LlmKeyStore(storage.database.withTables());
  const managementKeys = new ManagementKeyStore(storage.database.withTables());
  const ledgerStore = new LedgerStore({ database: storage.database.withTables(), commits: storage.commits });
  const ledger = new Ledger({ book: new AccountBook(), commits: storage.commits, clock });
  const [loaded] = await Promise.all([
    loadCredentials(directory, { workspaces, llmKeys, managementKeys }),
    ledgerStore.loadInto(ledger.book, clock.nowMs()),
  ]);
  const llmKeyMinter = new LlmKeyMinter({ store: llmKeys, directory, hasher, clock });
  const { mintFirstKey } = await bootstrap(
    { workspaces, llmKeys, managementKeys, minter: llmKeyMinter, directory, hasher, ledger, ledgerStore, clock },
    { settings: settings.bootstrap, existing: loaded.workspaces, hasKeys: loaded.hasKeys },
  );
  const counters = { limiter: new RateLimiter(clock), tiers: new RateTiers(settings.plans) };
  return { directory, llmKeys, ledgerStore, ledger, llmKeyMinter, counters, mintFirstKey };
}

async function buildModels(settings: AppSettings, clock: Clock): Promise<{ catalog: CatalogSnapshot; sandbox: Sandbox | undefined }> {
  const options = { environment: settings.environment, configuredProviders: settings.providers, nowMs: clock.nowMs() };
  if (settings.sandbox !== true) {
    const catalog = buildCatalog(options);
    if (settings.sandbox === false || hasPlatformCredential(catalog)) return { catalog, sandbox: undefined };
  }
  const sandbox = startSandbox({ clock });
  return { catalog: buildCatalog({ ...options, simulatedProvider: sandboxProvider(sandbox.baseUrl) }), sandbox };
}

function buildInference(
  settings: AppSettings,
  parts: AppTools & { clock: Clock; catalog: CatalogSnapshot; ledger: Ledger },
): InferenceDependencies {
  const { clock, catalog, ledger } = parts;
  return {
    catalog: () => catalog,
    ledger,
    clock,
    upstream: new UpstreamClient({ clock }),
    health: new HealthWindows(clock),
    observer: observeInference(parts),
    random: parts.random ?? Math.random,
    keepAlive: new KeepAliveTicker(() => clock.monotonicMs()),
    disconnect: settings.disconnect,
    targetOf: createTargetLookup(),
    isServable,
  };
}

function buildOperations(
  settings: AppSettings,
  { storage, state, metrics }: { storage: Storage<Schema>; state: { draining: boolean }; metrics: Metrics },
): Operations {
  return {
    async unreadyParts() {
      const unready = state.draining ? ["draining"] : [];
      return (await storage.isHealthy()) ? unready : [...unready, "storage"];
    },
    metricsText: () => metrics.text(),
    metricsContentType: metrics.contentType,
    metricsHere: !settings.metricsElsewhere,
    version: settings.version,
  };
}

/** Documents of the table, made when they are first asked for. */
function buildDocuments(settings: AppSettings, catalog: CatalogSnapshot): Pick<Dependencies, "openApiText" | "docsHtml"> {
  const table = endpoints as readonly Endpoint<never>[];
  let openApi: string | undefined;
  let html: string | undefined;
  return {
    openApiText: () => (openApi ??= JSON.stringify(openApiDocument(table, { version: settings.version, publicUrl: settings.publicUrl() }))),
    docsHtml: () => (html ??= docsPage(table, { publicUrl: settings.publicUrl(), exampleModel: exampleModel(catalog) })),
  };
}

/** A model for examples: one that costs nothing if there is any, else any that can be served. */
export function exampleModel(catalog: CatalogSnapshot): string {
  const servable = [...catalog.models.values()].filter((model) => model.surface === "chat" && model.routes.some((route) => isServable(route, model)));
  return (servable.find((model) => model.id.endsWith(":free")) ?? servable[0])?.id ?? "provider/model";
}
