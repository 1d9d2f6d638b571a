import type { AppTools } from "../app.ts";
import type { CredentialDirectory } from "../../identity/keys/credential-directory.ts";
import type { AppSettings } from "../app-settings.ts";
import { runBackground } from "../../endpoints/inference/responses/run-background.ts";
import type { InferenceDependencies } from "../../inference/pipeline/execution.ts";
import { BackgroundRunner } from "../../inference/responses/background-runner.ts";
import { JobStore } from "../../inference/responses/job-store.ts";
import {
  ResponseRetention,
  ResponseStore,
  type ResponseTables,
} from "../../inference/responses/response-store.ts";
import type { Insights } from "../../insights/open-insights.ts";
import type { Claims } from "../../platform/shared-state/shared-claims.ts";
import type { Storage } from "../../platform/storage/storage.ts";

/** Responses that are stored, ready to be started. */
export interface StoredResponses {
  responses: ResponseStore;
  background: BackgroundRunner;
  /** Takes up what an earlier process has left. */
  start(): Promise<void>;
  stop(): Promise<unknown>;
}

/** Builds the storage of responses, what works on those in the background, and their retention. */
export function buildStoredResponses(
  { responseDays: keepDays }: AppSettings,
  parts: AppTools & {
    storage: Storage<ResponseTables>;
    inference: InferenceDependencies;
    directory: CredentialDirectory;
    insights: Insights;
    /** What one of several gateways does alone; absent where there is only one. */
    claims: Claims | undefined;
    isLeader: (() => boolean) | undefined;
  },
): StoredResponses {
  const {
    storage,
    inference,
    directory,
    logger,
    insights: { jobs },
  } = parts;
  const { clock } = inference;
  const responses = new ResponseStore({
    database: storage.database.withTables(),
    commits: storage.commits,
  });
  const background = new BackgroundRunner({
    responses,
    clock,
    jobs: new JobStore(storage.database.withTables(), parts.claims),
    run: parts.runBackground ?? runBackground({ inference, responses }),
    callerOf: (keyId) => directory.liveLlmKey(keyId, clock.nowMs()),
    onError: (error) => logger.error({ err: error }, "a background response could not be stored"),
  });
  const retention = new ResponseRetention({
    responses,
    clock,
    keepDays,
    isLeader: parts.isLeader,
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
