import type { Kysely } from "kysely";
import type { Clock } from "../../platform/lib/clock.ts";
import type { CredentialUses } from "../keys/credential-uses.ts";
import { DataKeyStore, type DataKeyTables } from "./data-key-store.ts";
import { KeyVault } from "./key-vault.ts";
import { createMasterKeys } from "./master-keys.ts";
import { ProviderKeyDirectory } from "./provider-key-directory.ts";
import { ProviderKeyEditor } from "./provider-key-editor.ts";
import { ProviderKeyStore, type ProviderKeyTables } from "./provider-key-store.ts";
import { ProviderKeys } from "./provider-keys.ts";
import { ProviderKeyUsage } from "./provider-key-usage.ts";
import { loadProviderKeyUsage, type ProviderKeyUsageTables } from "./provider-key-usage-store.ts";

/** Everything that provider keys keep in the database. */
export type ByokTables = DataKeyTables & ProviderKeyTables & ProviderKeyUsageTables;

/** 32-byte secrets that the master keys are derived from. */
export interface MasterSecrets {
  current: Uint8Array;
  /** Those that may have wrapped data keys before. */
  previous: readonly Uint8Array[];
}

/** Builds what provider keys need, fills its memory from the database, and wraps anew what an earlier master key has wrapped. */
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
}) {
  const vault = await KeyVault.open({
    store: new DataKeyStore(database.withTables()),
    masterKeys: createMasterKeys(masterSecrets),
    clock,
  });
  const store = new ProviderKeyStore(database.withTables());
  const directory = new ProviderKeyDirectory();
  for (const key of await store.loadAll()) directory.put(key);
  const usage = new ProviderKeyUsage(clock);
  await loadProviderKeyUsage(database.withTables(), usage);
  const editor = new ProviderKeyEditor({ store, directory, vault, clock });
  return {
    providerKeyDirectory: directory,
    providerKeyVault: vault,
    providerKeyEditor: editor,
    providerKeyUsage: usage,
    providerKeys: new ProviderKeys({ directory, usage, vault, editor, uses, clock, onError }),
  };
}
