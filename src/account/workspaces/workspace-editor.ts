import { GatewayError } from "../../platform/lib/errors.ts";
import type { CredentialDirectory } from "../keys/credential-directory.ts";
import { Turns } from "../turns.ts";
import type { Workspace } from "./workspace.ts";
import type { WorkspaceChanges, WorkspaceStore } from "./workspace-store.ts";

/** Changes workspaces. A write of one waits for the one before it, and what is answered is in force. */
export class WorkspaceEditor {
  private readonly store: WorkspaceStore;
  private readonly directory: CredentialDirectory;
  /** The workspace of whoever runs the service; it is never blocked. */
  private readonly operatorWorkspaceId: string;
  private readonly nowMs: () => number;
  private readonly turns = new Turns();

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

  /** Throws `not_found`. */
  find(id: string): Workspace {
    const workspace = this.directory.workspace(id);
    if (workspace === undefined)
      throw new GatewayError("not_found", `There is no workspace ${id}.`);
    return workspace;
  }

  /** Renames, gives another plan, blocks or lets in. Throws `not_found`, and `conflict` for blocking what follows its owner. */
  change(id: string, changes: WorkspaceChanges): Promise<Workspace> {
    return this.turns.run(id, async () => {
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
        ? "This is the workspace of whoever runs the service."
        : "A personal workspace follows its owner. Block the user.";
    throw new GatewayError("conflict", why, { param: "blocked" });
  }
}
