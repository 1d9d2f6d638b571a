import { brand } from "../../platform/kernel/brand.ts";
import type { WorkspaceStore, Workspace } from "../workspaces/workspace-store.ts";
import type { Team, TeamStore } from "../teams/team-store.ts";
import { type Credential, isLive, keysOf, type LlmKeyCaller, teamOfKey } from "./caller.ts";
import { type ClientSecrets, clientSecretPrefix } from "./client-secrets.ts";
import type { SecretHasher } from "./secret-hasher.ts";
import type { LlmKeyStore, LlmKey } from "./llm-key-store.ts";
import { keyOfRun, type Run } from "./run.ts";
import { CredentialUses } from "./credential-uses.ts";
import type { CredentialUseStore } from "./credential-use-store.ts";
import type { ManagementKey } from "./management-keys.ts";
import type { ManagementKeyStore } from "./management-key-store.ts";

const noModels: Pick<Team, "allowedModels"> = { allowedModels: [] };

/**
 * All live credentials in memory, by the hash of their secret. Authenticating a request costs one
 * keyed hash and one lookup, and never a query. A change replaces the whole record.
 */
export class CredentialDirectory {
  /** The times of their last uses. */
  readonly uses = new CredentialUses();
  /** Called with the workspace whose records changed. */
  onChange: (workspaceId: string) => void = () => undefined;
  private readonly workspaces = new Map<string, Workspace>();
  private readonly byHash = new Map<string, Credential>();
  private readonly hashById = new Map<string, string>();
  /** Hashes of secrets from before the last rotation that are still accepted. */
  private readonly previousHashById = new Map<string, string>();
  /** Ids of the keys that each key created. */
  private readonly childIds = new Map<string, Set<string>>();
  /** Ids of the runs that began with each key. */
  private readonly runIds = new Map<string, Set<string>>();
  /** Ids of the runs that requests join, by the id of the owner and the name. */
  private readonly joinedRunIds = new Map<string, string>();
  private readonly teams = new Map<string, Team>();

  /** Secrets for browsers; absent where none are made. */
  readonly clientSecrets: ClientSecrets | undefined;

  constructor(
    private readonly hasher: SecretHasher,
    clientSecrets?: ClientSecrets,
  ) {
    this.clientSecrets = clientSecrets;
  }

  /** Returns the credential of a secret, in any state; undefined when there is none. */
  find(secret: string): Credential | undefined {
    if (secret.startsWith(clientSecretPrefix)) return this.findByClientSecret(secret);
    if (
      !secret.startsWith(brand.llmKeyFamilyPrefix) &&
      !secret.startsWith(brand.managementKeyFamilyPrefix)
    ) {
      return undefined;
    }
    return this.byHash.get(this.hasher.hash(secret));
  }

  /**
   * Returns the key that made a client secret, narrowed to what the secret is good for: realtime
   * sessions of one model, until it ends.
   */
  private findByClientSecret(secret: string): Credential | undefined {
    const opened = this.clientSecrets?.open(secret);
    const found = opened && this.byHash.get(this.hashById.get(opened.keyId) ?? "");
    if (opened === undefined || found?.kind !== "llm-key") return undefined;
    const expiresAtMs = Math.min(found.key.expiresAtMs ?? Infinity, opened.expiresAtMs);
    const { model } = opened;
    const models = [model, ...(opened.transcription === undefined ? [] : [opened.transcription])];
    const allowed = {
      allowedEndpoints: ["/realtime", "/realtime/translations"],
      allowedModels: models.map((each) => each.toLowerCase()),
    };
    return { ...found, key: { ...found.key, ...allowed, expiresAtMs } };
  }

  /**
   * Returns the LLM key with this record id while it may be used: not revoked, disabled or expired.
   */
  liveLlmKey(id: string, nowMs: number): LlmKeyCaller | undefined {
    const credential = this.byHash.get(this.hashById.get(id) ?? "");
    return credential?.kind === "llm-key" && isLive(credential, nowMs) ? credential : undefined;
  }

