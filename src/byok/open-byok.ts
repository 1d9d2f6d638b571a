import type { Kysely } from "kysely";
import type { CredentialUses } from "../identity/keys/credential-uses.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import { createMasterKeys, KeyVault } from "../platform/vault/key-vault.ts";
import { DataKeyStore, type DataKeyTables } from "../platform/vault/data-key-store.ts";
import { ProviderKeyEditor } from "./provider-key-editor.ts";
import { ProviderKeyStore, type ProviderKeyTables } from "./provider-key-store.ts";
import {
  loadProviderKeyUsage,
  ProviderKeyUsage,
  type ProviderKeyUsageTables,
} from "./provider-key-usage.ts";
import { ProviderKeys } from "./provider-keys.ts";
import { ProviderKeyDirectory } from "./provider-key-directory.ts";
import { withTables } from "../platform/storage/with-tables.ts";

/** All database tables of provider keys. */
export type ByokTables = DataKeyTables & ProviderKeyTables & ProviderKeyUsageTables;

/** 32-byte secrets that the master keys are derived from. */
export interface MasterSecrets {
  current: Uint8Array;
  /** Earlier secrets, which may have wrapped data keys. */
  previous: readonly Uint8Array[];
}

/** The parts that manage and use provider keys. */
export interface Byok {
  providerKeys: ProviderKeys;
  providerKeyDirectory: ProviderKeyDirectory;
  providerKeyEditor: ProviderKeyEditor;
  providerKeyUsage: ProviderKeyUsage;
  providerKeyVault: KeyVault;
}

/**
 * Builds the provider key parts, loads them from the database, and wraps data keys of an earlier
 * master key again.
 */
export async function openByok({
  database,
  clock,
  uses,
  masterSecrets,
  onError,
}: {
  database: Kysely<ByokTables>;
  clock: Clock;
  uses: CredentialUses;
  masterSecrets: MasterSecrets;
  onError(error: unknown): void;
}): Promise<Byok> {
  const vault = await KeyVault.open({
    store: new DataKeyStore(withTables(database)),
    masterKeys: createMasterKeys(masterSecrets),
    clock,
  });
  const store = new ProviderKeyStore(withTables(database));
  const directory = new ProviderKeyDirectory();
  for (const key of await store.loadAll()) directory.put(key);
  const usage = new ProviderKeyUsage(clock);
  await loadProviderKeyUsage(withTables(database), usage);
  const editor = new ProviderKeyEditor({ store, directory, vault, clock });
  return {
    providerKeyDirectory: directory,
    providerKeyVault: vault,
    providerKeyEditor: editor,
    providerKeyUsage: usage,
    providerKeys: new ProviderKeys({ directory, usage, vault, editor, uses, clock, onError }),
  };
}
