import type { Kysely } from "kysely";
import type { UpstreamClient } from "../inference/upstream/upstream-client.ts";
import type { CatalogSnapshot } from "../inference/catalog/model.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import type { Leases } from "../platform/shared-state/shared-leases.ts";
import type { Logger } from "../platform/telemetry/logger.ts";
import type { Metrics } from "../platform/telemetry/metrics.ts";
import { DocumentConverter, type ConverterPoolOptions } from "./converter/converter-pool.ts";
import { documentCredentialLookup, type OwnKeyOf } from "./jobs/ask-parser.ts";
import {
  DocumentJobRetention,
  DocumentJobStore,
  type DocumentJobTables,
} from "./jobs/document-job-store.ts";
import { DocumentJobRunner, DocumentJobs } from "./jobs/document-jobs.ts";

/** What works on documents, ready to be started. */
export interface Documents {
  converter: DocumentConverter;
  jobs: DocumentJobs;
  /** Takes up the jobs that an earlier process has left. */
  start(): Promise<void>;
  /** Takes up what another gateway has left that died. */
  takeUp(): Promise<void>;
  /** Begins nothing more and lets go of who waits. */
  drain(): void;
  stop(): Promise<void>;
}

/** What documents are worked on with. */
export interface DocumentParts {
  database: Kysely<DocumentJobTables>;
  upstream: UpstreamClient;
  catalog: () => CatalogSnapshot;
  ownKeyOf: OwnKeyOf;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  /** Told of each deletion of old jobs, and whether it went well. */
  onRetention(ok: boolean): void;
  /** What one of several gateways does alone; absent where there is only one. */
  leases?: Leases | undefined;
  /** Where several gateways share the database, whether this one does what is done once. */
  isLeader?: (() => boolean) | undefined;
  /** Changes for tests. */
  converterPool?: Partial<ConverterPoolOptions> | undefined;
}

/**
 * Builds what converts files here, and what has documents parsed by providers. Nothing is started.
 */
export function openDocuments({
  database,
  upstream,
  catalog,
  ownKeyOf,
  clock,
  logger,
  metrics,
  onRetention,
  leases,
  isLeader,
  converterPool = {},
}: DocumentParts): Documents {
  const converter = new DocumentConverter({
    clock,
    pool: converterPool,
    onConverted({ format, outcome, durationMs, trouble }) {
      metrics.conversion(format, outcome).observe(durationMs / 1000);
      if (trouble !== undefined)
        logger.warn({ format, outcome, trouble }, "a file could not be converted");
    },
  });
  const store = new DocumentJobStore(database, leases);
  const credentialOf = documentCredentialLookup({ catalog, ownKeyOf });
  const runner = new DocumentJobRunner({
    jobs: store,
    upstream,
    credentialOf,
    clock,
    onError: (error) => logger.error({ err: error }, "a document job could not be worked on"),
  });
  const retention = new DocumentJobRetention({
    jobs: store,
    clock,
    isLeader,
    onPurged: () => onRetention(true),
    onError(error) {
      onRetention(false);
      logger.error({ err: error }, "old document jobs could not be deleted");
    },
  });
  return {
    converter,
    jobs: new DocumentJobs({ store, runner, credentialOf, clock }),
    async start() {
      retention.start();
      await runner.start();
    },
    takeUp: () => runner.start(),
    drain: () => runner.drain(),
    async stop() {
      converter.close();
      await Promise.all([retention.stop(), runner.stop()]);
    },
  };
}
