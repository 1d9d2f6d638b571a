import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { CredentialDirectory } from "../keys/credential-directory.ts";
import type { LlmKeyEditor } from "../keys/llm-key-editor.ts";
import { managementKeyStatus, type ManagementKey } from "../keys/management-keys.ts";
import type { ManagementKeyStore } from "../keys/management-key-store.ts";
import type { ManagementKeyEditor } from "../keys/management-key-editor.ts";
import type { LlmKey, LlmKeyStore } from "../keys/llm-key-store.ts";

/** The part of provider keys that closing a workspace uses. */
interface ProviderKeyParts {
  providerKeyDirectory: {
    keysOf(workspaceId: string): ReadonlyMap<string, readonly { id: string }[]> | undefined;
  };
  providerKeyEditor: {
    remove(reference: { workspaceId: string; id: string }): Promise<unknown>;
  };
}

/** Dependencies of revoking a workspace's credentials. */
export interface CredentialParts extends ProviderKeyParts {
  llmKeys: LlmKeyStore;
  llmKeyEditor: LlmKeyEditor;
  managementKeys: ManagementKeyStore;
  managementKeyEditor: ManagementKeyEditor;
  clock: Clock;
}

/**
 * Deletes the LLM keys of a workspace, revokes its management keys and deletes its provider keys;
 * returns how many of each there were.
 */
export async function revokeCredentials(
  parts: CredentialParts,
  workspaceId: string,
): Promise<{ llmKeys: number; managementKeys: number; providerKeys: number }> {
  const {
    llmKeys,
    llmKeyEditor,
    managementKeys,
    managementKeyEditor,
    providerKeyDirectory,
    providerKeyEditor,
    clock,
  } = parts;
  const [own, managing] = await Promise.all([
    llmKeys.list(workspaceId, { includeDisabled: true }),
    managementKeys.list(workspaceId, { includeInvalid: false, nowMs: clock.nowMs() }),
  ]);
  const provided = [...(providerKeyDirectory.keysOf(workspaceId)?.values() ?? [])].flat();
  for (const { hash } of own)
    await unlessGone(llmKeyEditor.remove.bind(llmKeyEditor), { workspaceId, hash });
  for (const { id } of managing) {
    await unlessGone(managementKeyEditor.revoke.bind(managementKeyEditor), {
      workspaceId,
      id,
      reason: "The workspace was closed.",
    });
  }
  for (const { id } of provided)
    await unlessGone(providerKeyEditor.remove.bind(providerKeyEditor), { workspaceId, id });
  return { llmKeys: own.length, managementKeys: managing.length, providerKeys: provided.length };
}

/** The keys of a person that are revoked when the person leaves an organisation. */
export const revokedKinds = ["management", "all", "none"] as const;

/** One of `revokedKinds`. */
export type RevokedKind = (typeof revokedKinds)[number];

/** Keys that one person created in one workspace. */
export interface MadeKeys {
  llmKeys: LlmKey[];
  managementKeys: ManagementKey[];
}

/** What finding and revoking the keys that a person made needs. */
export type MadeKeyParts = Pick<
  CredentialParts,
  "llmKeys" | "llmKeyEditor" | "managementKeys" | "managementKeyEditor" | "clock"
> & {
  directory: CredentialDirectory;
};

/**
 * Returns the keys in force that a person created in a workspace, by hand or with a management key
 * of their own; with `includeDisabled` also LLM keys that may be enabled again.
 */
export async function keysMadeBy(
  { llmKeys, managementKeys, directory, clock }: MadeKeyParts,
  {
    workspaceId,
    userId,
    includeDisabled = false,
  }: { workspaceId: string; userId: string; includeDisabled?: boolean },
): Promise<MadeKeys> {
  const nowMs = clock.nowMs();
  const [all, managing] = await Promise.all([
    llmKeys.list(workspaceId, { includeDisabled }),
    managementKeys.list(workspaceId, { includeInvalid: true, nowMs }),
  ]);
  const own = managing.filter(({ creatorUserId }) => creatorUserId === userId);
  const makers = new Set([userId, ...own.map(({ id }) => id)]);
  return {
    llmKeys: all.filter(
      ({ id, creatorUserId, disabled }) =>
        makers.has(creatorUserId) && (disabled || directory.liveLlmKey(id, nowMs) !== undefined),
    ),
    managementKeys: own.filter((key) => managementKeyStatus(key, nowMs) === "active"),
  };
}

/**
 * Revokes keys of a person who leaves a workspace; returns what was revoked and what is still in
 * force.
 */
export async function revokeKeysMadeBy(
  parts: MadeKeyParts,
  { which, ...place }: { workspaceId: string; userId: string; which: RevokedKind },
): Promise<{ revoked: MadeKeys; left: MadeKeys }> {
  const made = await keysMadeBy(parts, { ...place, includeDisabled: which === "all" });
  const revoked: MadeKeys = {
    managementKeys: which === "none" ? [] : made.managementKeys,
    llmKeys: which === "all" ? made.llmKeys : [],
  };
  const { workspaceId } = place;
  for (const { id } of revoked.managementKeys) {
    const reason = "The person who made it left the organisation.";
    await unlessGone(parts.managementKeyEditor.revoke.bind(parts.managementKeyEditor), {
      workspaceId,
      id,
      reason,
    });
  }
  for (const { hash } of revoked.llmKeys)
    await unlessGone(parts.llmKeyEditor.remove.bind(parts.llmKeyEditor), { workspaceId, hash });
  return { revoked, left: await keysMadeBy(parts, place) };
}

/**
 * Ignores `not_found`: a key may be deleted with the key that created it, or by another request.
 */
async function unlessGone<Reference>(
  remove: (reference: Reference) => Promise<unknown>,
  reference: Reference,
): Promise<void> {
  try {
    await remove(reference);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== "not_found") throw error;
  }
}
