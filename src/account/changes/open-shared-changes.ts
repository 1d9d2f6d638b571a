import type { Kysely } from "kysely";
import type { Clock } from "../../platform/lib/clock.ts";
import type { SharedChannel } from "../../platform/shared-state/shared-channel.ts";
import { BudgetStore } from "../budgets/budget-store.ts";
import { ProviderKeyStore } from "../byok/provider-key-store.ts";
import type { Account, AccountTables } from "../open-account.ts";
import { PresetStore } from "../presets/preset-store.ts";
import { IpAllowlistStore } from "../security/ip-allowlist-store.ts";
import { PrivacyStore } from "../security/privacy-store.ts";
import { WorkspaceStore } from "../workspaces/workspace-store.ts";
import { ChangeStore, type ChangeTables } from "./change-store.ts";
import { SharedChanges } from "./shared-changes.ts";
import { WorkspaceMemory } from "./workspace-memory.ts";

/** Lets changes of the account plane be in force in every gateway on the database, from now on. */
export function openSharedChanges(
  account: Pick<
    Account,
    | "directory"
    | "presets"
    | "providerKeyDirectory"
    | "providerKeyVault"
    | "security"
    | "llmKeys"
    | "managementKeys"
    | "blockingBudgets"
  >,
  {
    database,
    ...parts
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
    providerKeyDirectory,
    providerKeyVault,
    security,
    llmKeys,
    managementKeys,
  } = account;
  const memory = new WorkspaceMemory({
    directory,
    presets,
    providerKeys: providerKeyDirectory,
    vault: providerKeyVault,
    allowlist: security.allowlist,
    privacy: security.privacy,
    budgets: account.blockingBudgets,
    stores: {
      workspaces: new WorkspaceStore(database.withTables()),
      llmKeys,
      managementKeys,
      presets: new PresetStore(database.withTables()),
      providerKeys: new ProviderKeyStore(database.withTables()),
      allowlist: new IpAllowlistStore(database.withTables()),
      privacy: new PrivacyStore(database.withTables()),
      budgets: new BudgetStore(database.withTables()),
    },
    nowMs: () => parts.clock.nowMs(),
  });
  const changes = new SharedChanges({
    ...parts,
    memory,
    store: new ChangeStore(database.withTables()),
  });
  changes.start();
  return changes;
}
