import { dirname, join } from "node:path";
import { tmpdir } from "node:os";
import { type FileSettings, type Files, openFiles } from "../../files/open-files.ts";
import type { InferenceDependencies } from "../../inference/pipeline/execution.ts";
import type { Insights } from "../../insights/open-insights.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { Account } from "../open-account.ts";
import type { AppSettings } from "../settings-of.ts";
import type { AppTables } from "./build-storage.ts";

/** Returns the settings of files where none are given: a directory beside the embedded database. */
const defaultSettings = (storageUrl: string): FileSettings => ({
  place: {
    directory: join(
      storageUrl.startsWith("sqlite:") ? dirname(storageUrl.slice("sqlite:".length)) : tmpdir(),
      "files",
    ),
  },
  quotaBytesOf: () => 10e9,
});

/** Opens the files of workspaces, encrypted with the keys of the vault. */
export const buildFiles = (
  { files, storageUrl }: AppSettings,
  {
    account,
    storage,
    insights,
    inference,
    clock,
    logger,
    isLeader,
  }: {
    account: Pick<Account, "providerKeyVault">;
    storage: Storage<AppTables>;
    insights: Pick<Insights, "jobs">;
    inference: Pick<InferenceDependencies, "providerFiles">;
    clock: Clock;
    logger: Logger;
    isLeader: (() => boolean) | undefined;
  },
): Promise<Files> =>
  openFiles(files ?? defaultSettings(storageUrl), {
    database: withTables(storage.database),
    copies: inference.providerFiles,
    vault: account.providerKeyVault,
    clock,
    logger,
    isLeader,
    onSweep: (ok) =>
      insights.jobs.ran("file_retention", ok, ok ? undefined : "The last run failed."),
  });
