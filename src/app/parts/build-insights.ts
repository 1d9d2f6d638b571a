import type { Kysely } from "kysely";
import type { AccountTables } from "../open-account.ts";
import type { AppSettings } from "../settings-of.ts";
import type { CatalogSnapshot } from "../../inference/catalog/model.ts";
import { providerLogoPath } from "../../inference/catalog/list-models.ts";
import { isServable } from "../../inference/pipeline/upstream-targets.ts";
import type { ContentTables } from "../../insights/archive/content-insert.ts";
import { Contents } from "../../insights/archive/contents.ts";
import type { ArchivingTables } from "../../insights/archive/outbox.ts";
import {
  openInsights,
  type Insights,
  type InsightTables,
  type OpenArchive,
} from "../../insights/open-insights.ts";
import type { RoutedProvider } from "../../insights/health/components.ts";
import type { SmokePort } from "../../insights/health/smoke-tests.ts";
import { PrivacyStore, type PrivacyTables } from "../../identity/workspaces/privacy-store.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { nanoFromUsd } from "../../platform/kernel/money.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { KeyVault } from "../../platform/vault/key-vault.ts";

/**
 * Builds the insights of this gateway. They do not import the catalog, so what they need of it is
 * passed in here.
 */
export function buildInsights(
  settings: AppSettings,
  parts: {
    storage: Pick<Storage<never>, "kind" | "commits" | "isHealthy">;
    database: Kysely<InsightTables & ArchivingTables & ClosingTables>;
    /** A replica for reads that may lag behind; undefined where there is none. */
    reads: Kysely<InsightTables> | undefined;
    clock: Clock;
    catalog(): CatalogSnapshot;
    logger: Logger;
    smoke: SmokePort | undefined;
    /**
     * Returns the share of the gateways' shared state that is available, from 0 to 1; undefined
     * where there is none.
     */
    sharedUp: (() => number) | undefined;
    isLeader: (() => boolean) | undefined;
    providerKeyVault: KeyVault;
  },
): Promise<Insights> {
  const { storage, database, reads, clock, catalog, logger, smoke, sharedUp } = parts;
  const keeping: KeepingParts = {
    database: withTables(database),
    storage,
    logger,
    clock,
    isLeader: parts.isLeader,
    providerKeyVault: parts.providerKeyVault,
  };
  return openInsights({
    openArchive: archiveOpener(settings, keeping),
    openContents: contentsOpener(settings, keeping),
    database,
    reads: reads && withTables(reads),
    commits: storage.commits,
    kind: storage.kind,
    clock,
    version: settings.version,
    sharedUp,
    probePostgres: storage.kind === "postgres" ? () => storage.isHealthy() : undefined,
    onError: (error, message) => logger.error({ err: error }, message),
    onExcess: ({ workspaceId, requests }) =>
      logger.warn({ workspace: workspaceId, requests }, "failed requests counted without a record"),
    ports: {
      smoke,
      budgets: budgetsOf(settings),
      isPublic: (providerId) => catalog().providers.has(providerId),
      routed: () => routedProviders(catalog()),
      describeModel(modelId) {
        const model = catalog().models.get(modelId);
        return model && { name: model.displayName, provider: model.owner };
      },
    },
  });
}

/** What keeps records and contents. */
interface KeepingParts {
  database: Kysely<ClosingTables>;
  storage: Pick<Storage<never>, "kind" | "commits">;
  logger: Logger;
  clock: Clock;
  isLeader: (() => boolean) | undefined;
  providerKeyVault: KeyVault;
}

/**
 * Returns a function that opens the configured archive, whose code is loaded only then; undefined
 * where none is configured.
 */
