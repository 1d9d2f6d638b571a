import { hkdfSync } from "node:crypto";
import { getCACertificates } from "node:tls";
import type { Kysely } from "kysely";
import type { AppTools } from "../app.ts";
import { UncollectedCharges } from "../../billing/ledger/uncollected-charges.ts";
import type { ProviderKeys } from "../../byok/provider-keys.ts";
import type { Security } from "../../access/open-security.ts";
import type { AppSettings } from "../settings-of.ts";
import { type CatalogSnapshot, withWorkspaceNames } from "../../inference/catalog/model.ts";
import type {
  InferenceDependencies,
  InferenceObserver,
} from "../../inference/pipeline/execution.ts";
import { CallSignatures } from "../../inference/pipeline/stream/call-signatures.ts";
import type { ContentPort } from "../../inference/pipeline/settlement/keep-content.ts";
import { SealMemory } from "../../inference/pipeline/credentials/seal-memory.ts";
import { OpenedRoutes } from "../../inference/pipeline/credentials/opened-routes.ts";
import { KeepAliveTicker } from "../../inference/pipeline/stream/keep-alive-ticker.ts";
import { HealthWindows } from "../../inference/routing/health/health-windows.ts";
import { shareOutages } from "../../inference/routing/health/shared-outages.ts";
import { StickySessions } from "../../inference/routing/sticky-sessions.ts";
import { createTargetLookup, isServable } from "../../inference/pipeline/upstream-targets.ts";
import { UpstreamClient, type UpstreamNetwork } from "../../inference/upstream/upstream-client.ts";
import type { Insights } from "../../insights/open-insights.ts";
import { openSessionPlaces, type Shared, type SharedWork } from "../open-shared.ts";
import { buildProviderFiles } from "./build-provider-files.ts";
import { observeInference, observeUncollected, withInsights } from "../observe.ts";
import type { FileTables } from "../../files/file-store.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { ProxyRules } from "../../platform/kernel/network/proxy-rules.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import { errorAddress } from "../../platform/kernel/errors.ts";
import type { CredentialDirectory } from "../../identity/keys/credential-directory.ts";
import type { Dependencies } from "../../endpoints/dependencies.ts";
import type { ResponseServices } from "../../endpoints/inference/tools/responses/serve-response.ts";
import { runBackground } from "../../endpoints/inference/responses/run-background.ts";
import { BackgroundRunner } from "../../inference/responses/background-runner.ts";
import { JobStore, type RunBackground } from "../../inference/responses/job-store.ts";
import { ResponseStore, type ResponseTables } from "../../inference/responses/response-store.ts";
import { ResponseRetention } from "../../inference/responses/response-retention.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { Account } from "../open-account.ts";

/** What inference is built from. */
interface InferenceParts {
  tools: AppTools;
  account: Pick<Account, "aliases" | "ledger" | "security" | "providerKeys" | "referrals">;
  clock: Clock;
  catalog(): CatalogSnapshot;
  commits: CommitQueue;
  insights: Insights;
  database: Kysely<FileTables>;
  /** The state shared with other gateways; undefined where there are none. */
  shared: Shared | undefined;
}

/** Builds everything that serving a request needs. */
export function buildInference(
  settings: AppSettings,
  { tools, account, clock, catalog, commits, database, insights, shared }: InferenceParts,
): InferenceDependencies {
  const { aliases, ledger, security, providerKeys, referrals } = account;
  const { logger, metrics } = tools;
  const health = new HealthWindows(clock, insights.stateOf);
  if (shared !== undefined) shareOutages(health, shared.channel);
  const upstream = new UpstreamClient({ clock, network: networkOf(settings) });
  return {
    catalog: (workspaceId) =>
      workspaceId === undefined
        ? catalog()
        : withWorkspaceNames(catalog(), aliases.targetsOf(workspaceId)),
    ledger,
    uncollected: new UncollectedCharges({
      commits,
      clock,
      reports: observeUncollected({ logger, metrics }),
    }),
    chargesStall: () => !commits.admits(),
    providerKeys,
    openedRoutes: new OpenedRoutes({
      providerKeys,
      clock,
      onError: (error) => logger.error({ err: error }, "a provider key could not be opened"),
    }),
    clock,
    upstream,
    providerFiles: buildProviderFiles({
      database,
      catalog,
      providerKeys,
      upstream,
      clock,
      logger,
      bytesMin: settings.files?.uploadFromBytes,
    }),
    health,
    unsettled: insights.unsettled,
    observer: observerOf(tools, { insights, clock }),
    random: tools.random ?? Math.random,
    keepAlive: new KeepAliveTicker(() => clock.monotonicMs()),
    callSignatures: new CallSignatures(),
    sealMemory: new SealMemory(clock),
    sessions: new StickySessions(clock, { shared: openSessionPlaces(shared) }),
    privacyOf: (caller) => security.privacy.workspacePrivacy(caller.workspace.id, caller),
    contents: contentPort({ insights, security }, settings.contentMediaBytes),
    holdsBonus: referrals && ((workspaceId) => referrals.holdsFor(workspaceId)),
    disconnect: settings.disconnect,
    keepaliveBeforeContentMs: settings.keepaliveBeforeContentMs,
    scopedId: endUserHasher(settings.encryptionKey),
    errorAddress: (code) => errorAddress(settings.publicUrl(), code),
    targetOf: createTargetLookup({ clock, upstream }),
    isServable,
  };
}

