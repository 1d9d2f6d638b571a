import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { MemoryCommits } from "../../../test/support/memory-commits.ts";
import { putMigratedSqlite } from "../../../test/support/migrated-sqlite.ts";
import { plainLlmKey } from "../../../test/support/plain-llm-key.ts";
import { type LlmKeyCaller, spendingKeyOf } from "../../identity/keys/caller.ts";
import { CredentialDirectory } from "../../identity/keys/credential-directory.ts";
import type { Run } from "../../identity/keys/run.ts";
import { createSecretHasher } from "../../identity/keys/secret-hasher.ts";
import { migrations } from "../../platform/storage/migrations/index.ts";
import { openStorage } from "../../platform/storage/open-storage.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import { AccountBook } from "../ledger/book/account-book.ts";
import { Ledger } from "../ledger/ledger.ts";
import { type NewRun, RunEditor } from "./run-editor.ts";
import { RunReleases } from "./run-releases.ts";
import { RunStore, type RunTables } from "./run-store.ts";

const workspaceId = "ws_1";
const root = mkdtempSync(join(tmpdir(), "switchyard-run-limits-"));
let storage: Storage<RunTables>;
beforeAll(async () => {
  const commitStatements = { inserts: [], adds: [] };
  const url = await putMigratedSqlite(root);
  storage = await openStorage({ url, durability: "process", migrations, commitStatements });
}, 60_000);
afterAll(async () => {
  await storage.close();
  rmSync(root, { recursive: true, force: true });
});

/** A store that does `meanwhile` once, right before it writes a change or the end of a run. */
class BusyStore extends RunStore {
  meanwhile: () => unknown = () => undefined;

  private async work(): Promise<void> {
    const { meanwhile } = this;
    this.meanwhile = () => undefined;
    await meanwhile();
  }

  override async change(...change: Parameters<RunStore["change"]>): Promise<Run | undefined> {
    await this.work();
    return super.change(...change);
  }

  override async end(...run: Parameters<RunStore["end"]>): Promise<Run[]> {
    const ended = await super.end(...run);
    await this.work();
    return ended;
  }
}

let count = 0;

/** Opens a run with a limit of 10, of a key with the same limit. */
async function start() {
  const clock = new FakeClock();
  const book = new AccountBook();
  const commits = new MemoryCommits();
  const ledger = new Ledger({ book, commits, clock });
  const hasher = createSecretHasher(new Uint8Array(32));
  const directory = new CredentialDirectory(hasher);
  const store = new BusyStore(withTables(storage.database));
  const key = plainLlmKey({ id: `key_${(count += 1)}`, hash: `${count}`, limitNanoUsd: 10n });
  const workspace = { id: workspaceId, name: "", plan: "enterprise", createdAtMs: 0 } as const;
  directory.putWorkspace(workspace);
  directory.putLlmKey(key);
  book.workspace(workspaceId).topupNano = 1_000n;
  const common = { store, directory, ledger, clock };
  const releases: RunReleases = new RunReleases({
    ...common,
    commits,
    ownerKeysOf: (run) => editor.ownerKeysOf(run),
    expire: () => Promise.resolve(),
    onError: (error) => {
      throw error;
    },
  });
  const editor: RunEditor = new RunEditor({
    ...common,
    hasher,
    releases,
    onChange: () => undefined,
  });
  const wanted: NewRun = {
    name: "nightly",
    limitNano: 10n,
    maxRequests: null,
    maxDepth: undefined,
    expiresInMs: undefined,
  };
  const { run } = await editor.open({ kind: "llm-key", key, workspace }, wanted);
  const caller = directory.runCaller(run.id) as LlmKeyCaller;
  /** Takes a hold for a request of the run, or of its key. */
  const reserve = (
    ceilingNano: bigint,
    of: Pick<LlmKeyCaller, "key"> = caller,
    holdId = `gen_${(count += 1)}`,
  ) => ({
    holdId,
    ...ledger.reserve({ ...spendingKeyOf(of.key), holdId, workspaceId, ceilingNano }),
  });
  return { book, editor, ledger, store, key, run, caller, wanted, reserve };
}

test("a request that is under way holds no more than the lower limit of its run", async () => {
  const { editor, ledger, run, key, reserve } = await start();
  const { holdId } = reserve(1n);
  await editor.setLimit(run, 2n);
  expect(ledger.grow(holdId, 10n)).toBe(2n);
  // The key has what the run lost, and no more.
  expect(reserve(10n, { key })).toMatchObject({ ok: true, heldNano: 8n });
});

test("a request that comes while the limit of its run is lowered takes nothing of what is lost", async () => {
  const { editor, store, run, reserve } = await start();
  store.meanwhile = () => expect(reserve(10n)).toMatchObject({ ok: true, heldNano: 2n });
  expect((await editor.setLimit(run, 2n)).limitNano).toBe(2n);
  expect(reserve(1n)).toMatchObject({ ok: false, reason: "key_limit" });
  const below = await editor.setLimit(run, 1n).catch((error: unknown) => error);
  expect(below).toMatchObject({ code: "conflict", param: "limit" });
});

test("a run that is opened while the run around it ends, ends with it", async () => {
  const { book, editor, store, run, key, caller, wanted } = await start();
  let opening: Promise<unknown> = Promise.resolve();
  store.meanwhile = () => {
    opening = editor.open(caller, { ...wanted, limitNano: 5n }).catch((error: unknown) => error);
    return opening;
  };
  await editor.end(run);
  expect(await opening).toMatchObject({ code: "conflict" });
  const runs = await store.list({ workspaceId, rootId: key.id, limit: 9 });
  expect(runs.map(({ endedAtMs }) => endedAtMs === null)).toEqual([false, false]);
  // Nothing of the key's limit stays set aside.
  expect(book.key(key.id).allocatedNano).toBe(0n);
});
