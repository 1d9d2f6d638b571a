import { ClientSecrets } from "../../identity/keys/client-secrets.ts";
import type { Kysely } from "kysely";
import { TeamStore, type TeamTables } from "../../identity/teams/team-store.ts";
import { CredentialDirectory } from "../../identity/keys/credential-directory.ts";
import { CredentialUseWriter } from "../../identity/keys/credential-use-writer.ts";
import {
  CredentialUseStore,
  type CredentialUseTables,
} from "../../identity/keys/credential-use-store.ts";
import { WorkspaceStore, type WorkspaceTables } from "../../identity/workspaces/workspace-store.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { LlmKeyEditor } from "../../identity/keys/llm-key-editor.ts";
import { LlmKeyMinter } from "../../identity/keys/llm-key-minter.ts";
import { createSecretHasher, type SecretHasher } from "../../identity/keys/secret-hasher.ts";
import { LlmKeyStore, type LlmKeyTables } from "../../identity/keys/llm-key-store.ts";
import {
  ManagementKeyStore,
  type ManagementKeyTables,
} from "../../identity/keys/management-key-store.ts";
import { ManagementKeyEditor } from "../../identity/keys/management-key-editor.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

/** Tables of workspaces and their credentials. */
export type KeyTables = WorkspaceTables &
  LlmKeyTables &
  ManagementKeyTables &
  CredentialUseTables &
  Pick<TeamTables, "teams" | "team_members">;

/** The parts that store, look up, create and change the credentials of workspaces. */
export interface Keys {
  hasher: SecretHasher;
  directory: CredentialDirectory;
  workspaces: WorkspaceStore;
  llmKeys: LlmKeyStore;
  llmKeyMinter: LlmKeyMinter;
  llmKeyEditor: LlmKeyEditor;
  managementKeys: ManagementKeyStore;
  managementKeyEditor: ManagementKeyEditor;
  /** Stores when credentials were last used. */
  uses: CredentialUseStore;
  useWriter: CredentialUseWriter;
  teamStore: TeamStore;
}

/** Builds the credential parts. The directory is empty until `loadCredentials` fills it. */
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
  const directory = new CredentialDirectory(hasher, new ClientSecrets(encryptionKey));
  const llmKeys = new LlmKeyStore(withTables(database));
  const managementKeys = new ManagementKeyStore(withTables(database));
  const uses = new CredentialUseStore(withTables(database));
  const teamStore = new TeamStore(withTables(database));
  return {
    hasher,
    directory,
    workspaces: new WorkspaceStore(withTables(database)),
    llmKeys,
    llmKeyMinter: new LlmKeyMinter({
      store: llmKeys,
      directory,
      hasher,
      clock,
      teamsOf: (person) => teamStore.bindingTeams(person),
    }),
    teamStore,
    llmKeyEditor: new LlmKeyEditor({ store: llmKeys, directory, hasher, clock }),
    managementKeys,
    managementKeyEditor: new ManagementKeyEditor({
      store: managementKeys,
      directory,
      hasher,
      clock,
    }),
    uses,
    useWriter: new CredentialUseWriter({ uses: directory.uses, store: uses, onError: onUseError }),
  };
}