  /**
   * Returns the LLM key with this stored hash, in any state; undefined when there is none or it was
   * deleted.
   */
  llmKeyByHash(hash: string): LlmKey | undefined {
    const credential = this.byHash.get(hash);
    // The hash of a secret from before the last rotation finds its key, but no longer names it.
    return credential?.kind === "llm-key" && credential.key.hash === hash
      ? (credential.own ?? credential.key)
      : undefined;
  }

  /**
   * Returns the LLM key with this record id, in any state; undefined when there is none or it was
   * deleted.
   */
  llmKeyById(id: string): LlmKey | undefined {
    return this.llmKeyByHash(this.hashById.get(id) ?? "");
  }

  /** Returns the management key with this record id, unless it was revoked. */
  managementKeyById(id: string): ManagementKey | undefined {
    const credential = this.byHash.get(this.hashById.get(id) ?? "");
    return credential?.kind === "management-key" ? credential.key : undefined;
  }

  putWorkspace(workspace: Workspace): void {
    this.onChange(workspace.id);
    this.workspaces.set(workspace.id, workspace);
    for (const [hash, credential] of this.byHash) {
      if (credential.workspace.id === workspace.id)
        this.byHash.set(hash, { ...credential, workspace });
    }
  }

  /** Returns every workspace, including those without keys. */
  allWorkspaces(): Workspace[] {
    return [...this.workspaces.values()];
  }

  workspace(id: string): Workspace | undefined {
    return this.workspaces.get(id);
  }

  putLlmKey(key: LlmKey): void {
    const workspace = this.workspaces.get(key.workspaceId);
    if (workspace === undefined) return;
    this.onChange(workspace.id);
    const { parentKeyId } = key;
    if (parentKeyId === undefined)
      this.replace(key.id, key.hash, this.narrowed({ kind: "llm-key", key, workspace }));
    else {
      const parent = this.llmKeyById(parentKeyId);
      // A child whose parent was deleted is dead, even if its own row says otherwise.
      if (parent === undefined) return;
      this.replace(key.id, key.hash, this.narrowed({ kind: "llm-key", key, workspace, parent }));
      this.childIds.set(parentKeyId, (this.childIds.get(parentKeyId) ?? new Set()).add(key.id));
    }
    for (const child of this.childrenOf(key.id)) this.putLlmKey(child);
    for (const runId of this.runIds.get(key.id) ?? []) {
      const run = this.runCaller(runId)?.run;
      if (run !== undefined) this.putRun(run);
    }
  }

  /**
   * Puts the key of a run in force. One whose first key was deleted is removed. Other gateways are
   * not notified, since they read runs as they need them.
   */
  putRun(run: Run): void {
    const workspace = this.workspaces.get(run.workspaceId);
    const parent = this.llmKeyById(run.rootId);
    if (workspace === undefined || (parent === undefined && run.rootId !== run.workspaceId))
      return this.forget(run.id);
    const grandparent = this.llmKeyById(parent?.parentKeyId ?? "");
    const key = keyOfRun(run, parent, grandparent);
    // Requests that are under way have the limit that was put before: it changes for them as well.
    const limit = Object.assign(this.runCaller(run.id)?.key.presentLimit ?? {}, key.presentLimit);
    const caller = this.narrowed({
      kind: "llm-key",
      key: { ...key, presentLimit: limit },
      workspace,
      run,
      ...(parent !== undefined && { parent }),
      ...(grandparent !== undefined && { grandparent }),
    });
    this.replace(run.id, run.hash, caller);
    const runIds = this.runIds.get(run.rootId) ?? new Set<string>();
    this.runIds.set(run.rootId, runIds.add(run.id));
    if (run.joinedName !== undefined)
      this.joinedRunIds.set(`${run.ownerId} ${run.joinedName}`, run.id);
  }

  /** Returns a team that is in force. */
  team(id: string): Team | undefined {
    return this.teams.get(id);
  }

