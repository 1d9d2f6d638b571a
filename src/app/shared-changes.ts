import type { Kysely } from "kysely";
import type { IpAllowlist } from "../access/allowlist/ip-allowlist.ts";
import { IpAllowlistStore } from "../access/allowlist/ip-allowlist-store.ts";
import { BudgetStore } from "../billing/budgets/budget-store.ts";
import { ProviderKeyStore } from "../byok/provider-key-store.ts";
import { PresetStore } from "../identity/presets/preset-store.ts";
import type { PresetDirectory } from "../identity/presets/preset-directory.ts";
import { PrivacyStore } from "../identity/workspaces/privacy-store.ts";
import type { PrivacyDirectory } from "../identity/workspaces/privacy-directory.ts";
import type { TeamStore } from "../identity/teams/team-store.ts";
import type { AliasDirectory } from "../identity/workspaces/alias-directory.ts";
import { AliasStore } from "../identity/workspaces/alias-store.ts";
import { WorkspaceStore } from "../identity/workspaces/workspace-store.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import type { SharedChannel } from "../platform/shared-state/shared-channel.ts";
import type { Account, AccountTables } from "./open-account.ts";
import type { BlockingBudgets } from "../billing/budgets/blocking-budgets.ts";
import type { ProviderKeyDirectory } from "../byok/provider-key-directory.ts";
import type { CredentialDirectory } from "../identity/keys/credential-directory.ts";
import type { LlmKeyStore } from "../identity/keys/llm-key-store.ts";
import type { ManagementKeyStore } from "../identity/keys/management-key-store.ts";
import { KeyedMutex } from "../platform/kernel/keyed-mutex.ts";
import type { KeyVault } from "../platform/vault/key-vault.ts";
import { withTables } from "../platform/storage/with-tables.ts";

/** The data of workspaces that is kept in memory, and its sources. */
interface MemoryParts {
  directory: CredentialDirectory;
  presets: PresetDirectory;
  aliases: AliasDirectory;
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
    aliases: AliasStore;
    providerKeys: ProviderKeyStore;
    allowlist: IpAllowlistStore;
    privacy: PrivacyStore;
    budgets: Pick<BudgetStore, "list">;
    teams: Pick<TeamStore, "list">;
  };
  nowMs(): number;
}

/**
 * The data that requests look up of workspaces, as one unit that reports changes and can be read
 * again.
 */
class WorkspaceMemory {
  private readonly mutex = new KeyedMutex();
  /** The number of changes that this process made to each workspace while it is being read. */
  private readonly changesWhileReading = new Map<string, number>();
  private isReplacing = false;

  constructor(private readonly parts: MemoryParts) {}

  /** Sets the listener for every workspace that this process changes. */
  onChange(listener: (workspaceId: string) => void): void {
    const { directory, presets, aliases, providerKeys, allowlist, privacy, budgets } = this.parts;
    const noteChange = (workspaceId: string): void => {
      if (this.isReplacing) return;
      const changes = this.changesWhileReading.get(workspaceId);
      if (changes !== undefined) this.changesWhileReading.set(workspaceId, changes + 1);
      listener(workspaceId);
    };
    for (const part of [directory, presets, aliases, providerKeys, allowlist, budgets])
      part.onChange = noteChange;
    privacy.onChange = (ownerId) =>
      noteChange(directory.llmKeyById(ownerId)?.workspaceId ?? ownerId);
  }