function archiveOpener(
  { archive, generationDays, logBudgetBytes, extraCertificates: certificates = [] }: AppSettings,
  {
    database: people,
    storage: { kind, commits },
    logger,
    clock,
    isLeader,
    providerKeyVault,
  }: KeepingParts,
): OpenArchive | undefined {
  if (archive === undefined) return undefined;
  return async (database, reads) =>
    (await import("../../insights/archive/open-archive.ts")).openArchive({
      settings: archive,
      database,
      reads,
      commits,
      kind,
      clock,
      certificates,
      ports: {
        generationDays,
        isLeader,
        closedWorkspaces: () => closedWorkspaces(people),
        contentsSince: () => contentsSince(people),
        contentVault: providerKeyVault,
        contentBudgetCharacters: logBudgetBytes,
        onContentsDropped: (contents) =>
          logger.warn(
            { contents },
            "prompts and answers were deleted before the archive took them: retention.log_budget_gb has no room for more",
          ),
        onDropped: (records) =>
          logger.warn(
            { records },
            "records were deleted before the archive took them: retention.log_budget_gb has no room for more",
          ),
        onError: (error) =>
          logger.warn(
            { err: error },
            "records could not be archived yet; they wait in the database",
          ),
      },
    });
}

/** Returns a function that opens the prompts and answers that are kept in the database. */
const contentsOpener =
  (
    { contentDays = 7, logBudgetBytes }: AppSettings,
    {
      database: people,
      storage: { commits },
      logger,
      clock,
      providerKeyVault: vault,
    }: KeepingParts,
  ) =>
  (database: Kysely<ContentTables>): Contents =>
    new Contents({
      database,
      commits,
      archived: undefined,
      vault,
      clock,
      keepDays: contentDays,
      budgetCharacters: logBudgetBytes,
      keptSince: () => contentsSince(people),
      onDropped: (contents) =>
        logger.warn(
          { contents },
          "prompts and answers were deleted early: retention.log_budget_gb has no room for more",
        ),
      onError: (error) =>
        logger.warn({ err: error }, "prompts and answers could not be kept or deleted"),
    });

type ClosingTables = Pick<AccountTables, "workspaces" | "organization_members"> & PrivacyTables;

/** Returns the workspaces that keep prompts and answers, and were not closed. */
async function contentsSince(
  database: Kysely<ClosingTables>,
): Promise<ReadonlyMap<string, number>> {
  const since = await new PrivacyStore(withTables(database)).contentsSince();
  for (const id of since.size === 0 ? [] : await closedWorkspaces(database)) since.delete(id);
  return since;
}

/**
 * Returns the workspaces that were closed with their person or organisation, and admit no caller
 * any more.
 */
async function closedWorkspaces(database: Kysely<ClosingTables>): Promise<readonly string[]> {
  const rows = await database
    .selectFrom("workspaces")
    .select("id")
    .where("blocked_at_ms", "is not", null)
    .where("owner_user_id", "is", null)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom("organization_members")
            .select("user_id")
            .whereRef("organization_members.organization_id", "=", "workspaces.organization_id"),
        ),
      ),
    )
    .execute();
  return rows.map(({ id }) => id);
}

function budgetsOf({ providers }: AppSettings): Map<string, bigint> {
  return new Map(
    providers.flatMap(({ id, budget_usd_per_day: usd }): [string, bigint][] =>
      usd === undefined ? [] : [[id, nanoFromUsd(usd) ?? 0n]],
    ),
  );
}

const routedBySnapshot = new WeakMap<CatalogSnapshot, readonly RoutedProvider[]>();

/** Returns the providers with any route that this process can call with a platform credential. */
function routedProviders(snapshot: CatalogSnapshot): readonly RoutedProvider[] {
  let routed = routedBySnapshot.get(snapshot);
  if (routed === undefined) {
    const byId = new Map<string, RoutedProvider>();
    for (const model of snapshot.models.values()) {
      for (const route of model.routes) {
        const { id, name } = route.provider;
        if (!byId.has(id) && isServable(route, model))
          byId.set(id, { id, name, logo: providerLogoPath(id) });
      }
    }
    routed = [...byId.values()].sort((left, right) => (left.id < right.id ? -1 : 1));
    routedBySnapshot.set(snapshot, routed);
  }
  return routed;
}