  /** Puts a team in force, for its keys and for those that they created. */
  putTeam(team: Team): void {
    this.onChange(team.workspaceId);
    this.teams.set(team.id, team);
    this.putKeysOf(team);
  }

  /** Removes a team. The keys that were left in it stay, without one. */
  removeTeam(team: Team): void {
    this.onChange(team.workspaceId);
    this.teams.delete(team.id);
    this.putKeysOf(team, null);
  }

  /** Replaces the teams of a workspace; their keys have to follow. */
  private replaceTeams(workspaceId: string, teams: readonly Team[]): void {
    for (const team of this.teams.values())
      if (team.workspaceId === workspaceId) this.teams.delete(team.id);
    for (const team of teams) this.teams.set(team.id, team);
  }

  private putKeysOf({ id, workspaceId }: Team, teamId: string | null = id): void {
    for (const credential of [...this.byHash.values()]) {
      if (credential.kind !== "llm-key" || credential.workspace.id !== workspaceId) continue;
      const key = this.llmKeyById(credential.key.id);
      if (key?.teamId === id && credential.run === undefined) this.putLlmKey({ ...key, teamId });
    }
  }

  /**
   * Returns a caller with the models of its key that its team and the keys above it allow too. A
   * team that is not known allows none.
   */
  private narrowed(caller: LlmKeyCaller): LlmKeyCaller {
    const { key } = caller;
    const teamId = teamOfKey(caller);
    const ofTeam = teamId === undefined ? null : (this.teams.get(teamId) ?? noModels).allowedModels;
    const lists = [...keysOf(caller).map((each) => each.allowedModels), ofTeam];
    const [first, ...others] = lists.filter((list) => list !== null);
    if (first === undefined || (others.length === 0 && first === key.allowedModels)) return caller;
    const allowedModels = first.filter((model) => others.every((list) => list.includes(model)));
    return { ...caller, key: { ...key, allowedModels }, own: key };
  }

  /** Returns the caller of a run with this id, in any state. */
  runCaller(id: string): LlmKeyCaller | undefined {
    const credential = this.byHash.get(this.hashById.get(id) ?? "");
    return credential?.kind === "llm-key" && credential.run !== undefined ? credential : undefined;
  }

  /** Returns the runs in memory that began with a key. */
  runsOf(keyId: string): Run[] {
    return [...(this.runIds.get(keyId) ?? [])].flatMap((id) => this.runCaller(id)?.run ?? []);
  }

  /** Returns how many runs in memory have not ended at a wall time. */
  openRunCount(nowMs: number): number {
    const ids = [...this.runIds.values()].flatMap((each) => [...each]);
    return ids.filter((id) => {
      const run = this.runCaller(id)?.run;
      return run !== undefined && run.endedAtMs === null && run.expiresAtMs > nowMs;
    }).length;
  }

  /** Returns the newest run in memory that requests of an owner joined by a name. */
  joinedRun(ownerId: string, name: string): Run | undefined {
    return this.runCaller(this.joinedRunIds.get(`${ownerId} ${name}`) ?? "")?.run;
  }

  /** Removes the runs from memory that were released, and have passed their time. */
  forgetRunsBefore(nowMs: number): void {
    for (const [rootId, runIds] of this.runIds) {
      for (const id of runIds) {
        const run = this.runCaller(id)?.run;
        if (run !== undefined && (run.releasedAtMs === null || run.expiresAtMs > nowMs)) continue;
        this.forget(id);
        runIds.delete(id);
        if (run?.joinedName !== undefined)
          this.joinedRunIds.delete(`${run.ownerId} ${run.joinedName}`);
      }
      if (runIds.size === 0) this.runIds.delete(rootId);
    }
  }

  /** Returns the keys that a key created and that were not deleted. */
  childrenOf(id: string): LlmKey[] {
    return [...(this.childIds.get(id) ?? [])].flatMap((childId) => this.llmKeyById(childId) ?? []);
  }

  putManagementKey(key: ManagementKey): void {
    const workspace = this.workspaces.get(key.workspaceId);
    if (workspace === undefined) return;
    this.onChange(workspace.id);
    this.replace(key.id, key.hash, { kind: "management-key", key, workspace });
  }

