import { GatewayError } from "../../platform/kernel/errors.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { CredentialDirectory } from "../keys/credential-directory.ts";
import type { Workspace, WorkspaceChanges, WorkspaceStore } from "./workspace-store.ts";

/** Changes workspaces, one write of each at a time. A change is in force when it is answered. */
export class WorkspaceEditor {
  private readonly store: WorkspaceStore;
  private readonly directory: CredentialDirectory;
  /** The operator's workspace; it is never blocked. */
  private readonly operatorWorkspaceId: string;
  private readonly nowMs: () => number;
  private readonly mutex = new KeyedMutex();

  constructor(options: {
    store: WorkspaceStore;
    directory: CredentialDirectory;
    operatorWorkspaceId: string;
    nowMs(): number;
  }) {
    this.store = options.store;
    this.directory = options.directory;
    this.operatorWorkspaceId = options.operatorWorkspaceId;
    this.nowMs = options.nowMs;
  }

  /** Returns a workspace. Throws `not_found`. */
  find(id: string): Workspace {
    const workspace = this.directory.workspace(id);
    if (workspace === undefined)
      throw new GatewayError("not_found", `There is no workspace ${id}.`);
    return workspace;
  }

  /**
   * Renames a workspace, changes its plan, blocks or unblocks it. Throws `not_found`, and
   * `conflict` for blocking a workspace that follows its owner.
   */
  change(id: string, changes: WorkspaceChanges): Promise<Workspace> {
    return this.mutex.run(id, async () => {
      if (changes.blocked !== undefined) this.assertBlockable(this.find(id));
      await this.store.change(id, { changes, nowMs: this.nowMs() });
      const { blocked: wasBlocked, ...workspace } = this.find(id);
      const {
        name = workspace.name,
        plan = workspace.plan,
        blocked = wasBlocked === true,
      } = changes;
      const changed: Workspace = {
        ...workspace,
        name,
        plan,
        ...(blocked ? { blocked: true } : {}),
      };
      this.directory.putWorkspace(changed);
      return changed;
    });
  }

  private assertBlockable({ id, organizationId }: Workspace): void {
    if (id !== this.operatorWorkspaceId && organizationId !== undefined) return;
    const why =
      id === this.operatorWorkspaceId
        ? "This is the operator's workspace."
        : "A personal workspace follows its owner. Block the user.";
    throw new GatewayError("conflict", why, { param: "blocked" });
  }
}