/** Returns what receives the events of inference: metrics, traces, insights and the access log. */
function observerOf(
  { accessLog, logger, metrics, tracing }: AppTools,
  { insights, clock }: { insights: Insights; clock: Clock },
): InferenceObserver {
  const observer = withInsights(observeInference({ logger, metrics, tracing, clock }), insights);
  return accessLog?.observing(observer) ?? observer;
}

/** Returns the function that hashes ids of callers' users: HMAC-SHA256, in 43 characters. */
function endUserHasher(encryptionKey: Uint8Array): (id: string) => string {
  const key = new Uint8Array(hkdfSync("sha256", encryptionKey, "", "switchyard end users v1", 32));
  return (id) => new Bun.CryptoHasher("sha256", key).update(id).digest("base64url");
}

/** Returns where prompts and answers are kept for workspaces that ask for it. */
const contentPort = (
  {
    insights: { contents },
    security: { privacy },
  }: {
    insights: Pick<Insights, "contents">;
    security: Pick<Security, "privacy">;
  },
  mediaBytesMax = 4 * 1024 * 1024,
): ContentPort => ({
  mediaBytesMax,
  keptSinceMs: (caller) => privacy.contentsSinceMs(caller.workspace.id, caller),
  write: (content) => contents.write(content),
  writeLate: (content) => contents.writeLate(content),
});

/**
 * Returns the network settings of upstream requests. The platform's own list of certificates, with
 * those of `NODE_EXTRA_CA_CERTS`, is copied only where more are trusted.
 */
const networkOf = ({ proxies, extraCertificates = [] }: AppSettings): UpstreamNetwork => ({
  proxies: new ProxyRules(proxies ?? { https: undefined, http: undefined, none: undefined }),
  trusted:
    extraCertificates.length === 0
      ? undefined
      : [...getCACertificates("default"), ...extraCertificates],
});

/**
 * Returns a lookup of the first of a workspace's own keys for a provider that may be used now, in
 * the clear.
 */
export const ownKeyLookup =
  (providerKeys: ProviderKeys) =>
  (workspaceId: string, providerId: string): string | undefined => {
    const [key] = providerKeys.ownKeys(workspaceId, providerId);
    return key && providerKeys.secretOf(key);
  };

/**
 * Ends what keeps connections to providers and clients open, and books what the database refused.
 */
export async function endInference({
  openedRoutes,
  keepAlive,
  upstream,
  uncollected,
}: InferenceDependencies): Promise<void> {
  openedRoutes.stop();
  keepAlive.stop();
  upstream.close();
  await uncollected.stop();
}

/** The stored responses, ready to start. */
export interface StoredResponses {
  responses: ResponseStore;
  background: BackgroundRunner;
  /** Resumes the background responses that an earlier process left. */
  start(): Promise<void>;
  stop(): Promise<unknown>;
}

/** Builds the storage of responses, their background work and their retention. */
export function buildStoredResponses(
  { responseDays: keepDays, publicUrl }: AppSettings,
  parts: {
    /** What runs the tools that models call. */
    gateway: Pick<
      Dependencies,
      "toolCalls" | "toolSecrets" | "upstreamServers" | "maxToolRounds" | "search"
    >;
    documents: ResponseServices["documents"];
    storage: Storage<ResponseTables>;
    inference: InferenceDependencies;
    directory: CredentialDirectory;
    insights: Insights;
    work: SharedWork;
    logger: Logger;
    /** Runs background responses in place of inference. */
    runInBackground: RunBackground | undefined;
  },
): StoredResponses {
  const { storage, inference, documents, gateway, directory, work, logger } = parts;
  const { jobs } = parts.insights;
  const { clock } = inference;
  const responses = new ResponseStore({
    database: withTables(storage.database),
    commits: storage.commits,
  });
  const background = new BackgroundRunner({
    responses,
    clock,
    jobs: new JobStore(withTables(storage.database), work.leases),
    run:
      parts.runInBackground ??
      runBackground({
        inference,
        documents,
        responses,
        toolCalls: gateway.toolCalls,
        toolSecrets: gateway.toolSecrets,
        upstreamServers: gateway.upstreamServers,
        maxToolRounds: gateway.maxToolRounds,
        search: gateway.search,
        publicUrl,
        clock,
      }),
    callerOf: (keyId) => directory.liveLlmKey(keyId, clock.nowMs()),
    onError: (error) => logger.error({ err: error }, "a background response could not be stored"),
  });
  const retention = new ResponseRetention({
    responses,
    clock,
    keepDays,
    isLeader: work.isLeader,
    onPurged: () => jobs.ran("response_retention", true),
    onError(error) {
      jobs.ran("response_retention", false, "The last run failed.");
      logger.error({ err: error }, "old responses could not be deleted");
    },
  });
  return {
    responses,
    background,
    async start() {
      retention.start();
      await background.start();
    },
    stop: () => Promise.all([retention.stop(), background.stop()]),
  };
}
