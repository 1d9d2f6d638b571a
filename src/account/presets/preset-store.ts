import type { Kysely } from "kysely";
import type { Preset, PresetConfig } from "./preset.ts";

/** Rows of presets. */
export interface PresetTables {
  presets: {
    id: string;
    workspace_id: string;
    slug: string;
    name: string;
    description: string | null;
    config: string;
    created_at_ms: number;
    updated_at_ms: number;
  };
}

/** Presets at rest. */
export class PresetStore {
  private readonly database: Kysely<PresetTables>;

  constructor(database: Kysely<PresetTables>) {
    this.database = database;
  }

  /** Every preset of all workspaces, the oldest first. */
  async loadAll(): Promise<Preset[]> {
    return this.load(undefined);
  }

  /** Every preset of a workspace, the oldest first. */
  list(workspaceId: string): Promise<Preset[]> {
    return this.load(workspaceId);
  }

  private async load(workspaceId: string | undefined): Promise<Preset[]> {
    let query = this.database.selectFrom("presets").selectAll();
    if (workspaceId !== undefined) query = query.where("workspace_id", "=", workspaceId);
    const rows = await query.orderBy("created_at_ms").orderBy("id").execute();
    return rows.map((row) => ({
      id: row.id, workspaceId: row.workspace_id, slug: row.slug, name: row.name, description: row.description,
      config: JSON.parse(row.config) as PresetConfig, createdAtMs: row.created_at_ms, updatedAtMs: row.updated_at_ms,
    }));
  }

  /** Stores a new preset; the database refuses a slug that its workspace has already. */
  async insert(preset: Preset): Promise<void> {
    await this.database.insertInto("presets").values({
      id: preset.id, workspace_id: preset.workspaceId, slug: preset.slug, name: preset.name, description: preset.description,
      config: JSON.stringify(preset.config), created_at_ms: preset.createdAtMs, updated_at_ms: preset.updatedAtMs,
    }).execute();
  }

  /** Stores what may change of a preset. */
  async update({ id, name, description, config, updatedAtMs }: Preset): Promise<void> {
    await this.database.updateTable("presets")
      .set({ name, description, config: JSON.stringify(config), updated_at_ms: updatedAtMs }).where("id", "=", id).execute();
  }

  async remove(id: string): Promise<void> {
    await this.database.deleteFrom("presets").where("id", "=", id).execute();
  }
}
