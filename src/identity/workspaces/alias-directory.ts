import type { AliasTarget } from "../../platform/kernel/models/model-alias.ts";
import type { AliasReference, WorkspaceAlias } from "./alias-store.ts";

/** The aliases of a workspace, by name; replaced as a whole, never changed in place. */
type AliasesByName = ReadonlyMap<string, WorkspaceAlias>;

/** All aliases of workspaces in memory: a request costs one lookup and never a query. */
export class AliasDirectory {
  /** Called with the workspace whose aliases changed. */
  onChange: (workspaceId: string) => void = () => undefined;
  private readonly byWorkspace = new Map<
    string,
    { aliases: AliasesByName; targets: ReadonlyMap<string, AliasTarget> }
  >();

  /** Returns the aliases of a workspace, newest first. */
  aliasesOf(workspaceId: string): WorkspaceAlias[] {
    return [...(this.byWorkspace.get(workspaceId)?.aliases.values() ?? [])].reverse();
  }

  /** Returns an alias; undefined where the workspace has none of this name. */
  find({ workspaceId, name }: AliasReference): WorkspaceAlias | undefined {
    return this.byWorkspace.get(workspaceId)?.aliases.get(name);
  }

  /**
   * Returns what the names of a workspace mean, the same object until one of them changes;
   * undefined where it has none.
   */
  targetsOf(workspaceId: string): ReadonlyMap<string, AliasTarget> | undefined {
    return this.byWorkspace.get(workspaceId)?.targets;
  }

  put(alias: WorkspaceAlias): void {
    const { workspaceId, name } = alias;
    const before = this.byWorkspace.get(workspaceId)?.aliases ?? [];
    this.set(workspaceId, new Map([...before, [name, alias]]));
    this.onChange(workspaceId);
  }

  /** Replaces a workspace's aliases, given oldest first. */
  replaceWorkspace(workspaceId: string, aliases: readonly WorkspaceAlias[]): void {
    this.set(workspaceId, new Map(aliases.map((alias) => [alias.name, alias])));
  }

  remove({ workspaceId, name }: AliasReference): void {
    const aliases = new Map(this.byWorkspace.get(workspaceId)?.aliases);
    aliases.delete(name);
    this.set(workspaceId, aliases);
    this.onChange(workspaceId);
  }

  private set(workspaceId: string, aliases: AliasesByName): void {
    if (aliases.size === 0) this.byWorkspace.delete(workspaceId);
    else {
      const targets = new Map([...aliases].map(([name, { target }]) => [name, target]));
      this.byWorkspace.set(workspaceId, { aliases, targets });
    }
  }
}
