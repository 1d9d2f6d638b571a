import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import { WorkspaceStore, type WorkspaceTables } from "../workspaces/workspace-store.ts";
import {
  CredentialDirectory,
  CredentialUseStore,
  type CredentialUseTables,
  CredentialUseWriter,
} from "./credential-directory.ts";
import { LlmKeyEditor, LlmKeyMinter } from "./llm-key-editor.ts";
import { createSecretHasher, type SecretHasher } from "./secret-hasher.ts";
import { LlmKeyStore, type LlmKeyTables } from "./llm-key-store.ts";
import {
  ManagementKeyEditor,
  ManagementKeyStore,
  type ManagementKeyTables,
} from "./management-keys.ts";

/** Tables of workspaces and of their credentials. */
export type KeyTables = WorkspaceTables & LlmKeyTables & ManagementKeyTables & CredentialUseTables;

/** The credentials of workspaces: where they are kept and looked up, made and changed. */
export interface Keys {
  hasher: SecretHasher;
  directory: CredentialDirectory;
  workspaces: WorkspaceStore;
  llmKeys: LlmKeyStore;
  llmKeyMinter: LlmKeyMinter;
  llmKeyEditor: LlmKeyEditor;
  managementKeys: ManagementKeyStore;
  managementKeyEditor: ManagementKeyEditor;
  /** When credentials were last used. */
  uses: CredentialUseStore;
  useWriter: CredentialUseWriter;
}

/** Builds the credentials; `loadCredentials` fills the directory, which is empty before. */
export function openKeys({
  database,
  clock,
  encryptionKey,
  onUseError,
}: {
  database: Kysely<KeyTables>;
  clock: Clock;
  encryptionKey: Uint8Array;
  /** Called when last uses could not be written; they are tried again. */
  onUseError(error: unknown): void;
}): Keys {
  const hasher = createSecretHasher(encryptionKey);
  const directory = new CredentialDirectory(hasher);
  const llmKeys = new LlmKeyStore(database.withTables());
  const managementKeys = new ManagementKeyStore(database.withTables());
  const uses = new CredentialUseStore(database.withTables());
  const parts = { directory, hasher, clock };
  return {
    hasher,
    directory,
    workspaces: new WorkspaceStore(database.withTables()),
    llmKeys,
    llmKeyMinter: new LlmKeyMinter({ store: llmKeys, ...parts }),
    llmKeyEditor: new LlmKeyEditor({ store: llmKeys, ...parts }),
    managementKeys,
    managementKeyEditor: new ManagementKeyEditor({ store: managementKeys, ...parts }),
    uses,
    useWriter: new CredentialUseWriter({ uses: directory.uses, store: uses, onError: onUseError }),
  };
}
