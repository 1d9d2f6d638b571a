import { GatewayError } from "../../platform/lib/errors.ts";
import type { ProviderKeyDirectory } from "../byok/provider-key-directory.ts";
import type { ProviderKeyEditor } from "../byok/provider-key-editor.ts";
import type { Clock } from "../../platform/lib/clock.ts";
import type { LlmKeyEditor } from "../keys/llm-key-editor.ts";
import type { LlmKeyStore } from "../keys/llm-key-store.ts";
import type { ManagementKeyEditor } from "../keys/management-key-editor.ts";
import type { ManagementKeyStore } from "../keys/management-key-store.ts";

/** What revoking a workspace's credentials needs. */
export interface CredentialParts {
  llmKeys: LlmKeyStore;
  llmKeyEditor: LlmKeyEditor;
  managementKeys: ManagementKeyStore;
  managementKeyEditor: ManagementKeyEditor;
  providerKeyDirectory: ProviderKeyDirectory;
  providerKeyEditor: ProviderKeyEditor;
  clock: Clock;
}

/** Deletes the LLM keys of a workspace, revokes its management keys and deletes its provider keys; tells how many of each there were. */
export async function revokeCredentials(
  parts: CredentialParts, workspaceId: string,
): Promise<{ llmKeys: number; managementKeys: number; providerKeys: number }> {
  const { llmKeys, llmKeyEditor, managementKeys, managementKeyEditor, providerKeyDirectory, providerKeyEditor, clock } = parts;
  const [own, managing] = await Promise.all([
    llmKeys.list(workspaceId, { includeDisabled: true }), managementKeys.list(workspaceId, { includeInvalid: false, nowMs: clock.nowMs() }),
  ]);
  const provided = [...providerKeyDirectory.keysOf(workspaceId)?.values() ?? []].flat();
  for (const { hash } of own) await unlessGone(llmKeyEditor.remove.bind(llmKeyEditor), { workspaceId, hash });
  for (const { id } of managing) {
    await unlessGone(managementKeyEditor.revoke.bind(managementKeyEditor), { workspaceId, id, reason: "The workspace was closed." });
  }
  for (const { id } of provided) await unlessGone(providerKeyEditor.remove.bind(providerKeyEditor), { workspaceId, id });
  return { llmKeys: own.length, managementKeys: managing.length, providerKeys: provided.length };
}

/** A key goes with the one that made it, and somebody may delete one at the same time. */
async function unlessGone<Reference>(remove: (reference: Reference) => Promise<unknown>, reference: Reference): Promise<void> {
  try {
    await remove(reference);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== "not_found") throw error;
  }
}
