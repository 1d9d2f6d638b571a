import type { Preset } from "./preset.ts";

/**
 * Every preset in memory, by workspace and slug: a request that names one costs two look-ups and never
 * the database.
 */
export class PresetDirectory {
  /** Told of the workspace whose presets changed. */
  onChange: (workspaceId: string) => void = () => undefined;
  /** In the order in which they were made: a change keeps its preset's place. */
  private readonly byWorkspace = new Map<string, Map<string, Preset>>();

  /** The presets of a workspace, newest first. */
  presetsOf(workspaceId: string): Preset[] {
    return [...(this.byWorkspace.get(workspaceId)?.values() ?? [])].reverse();
  }

  /** The preset that a slug means within a workspace, whatever the case; undefined when there is none. */
  resolvePreset(workspaceId: string, slug: string): Preset | undefined {
    return this.byWorkspace.get(workspaceId)?.get(slug.toLowerCase());
  }

  put(preset: Preset): void {
    let presets = this.byWorkspace.get(preset.workspaceId);
    if (presets === undefined) this.byWorkspace.set(preset.workspaceId, (presets = new Map()));
    presets.set(preset.slug, preset);
    this.onChange(preset.workspaceId);
  }

  /** Puts a workspace's presets, the oldest first, in place of those that it had. */
  replaceWorkspace(workspaceId: string, presets: readonly Preset[]): void {
    this.byWorkspace.set(workspaceId, new Map(presets.map((preset) => [preset.slug, preset])));
  }

  remove({ workspaceId, slug }: { workspaceId: string; slug: string }): void {
    this.byWorkspace.get(workspaceId)?.delete(slug);
    this.onChange(workspaceId);
  }
}
