import { brand } from "../../platform/kernel/brand.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { newId } from "../../platform/kernel/ids.ts";
import type { CredentialDirectory } from "../keys/credential-directory.ts";
import type { LlmKeyMinter } from "../keys/llm-key-minter.ts";
import type { ManagementKeyStore } from "../keys/management-key-store.ts";
import { maskSecret, type SecretHasher } from "../keys/secret-hasher.ts";
import type { LlmKeyStore } from "../keys/llm-key-store.ts";
import type { WorkspaceStore, PlanId, Workspace } from "./workspace-store.ts";
import { scopes } from "../keys/scopes.ts";

/** The credentials, credits and plan that automation may set through the environment. */
export interface BootstrapSettings {
  llmKey: string | undefined;
  managementKey: string | undefined;
  /** The name of the management key; `bootstrap` where absent. */
  managementKeyName?: string;
  creditsNanoUsd: bigint | undefined;
  plan: PlanId;
}

/** Books credits, as the ledger does. */
interface CreditBook {
  credit(request: {
    id: string;
    workspaceId: string;
    bucket: "topup";
    amountNano: bigint;
    kind: "topup";
    reference: string;
  }): Promise<void>;
}

/** Dependencies of the first start. */
export interface BootstrapDependencies {
  workspaces: WorkspaceStore;
  llmKeys: LlmKeyStore;
  managementKeys: ManagementKeyStore;
  minter: LlmKeyMinter;
  directory: CredentialDirectory;
  hasher: SecretHasher;
  ledger: CreditBook;
  /** Finds transfers that an earlier start booked. */
  ledgerStore: { transferExists(id: string): Promise<boolean> };
  clock: Clock;
}

/** The person whose keys the first start creates, before the owner account is claimed. */
export const bootstrapUserId = "usr_bootstrap";
const bootstrapTransferId = "txn_bootstrap_credits";

/**
 * Creates the first workspace and what the environment asks for, each only if it is absent. Without
 * a key from the environment, the first start creates one and shows its secret once: `mintFirstKey`
 * is called when nothing between the two can fail any more. An operator who deletes every key is
 * not given another one by the next start.
 */
export async function bootstrap(
  deps: BootstrapDependencies,
  {
    settings,
    existing,
    hasKeys,
  }: { settings: BootstrapSettings; existing: readonly Workspace[]; hasKeys: boolean },
): Promise<{ firstWorkspaceId: string; mintFirstKey: () => Promise<string | undefined> }> {
  const workspace = existing[0] ?? (await createFirstWorkspace(deps, settings.plan));
  if (
    settings.llmKey !== undefined &&
    !(await deps.llmKeys.exists(deps.hasher.hash(settings.llmKey)))
  ) {
    await deps.minter.mint(
      { workspaceId: workspace.id, name: "bootstrap", creatorUserId: bootstrapUserId },
      settings.llmKey,
    );
  }
  if (settings.managementKey !== undefined) {
    await ensureManagementKey(deps, {
      workspace,
      secret: settings.managementKey,
      name: settings.managementKeyName ?? "bootstrap",
    });
  }
  if (settings.creditsNanoUsd !== undefined)
    await ensureCredits(deps, { workspace, amountNano: settings.creditsNanoUsd });
  const wantsFirstKey = settings.llmKey === undefined && !hasKeys;
  return {
    firstWorkspaceId: workspace.id,
    mintFirstKey: async () => {
      if (!wantsFirstKey) return undefined;
      return (
        await deps.minter.mint({
          workspaceId: workspace.id,
          name: "First key",
          creatorUserId: bootstrapUserId,
        })
      ).secret;
    },
  };
}

async function createFirstWorkspace(
  { workspaces, directory, clock }: BootstrapDependencies,
  plan: PlanId,
): Promise<Workspace> {
  const nowMs = clock.nowMs();
  const workspace: Workspace = {
    id: newId("ws", nowMs),
    name: "First workspace",
    plan,
    createdAtMs: nowMs,
  };
  await workspaces.insert(workspace);
  directory.putWorkspace(workspace);
  return workspace;
}

async function ensureManagementKey(
  { directory, hasher, managementKeys, clock }: BootstrapDependencies,
  { workspace, secret, name }: { workspace: Workspace; secret: string; name: string },
): Promise<void> {
  const hash = hasher.hash(secret);
  if (await managementKeys.exists(hash)) return;
  const nowMs = clock.nowMs();
  const key = {
    id: newId("mgk", nowMs),
    hash,
    workspaceId: workspace.id,
    name,
    description: null,
    scopes,
    label: maskSecret(secret, brand.managementKeyFamilyPrefix),
    createdAtMs: nowMs,
    expiresAtMs: null,
    revokedAtMs: null,
    revocationReason: null,
    creatorUserId: null,
  };
  await managementKeys.insert(key);
  directory.putManagementKey(key);
}

async function ensureCredits(
  { ledger, ledgerStore }: BootstrapDependencies,
  { workspace, amountNano }: { workspace: Workspace; amountNano: bigint },
): Promise<void> {
  if (amountNano <= 0n || (await ledgerStore.transferExists(bootstrapTransferId))) return;
  await ledger.credit({
    id: bootstrapTransferId,
    workspaceId: workspace.id,
    bucket: "topup",
    amountNano,
    kind: "topup",
    reference: "bootstrap",
  });
}
