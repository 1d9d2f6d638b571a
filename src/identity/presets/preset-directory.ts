import type { Preset } from "./preset.ts";

/**
 * All presets in memory, by workspace and slug: a request that names one costs two lookups and
 * never a query.
 */
export class PresetDirectory {
  /** Called with the workspace whose presets changed. */
  onChange: (workspaceId: string) => void = () => undefined;
  /** The presets in the order in which they were created; a change keeps its preset's place. */
  private readonly byWorkspace = new Map<string, Map<string, Preset>>();

  /** Returns the presets of a workspace, newest first. */
  presetsOf(workspaceId: string): Preset[] {
    return [...(this.byWorkspace.get(workspaceId)?.values() ?? [])].reverse();
  }

  /** Returns the preset of a slug within a workspace, in any case; undefined when there is none. */
  resolvePreset(workspaceId: string, slug: string): Preset | undefined {
    return this.byWorkspace.get(workspaceId)?.get(slug.toLowerCase());
  }

  put(preset: Preset): void {
    let presets = this.byWorkspace.get(preset.workspaceId);
    if (presets === undefined) this.byWorkspace.set(preset.workspaceId, (presets = new Map()));
    presets.set(preset.slug, preset);
    this.onChange(preset.workspaceId);
  }

  /** Replaces a workspace's presets, given oldest first. */
  replaceWorkspace(workspaceId: string, presets: readonly Preset[]): void {
    this.byWorkspace.set(workspaceId, new Map(presets.map((preset) => [preset.slug, preset])));
  }

  remove({ workspaceId, slug }: { workspaceId: string; slug: string }): void {
    this.byWorkspace.get(workspaceId)?.delete(slug);
    this.onChange(workspaceId);
  }
}