  /** Replaces everything of a workspace. Keys have to come before those that they created. */
  replaceWorkspace(
    workspace: Workspace,
    {
      llmKeys,
      managementKeys,
      teams,
    }: {
      llmKeys: readonly LlmKey[];
      managementKeys: readonly ManagementKey[];
      teams: readonly Team[];
    },
  ): void {
    this.replaceTeams(workspace.id, teams);
    const kept = new Set([...llmKeys, ...managementKeys].map(({ id }) => id));
    for (const credential of [...this.byHash.values()]) {
      const isOwn = credential.workspace.id === workspace.id && !kept.has(credential.key.id);
      // Runs are read apart from keys, and go with the key that they began with.
      if (isOwn && !(credential.kind === "llm-key" && credential.run !== undefined))
        this.remove(credential.key.id);
    }
    this.putWorkspace(workspace);
    for (const key of llmKeys) this.putLlmKey(key);
    for (const key of managementKeys) this.putManagementKey(key);
  }

  /** Removes a credential and the keys that it created, so that their next requests are refused. */
  remove(id: string): void {
    const workspaceId = this.byHash.get(this.hashById.get(id) ?? "")?.workspace.id;
    if (workspaceId !== undefined) this.onChange(workspaceId);
    this.childIds.get(this.llmKeyById(id)?.parentKeyId ?? "")?.delete(id);
    for (const childId of this.childIds.get(id) ?? []) {
      this.forgetRuns(childId);
      this.forget(childId);
    }
    this.childIds.delete(id);
    this.forgetRuns(id);
    this.forget(id);
  }

  private forgetRuns(keyId: string): void {
    for (const runId of this.runIds.get(keyId) ?? []) this.forget(runId);
    this.runIds.delete(keyId);
  }

  private forget(id: string): void {
    const hash = this.hashById.get(id);
    if (hash !== undefined) this.byHash.delete(hash);
    this.hashById.delete(id);
    const previous = this.previousHashById.get(id);
    if (previous !== undefined) this.byHash.delete(previous);
    this.previousHashById.delete(id);
  }

  private replace(id: string, hash: string, credential: Credential): void {
    this.forget(id);
    this.hashById.set(id, hash);
    this.byHash.set(hash, credential);
    if (credential.kind !== "llm-key" || credential.key.previous === undefined) return;
    // The old secret finds the same key, with an earlier expiry and without an operator's rights.
    const { operatorUserId: _, ...key } = credential.key;
    const { hash: previous, untilMs } = credential.key.previous;
    this.byHash.set(previous, {
      ...credential,
      key: { ...key, expiresAtMs: Math.min(untilMs, key.expiresAtMs ?? untilMs) },
    });
    this.previousHashById.set(id, previous);
  }
}

/**
 * Loads the directory from the database. Returns the workspaces, and whether any LLM key was ever
 * created.
 */
export async function loadCredentials(
  directory: CredentialDirectory,
  stores: {
    workspaces: WorkspaceStore;
    llmKeys: LlmKeyStore;
    managementKeys: ManagementKeyStore;
    uses: CredentialUseStore;
    teams: TeamStore;
  },
): Promise<{ workspaces: Workspace[]; hasKeys: boolean }> {
  const [workspaces, llmKeys, managementKeys, uses, hasKeys, teams] = await Promise.all([
    stores.workspaces.loadAll(),
    stores.llmKeys.loadAll(),
    stores.managementKeys.loadAll(),
    stores.uses.loadAll(),
    stores.llmKeys.wereAnyMade(),
    stores.teams.list(),
  ]);
  for (const workspace of workspaces) directory.putWorkspace(workspace);
  for (const team of teams) directory.putTeam(team);
  for (const key of llmKeys) directory.putLlmKey(key);
  for (const key of managementKeys) directory.putManagementKey(key);
  for (const { id, atMs } of uses) directory.uses.restore(id, atMs);
  return { workspaces, hasKeys };
}
