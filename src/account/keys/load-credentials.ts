import type { Workspace } from "../workspaces/workspace.ts";
import type { WorkspaceStore } from "../workspaces/workspace-store.ts";
import type { CredentialDirectory } from "./credential-directory.ts";
import type { CredentialUseStore } from "./credential-use-store.ts";
import type { LlmKeyStore } from "./llm-key-store.ts";
import type { ManagementKeyStore } from "./management-key-store.ts";

/** Fills the directory from the database; tells the workspaces and whether any LLM key was ever made. */
export async function loadCredentials(
  directory: CredentialDirectory,
  stores: {
    workspaces: WorkspaceStore;
    llmKeys: LlmKeyStore;
    managementKeys: ManagementKeyStore;
    uses: CredentialUseStore;
  },
): Promise<{ workspaces: Workspace[]; hasKeys: boolean }> {
  const [workspaces, llmKeys, managementKeys, uses, hasKeys] = await Promise.all([
    stores.workspaces.loadAll(),
    stores.llmKeys.loadAll(),
    stores.managementKeys.loadAll(),
    stores.uses.loadAll(),
    stores.llmKeys.wereAnyMade(),
  ]);
  for (const workspace of workspaces) directory.putWorkspace(workspace);
  for (const key of llmKeys) directory.putLlmKey(key);
  for (const key of managementKeys) directory.putManagementKey(key);
  for (const { id, atMs } of uses) directory.uses.restore(id, atMs);
  return { workspaces, hasKeys };
}
