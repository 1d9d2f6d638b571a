import type { IpAllowlist, IpAllowlistStore } from "../access/ip-allowlist.ts";
import type { BudgetStore } from "../billing/budgets/budget-editor.ts";
import type { BlockingBudgets } from "../billing/budgets/budget.ts";
import type { ProviderKeyStore } from "../byok/provider-key-editor.ts";
import type { ProviderKeyDirectory } from "../byok/provider-keys.ts";
import type { CredentialDirectory } from "../identity/keys/credential-directory.ts";
import type { LlmKeyStore } from "../identity/keys/llm-key-store.ts";
import type { ManagementKeyStore } from "../identity/keys/management-keys.ts";
import type { PresetDirectory, PresetStore } from "../identity/presets/preset-store.ts";
import type { PrivacyDirectory, PrivacyStore } from "../identity/workspaces/privacy.ts";
import type { WorkspaceStore } from "../identity/workspaces/workspace-store.ts";
import { Turns } from "../platform/kernel/keyed-mutex.ts";
import type { KeyVault } from "../platform/vault/key-vault.ts";

/** Everything of workspaces that stands in memory, and where it is read from. */
export interface MemoryParts {
  directory: CredentialDirectory;
  presets: PresetDirectory;
  providerKeys: ProviderKeyDirectory;
  vault: KeyVault;
  allowlist: IpAllowlist;
  privacy: PrivacyDirectory;
  budgets: BlockingBudgets;
  stores: {
    workspaces: WorkspaceStore;
    llmKeys: LlmKeyStore;
    managementKeys: ManagementKeyStore;
    presets: PresetStore;
    providerKeys: ProviderKeyStore;
    allowlist: IpAllowlistStore;
    privacy: PrivacyStore;
    budgets: Pick<BudgetStore, "blocking">;
  };
  nowMs(): number;
}

/** What requests look up of workspaces, as one thing that changes and can be read again. */
export class WorkspaceMemory {
  private readonly parts: MemoryParts;
  private readonly turns = new Turns();
  /** How often each workspace was changed by this process while it is being read. */
  private readonly changesWhileReading = new Map<string, number>();
  private isReplacing = false;

  constructor(parts: MemoryParts) {
    this.parts = parts;
  }

  /** Sends every workspace that this process changes, from now on. */
  onChange(listener: (workspaceId: string) => void): void {
    const { directory, presets, providerKeys, allowlist, privacy, budgets } = this.parts;
    const told = (workspaceId: string): void => {
      if (this.isReplacing) return;
      const changes = this.changesWhileReading.get(workspaceId);
      if (changes !== undefined) this.changesWhileReading.set(workspaceId, changes + 1);
      listener(workspaceId);
    };
    for (const part of [directory, presets, providerKeys, allowlist, budgets]) part.onChange = told;
    privacy.onChange = (ownerId) => told(directory.llmKeyById(ownerId)?.workspaceId ?? ownerId);
  }

  /** Reads a workspace again that another process changed. */
  reload(workspaceId: string): Promise<void> {
    return this.turns.run(workspaceId, async () => {
      // What this process changes meanwhile is newer than what was read.
      for (let before = -1; before !== this.changesWhileReading.get(workspaceId); ) {
        before = 0;
        this.changesWhileReading.set(workspaceId, 0);
        const replace = await this.read(workspaceId);
        if (this.changesWhileReading.get(workspaceId) === 0) this.replace(replace);
      }
      this.changesWhileReading.delete(workspaceId);
    });
  }

  private replace(replace: () => void): void {
    this.isReplacing = true;
    try {
      replace();
    } finally {
      this.isReplacing = false;
    }
  }

  /** Reads everything of a workspace, and gives what puts it in place. */
  private async read(workspaceId: string): Promise<() => void> {
    const { stores, directory, vault, nowMs, ...parts } = this.parts;
    const [workspace, llmKeys, managementKeys, presets, providerKeys, allowed, demands, budgets] =
      await Promise.all([
        stores.workspaces.find(workspaceId),
        stores.llmKeys.list(workspaceId, { includeDisabled: true }),
        stores.managementKeys.list(workspaceId, { includeInvalid: false, nowMs: nowMs() }),
        stores.presets.list(workspaceId),
        stores.providerKeys.list(workspaceId),
        stores.allowlist.list(workspaceId),
        stores.privacy.list(workspaceId),
        stores.budgets.blocking(workspaceId),
      ]);
    if (providerKeys.length > 0) await vault.learn(workspaceId);
    return () => {
      // The newest are read first, and a key has to be there before those that it made.
      if (workspace !== undefined)
        directory.replaceWorkspace(workspace, { llmKeys: llmKeys.toReversed(), managementKeys });
      parts.presets.replaceWorkspace(workspaceId, presets);
      parts.providerKeys.replaceWorkspace(workspaceId, providerKeys);
      parts.allowlist.put(workspaceId, allowed);
      parts.budgets.replaceWorkspace(workspaceId, budgets);
      for (const { ownerId, privacy } of demands) parts.privacy.put(ownerId, privacy);
    };
  }
}
