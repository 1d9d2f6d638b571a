import { brand } from "../../platform/lib/brand.ts";
import type { Workspace } from "../workspaces/workspace.ts";
import type { Credential } from "./caller.ts";
import type { LlmKey } from "./llm-key.ts";
import type { ManagementKey } from "./management-key.ts";
import type { SecretHasher } from "./secret-hasher.ts";

/**
 * Every live credential in memory, by the hash of its secret: authenticating a request costs one
 * keyed hash and one look-up, and never the database. A change replaces the record as a whole.
 */
export class CredentialDirectory {
  private readonly hasher: SecretHasher;
  private readonly workspaces = new Map<string, Workspace>();
  private readonly byHash = new Map<string, Credential>();
  private readonly hashById = new Map<string, string>();

  constructor(hasher: SecretHasher) {
    this.hasher = hasher;
  }

  /** The credential that a secret belongs to, whatever its state; undefined when nobody has it. */
  find(secret: string): Credential | undefined {
    if (!secret.startsWith(brand.llmKeyFamilyPrefix) && !secret.startsWith(brand.managementKeyFamilyPrefix)) {
      return undefined;
    }
    return this.byHash.get(this.hasher.hash(secret));
  }

  putWorkspace(workspace: Workspace): void {
    this.workspaces.set(workspace.id, workspace);
    for (const [hash, credential] of this.byHash) {
      if (credential.workspace.id === workspace.id) this.byHash.set(hash, { ...credential, workspace });
    }
  }

  workspace(id: string): Workspace | undefined {
    return this.workspaces.get(id);
  }

  putLlmKey(key: LlmKey): void {
    const workspace = this.workspaces.get(key.workspaceId);
    if (workspace !== undefined) this.replace(key.id, key.hash, { kind: "llm-key", key, workspace });
  }

  putManagementKey(key: ManagementKey): void {
    const workspace = this.workspaces.get(key.workspaceId);
    if (workspace !== undefined) this.replace(key.id, key.hash, { kind: "management-key", key, workspace });
  }

  /** Forgets a credential; its next request is refused. */
  remove(id: string): void {
    const hash = this.hashById.get(id);
    if (hash !== undefined) this.byHash.delete(hash);
    this.hashById.delete(id);
  }

  private replace(id: string, hash: string, credential: Credential): void {
    this.remove(id);
    this.hashById.set(id, hash);
    this.byHash.set(hash, credential);
  }
}
