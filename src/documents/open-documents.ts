import type { Kysely } from "kysely";
import type { UpstreamClient } from "../inference/upstream/upstream-client.ts";
import type { CatalogSnapshot } from "../inference/catalog/model.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import type { Leases } from "../platform/shared-state/shared-leases.ts";
import type { Logger } from "../platform/telemetry/logger.ts";
import type { Metrics } from "../platform/telemetry/metrics.ts";
import type { ConverterPoolOptions } from "./converter/converter-pool.ts";
import { DocumentConverter } from "./converter/document-converter.ts";
import { documentCredentialLookup, type OwnKeyOf } from "./jobs/ask-parser.ts";
import { DocumentJobStore, type DocumentJobTables } from "./jobs/document-job-store.ts";
import { DocumentJobRetention } from "./jobs/document-job-retention.ts";
import { DocumentJobs } from "./jobs/document-jobs.ts";
import { DocumentJobRunner } from "./jobs/document-job-runner.ts";

/** The parts that process documents, ready to start. */
export interface Documents {
  converter: DocumentConverter;
  jobs: DocumentJobs;
  /** Resumes the jobs that an earlier process left. */
  start(): Promise<void>;
  /** Resumes jobs of a gateway that died. */
  takeUp(): Promise<void>;
  /** Starts nothing more and answers waiting callers. */
  drain(): void;
  stop(): Promise<void>;
}

/** The dependencies of processing documents. */
export interface DocumentParts {
  database: Kysely<DocumentJobTables>;
  upstream: UpstreamClient;
  catalog: () => CatalogSnapshot;
  ownKeyOf: OwnKeyOf;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  /** Called after each deletion of old jobs, with whether it succeeded. */
  onRetention(ok: boolean): void;
  /** The leases of work that one of several gateways does; absent where there is only one. */
  leases?: Leases | undefined;
  /**
   * Returns whether this gateway, among several on the database, runs the jobs that run once;
   * absent where there is one.
   */
  isLeader?: (() => boolean) | undefined;
  /** Overrides for tests. */
  converterPool?: Partial<ConverterPoolOptions> | undefined;
}

/**
 * Builds the converter of files, and the jobs of documents that providers parse. Nothing is
 * started.
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
