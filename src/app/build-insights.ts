import type { Kysely } from "kysely";
import type { AppSettings } from "./app-settings.ts";
import type { CatalogSnapshot } from "../inference/catalog/model.ts";
import { providerLogoPath } from "../inference/catalog/provider-logo.ts";
import type { InferenceObserver } from "../inference/observer.ts";
import { isServable } from "../inference/upstream-targets.ts";
import { openInsights, type Insights, type InsightTables } from "../insights/open-insights.ts";
import type { RoutedProvider } from "../insights/health/service-components.ts";
import type { SmokePort } from "../insights/health/smoke-tests.ts";
import type { Clock } from "../platform/lib/clock.ts";
import { nanoFromUsd } from "../platform/lib/money.ts";
import type { Storage } from "../platform/storage/storage.ts";
import type { Logger } from "../platform/telemetry/logger.ts";

/** Codes with which requests end that were settled all the same, and so are counted already. */
const settledCodes: ReadonlySet<string> = new Set([
  "client_closed_request",
  "max_tokens_too_small",
]);

/** The insights of this gateway: they know no catalog, so what they need of it is handed to them here. */
export function buildInsights(
  settings: AppSettings,
  parts: {
    storage: Pick<Storage<never>, "kind" | "commits" | "isHealthy">;
    database: Kysely<InsightTables>;
    clock: Clock;
    catalog(): CatalogSnapshot;
    logger: Logger;
    smoke: SmokePort | undefined;
    isSharedUp: (() => boolean) | undefined;
  },
): Promise<Insights> {
  const { storage, database, clock, catalog, logger, smoke, isSharedUp } = parts;
  return openInsights({
    database,
    commits: storage.commits,
    kind: storage.kind,
    clock,
    version: settings.version,
    isSharedUp,
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

function budgetsOf({ providers }: AppSettings): Map<string, bigint> {
  return new Map(
    providers.flatMap(({ id, budget_usd_per_day: usd }): [string, bigint][] =>
      usd === undefined ? [] : [[id, nanoFromUsd(usd) ?? 0n]],
    ),
  );
}

const routedBySnapshot = new WeakMap<CatalogSnapshot, readonly RoutedProvider[]>();

/** Providers with any route that this process can call with a credential of the platform. */
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

/** An observer that tells the insights as well. */
export function withInsights(
  observer: InferenceObserver,
  { recorder }: Insights,
): InferenceObserver {
  return {
    ...observer,
    attemptEnded(attempt) {
      observer.attemptEnded(attempt);
      recorder.attemptEnded(attempt);
    },
    settled(record, timing) {
      observer.settled(record, timing);
      recorder.settled(record);
    },
    failed(request) {
      observer.failed(request);
      const { error, attempts } = request;
      if (!settledCodes.has(error.code))
        recorder.failed({ attempts, ownFault: error.fault === "gateway" });
    },
  };
}
