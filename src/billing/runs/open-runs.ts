import type { Kysely } from "kysely";
import type { CredentialDirectory } from "../../identity/keys/credential-directory.ts";
import { isRunId } from "../../identity/keys/run.ts";
import type { SecretHasher } from "../../identity/keys/secret-hasher.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import type { RequestCounts } from "../allocations/book-request-counts.ts";
import { RunEditor } from "./run-editor.ts";
import { RunGate } from "./run-gate.ts";
import { RunReleases } from "./run-releases.ts";
import { RunStore, type RunTables } from "./run-store.ts";

/** Messages between gateways about runs that were changed. */
export interface RunChannel {
  publish(name: string, message: string): void;
  on(name: string, listener: (message: string) => void): void;
}

/** Options of runs. */
export interface RunsOptions {
  database: Kysely<RunTables>;
  commits: Pick<CommitQueue, "flush" | "pendingCount">;
  clock: Clock;
  directory: CredentialDirectory;
  hasher: SecretHasher;
  ledger: LedgerPort;
  /** The channel to other gateways on the database; absent where there are none. */
  channel?: RunChannel | undefined;
  publicUrl(): string;
  onError(error: unknown): void;
}

/** The parts of runs. */
export interface Runs {
  store: RunStore;
  editor: RunEditor;
  gate: RunGate;
  counts: RequestCounts;
  /** Waits for the charges that are being written. */
  flush(): Promise<void>;
  /** Stops the work that goes on between requests. */
  stop(): Promise<void>;
}

const channelName = "runs";

/** Opens runs, and puts those in force that are open. */
export async function openRuns(options: RunsOptions): Promise<Runs> {
  const { directory, ledger, clock, channel, onError } = options;
  const store = new RunStore(options.database);
  const releases: RunReleases = new RunReleases({
    ...options,
    store,
    ownerKeysOf: (run) => editor.ownerKeysOf(run),
    expire: async (id) => {
      const run = await store.find(id);
      if (run !== undefined) await editor.end(run);
    },
  });
  const editor: RunEditor = new RunEditor({
    ...options,
    store,
    releases,
    onChange: ({ id }) => channel?.publish(channelName, id),
  });
  const counts = ledger.requestCounts(
    async (id) => (await store.totals([id])).get(id)?.requests ?? 0,
  );
  const known = await store.loadOpen(clock.nowMs());
  for (const run of known) directory.putRun(run);
  const ending = known.filter((run) => run.endedAtMs !== null && run.releasedAtMs === null);
  if (ending.length > 0) releases.ended(ending).catch(onError);
  releases.watch();
  channel?.on(channelName, (id) => {
    if (!isRunId(id)) return;
    store.find(id).then((run) => run && directory.putRun(run), onError);
  });
  return {
    store,
    editor,
    gate: new RunGate({ ...options, editor, counts }),
    counts,
    flush: async () => {
      if (options.commits.pendingCount > 0) await options.commits.flush();
    },
    stop: () => releases.stop(),
  };
}
