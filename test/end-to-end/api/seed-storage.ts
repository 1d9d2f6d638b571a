import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSecretHasher } from "../../../src/identity/keys/secret-hasher.ts";
import {
  LlmKeyStore,
  type LlmKeyTables,
  type LlmKey,
} from "../../../src/identity/keys/llm-key-store.ts";
import type { ManagementKey } from "../../../src/identity/keys/management-keys.ts";
import {
  ManagementKeyStore,
  type ManagementKeyTables,
} from "../../../src/identity/keys/management-key-store.ts";
import {
  WorkspaceStore,
  type WorkspaceTables,
  type PlanId,
} from "../../../src/identity/workspaces/workspace-store.ts";
import { scopes } from "../../../src/identity/keys/scopes.ts";
import { ledgerAdds, transferInsert } from "../../../src/billing/ledger/transfer.ts";
import { generationInsert } from "../../../src/insights/generation-record.ts";
import { migrations } from "../../../src/platform/storage/migrations/index.ts";
import { openStorage } from "../../../src/platform/storage/open-storage.ts";
import { putMigratedSqlite } from "../../support/migrated-sqlite.ts";
import { plainLlmKey } from "../../support/plain-llm-key.ts";
import { withTables } from "../../../src/platform/storage/with-tables.ts";

type Tables = WorkspaceTables & LlmKeyTables & ManagementKeyTables;

/**
 * What a database holds before a gateway opens it; the first workspace is the one of the bootstrap
 * keys.
 */
export interface Seed {
  workspaces: readonly { id: string; plan?: PlanId }[];
  llmKeys?: readonly ({ secret: string; workspaceId: string } & Partial<LlmKey>)[];
  managementKeys?: readonly ({ secret: string; workspaceId: string } & Partial<ManagementKey>)[];
}

/** Settings for `startGateway` that make it open a seeded database. */
export interface SeededStorage {
  settings: { storageUrl: string; encryptionKey: Uint8Array };
  /** Removes the database's files. */
  remove(): void;
}

/**
 * A database with records that no endpoint can make, such as keys that have expired; of SQLite
 * unless a URL is given.
 */
export async function seedStorage(seed: Seed, url?: string): Promise<SeededStorage> {
  const directory = mkdtempSync(join(tmpdir(), "switchyard-seed-"));
  const storageUrl = url ?? (await putMigratedSqlite(directory));
  const encryptionKey = new Uint8Array(32).fill(9);
  const storage = await openStorage<Tables>({
    url: storageUrl,
    durability: "process",
    migrations,
    commitStatements: {
      inserts: [transferInsert, generationInsert],
      adds: ledgerAdds,
    },
  });
  const hasher = createSecretHasher(encryptionKey);
  const stores = {
    workspaces: new WorkspaceStore(withTables(storage.database)),
    llmKeys: new LlmKeyStore(withTables(storage.database)),
    managementKeys: new ManagementKeyStore(withTables(storage.database)),
  };
  for (const [index, { id, plan = "enterprise" }] of seed.workspaces.entries()) {
    await stores.workspaces.insert({ id, name: id, plan, createdAtMs: index + 1 });
  }
  for (const [index, { secret, ...key }] of (seed.llmKeys ?? []).entries()) {
    await stores.llmKeys.insert({ ...seedLlmKey(index), ...key, hash: hasher.hash(secret) });
  }
  for (const [index, { secret, ...key }] of (seed.managementKeys ?? []).entries()) {
    await stores.managementKeys.insert({
      ...seedManagementKey(index),
      ...key,
      hash: hasher.hash(secret),
    });
  }
  await storage.close();
  return {
    settings: { storageUrl, encryptionKey },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

const seedLlmKey = (index: number): LlmKey =>
  plainLlmKey({
    id: `key_seed_${index}`,
    name: `seed ${index}`,
    label: `sk-svc-v1-seed...${index}`,
    createdAtMs: index + 1,
    creatorUserId: "usr_seed",
  });

const seedManagementKey = (index: number): Omit<ManagementKey, "workspaceId" | "hash"> => ({
  id: `mgk_seed_${index}`,
  name: `seed ${index}`,
  description: null,
  scopes,
  label: `ak_seed...${index}`,
  createdAtMs: index + 1,
  expiresAtMs: null,
  revokedAtMs: null,
  revocationReason: null,
  creatorUserId: null,
});