  /** Reads a workspace again that another process changed. */
  reload(workspaceId: string): Promise<void> {
    return this.mutex.run(workspaceId, async () => {
      // A change by this process during the read is newer than what was read.
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

  /** Reads everything of a workspace, and returns a function that puts it in place. */
  private async read(workspaceId: string): Promise<() => void> {
    const { stores, directory, vault, nowMs, ...parts } = this.parts;
    const [
      workspace,
      llmKeys,
      managementKeys,
      teams,
      presets,
      aliases,
      providerKeys,
      allowed,
      demands,
      budgets,
    ] = await Promise.all([
      stores.workspaces.find(workspaceId),
      stores.llmKeys.list(workspaceId, { includeDisabled: true }),
      stores.managementKeys.list(workspaceId, { includeInvalid: false, nowMs: nowMs() }),
      stores.teams.list(workspaceId),
      stores.presets.list(workspaceId),
      stores.aliases.list(workspaceId),
      stores.providerKeys.list(workspaceId),
      stores.allowlist.list(workspaceId),
      stores.privacy.list(workspaceId),
      stores.budgets.list(workspaceId),
    ]);
    if (providerKeys.length > 0) await vault.learn(workspaceId);
    return () => {
      // The newest keys are read first, but a key has to be present before those that it created.
      if (workspace !== undefined)
        directory.replaceWorkspace(workspace, {
          llmKeys: llmKeys.toReversed(),
          managementKeys,
          teams,
        });
      parts.presets.replaceWorkspace(workspaceId, presets);
      parts.aliases.replaceWorkspace(workspaceId, aliases);
      parts.providerKeys.replaceWorkspace(workspaceId, providerKeys);
      parts.allowlist.put(workspaceId, allowed);
      parts.budgets.replaceWorkspace(workspaceId, budgets);
      for (const { ownerId, privacy } of demands) parts.privacy.put(ownerId, privacy);
    };
  }
}

/** Rows of workspaces that were changed. */
export interface ChangeTables {
  changed_workspaces: { workspace_id: string; at_ms: number };
}

/** Stores when each workspace was last changed, for the gateways that share the database. */
class ChangeStore {
  constructor(private readonly database: Kysely<ChangeTables>) {}

  /** Notes that workspaces were changed at a wall time. */
  async note(workspaceIds: readonly string[], atMs: number): Promise<void> {
    await this.database
      .insertInto("changed_workspaces")
      .values(workspaceIds.map((id) => ({ workspace_id: id, at_ms: atMs })))
      .onConflict((conflict) => conflict.column("workspace_id").doUpdateSet({ at_ms: atMs }))
      .execute();
  }

  /** Returns the workspaces that were changed since a wall time, with the last time of each. */
  async since(atMs: number): Promise<{ workspaceId: string; atMs: number }[]> {
    const rows = await this.database
      .selectFrom("changed_workspaces")
      .selectAll()
      .where("at_ms", ">=", atMs)
      .execute();
    return rows.map((row) => ({ workspaceId: row.workspace_id, atMs: row.at_ms }));
  }
}

const channelName = "changes";

/**
 * Milliseconds between queries for changes while the channel is down, and while it is up, as a
 * safeguard.
 */
const deafPollMs = 500;
const surePollMs = 5_000;

/**
 * Milliseconds by which queries look further back, since clocks differ and a row becomes visible
 * only when its transaction commits.
 */
const overlapMs = 60_000;

/** Options of the shared changes. */
interface SharedChangesOptions {
  memory: Pick<WorkspaceMemory, "onChange" | "reload">;
  store: Pick<ChangeStore, "note" | "since">;
  channel: Pick<SharedChannel, "on" | "publish" | "onListening" | "isListening">;
  clock: Clock;
  /** Called with any failure; the database is queried again. */
  onError(error: unknown): void;
}

/**
 * Makes a workspace's changes on one gateway take effect on all. The gateway that makes a change
 * notes it in the database and announces it; those that receive the announcement read the workspace
 * again. While the channel is down, the database is queried.
 */
export class SharedChanges {
  private readonly startedMs: number;
  /** Changes that were made here and not announced yet. */
  private readonly untold = new Set<string>();
  /** The time of the last change of each workspace that is in force here. */
  private readonly inForceMs = new Map<string, number>();
  private telling: Promise<void> | undefined;
  private asking: Promise<void> | undefined;
  private lastAskedMs = 0;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly options: SharedChangesOptions) {
    this.startedMs = options.clock.nowMs();
  }

  start(): void {
    const { memory, channel } = this.options;
    memory.onChange((workspaceId) => {
      this.untold.add(workspaceId);
      this.telling ??= this.tell().finally(() => (this.telling = undefined));
    });
    channel.on(channelName, (message) => this.quietly(this.hear(message)));
    channel.onListening(() => this.ask());
    this.timer = setInterval(() => this.askInTime(), deafPollMs);
  }

  /** Stops, after this gateway's changes were sent. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await Promise.all([this.telling, this.asking]);
  }

  private async tell(): Promise<void> {
    const { store, channel, clock } = this.options;
    // Waits for the current task, so that changes that belong together are sent together.
    await Promise.resolve();
    while (this.untold.size > 0) {
      const workspaceIds = [...this.untold];
      this.untold.clear();
      const atMs = clock.nowMs();
      try {
        await store.note(workspaceIds, atMs);
        for (const id of workspaceIds) this.inForceMs.set(id, atMs);
      } catch (error) {
        this.options.onError(error);
      }
      channel.publish(channelName, `${atMs} ${workspaceIds.join(" ")}`);
    }
  }

  private async hear(message: string): Promise<void> {
    const [atMs = "", ...workspaceIds] = message.split(" ");
    await Promise.all(workspaceIds.map((id) => this.bringInForce(id, Number(atMs))));
  }

  private async bringInForce(workspaceId: string, atMs: number): Promise<void> {
    await this.options.memory.reload(workspaceId);
    this.inForceMs.set(workspaceId, Math.max(atMs, this.inForceMs.get(workspaceId) ?? 0));
  }

  private askInTime(): void {
    const { channel, clock } = this.options;
    if (!channel.isListening || clock.monotonicMs() - this.lastAskedMs >= surePollMs) this.ask();
  }

  private ask(): void {
    this.lastAskedMs = this.options.clock.monotonicMs();
    this.asking ??= this.catchUp()
      .catch((error: unknown) => this.options.onError(error))
      .finally(() => (this.asking = undefined));
  }

  private async catchUp(): Promise<void> {
    const { store } = this.options;
    const newestMs = Math.max(this.startedMs, ...this.inForceMs.values());
    for (const { workspaceId, atMs } of await store.since(newestMs - overlapMs)) {
      if ((this.inForceMs.get(workspaceId) ?? 0) < atMs) await this.bringInForce(workspaceId, atMs);
    }
  }

  private quietly(work: Promise<void>): void {
    work.catch((error: unknown) => this.options.onError(error));
  }
}

/** Starts to share changes of the account plane between all gateways on the database. */
export function openSharedChanges(
  account: Pick<
    Account,
    | "directory"
    | "presets"
    | "aliases"
    | "providerKeyDirectory"
    | "providerKeyVault"
    | "security"
    | "llmKeys"
    | "managementKeys"
    | "blockingBudgets"
    | "teamStore"
  >,
  {
    database,
    channel,
    clock,
    onError,
  }: {
    database: Kysely<AccountTables & ChangeTables>;
    channel: SharedChannel;
    clock: Clock;
    onError(error: unknown): void;
  },
): SharedChanges {
  const {
    directory,
    presets,
    aliases,
    providerKeyDirectory,
    providerKeyVault,
    security,
    llmKeys,
    managementKeys,
  } = account;
  const memory = new WorkspaceMemory({
    directory,
    presets,
    aliases,
    providerKeys: providerKeyDirectory,
    vault: providerKeyVault,
    allowlist: security.allowlist,
    privacy: security.privacy,
    budgets: account.blockingBudgets,
    stores: {
      workspaces: new WorkspaceStore(withTables(database)),
      llmKeys,
      managementKeys,
      presets: new PresetStore(withTables(database)),
      aliases: new AliasStore(withTables(database)),
      providerKeys: new ProviderKeyStore(withTables(database)),
      allowlist: new IpAllowlistStore(withTables(database)),
      privacy: new PrivacyStore(withTables(database)),
      budgets: new BudgetStore(withTables(database)),
      teams: account.teamStore,
    },
    nowMs: () => clock.nowMs(),
  });
  const changes = new SharedChanges({
    channel,
    clock,
    onError,
    memory,
    store: new ChangeStore(withTables(database)),
  });
  changes.start();
  return changes;
}
