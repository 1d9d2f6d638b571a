import type { Kysely } from "kysely";
import type { Preset, PresetConfig, PresetVersion } from "./preset.ts";

/** Rows of presets. */
export interface PresetTables {
  presets: {
    id: string;
    workspace_id: string;
    slug: string;
    name: string;
    description: string | null;
    config: string;
    version: number;
    created_at_ms: number;
    updated_at_ms: number;
  };
  preset_versions: {
    preset_id: string;
    version: number;
    name: string;
    description: string | null;
    config: string;
    author: string | null;
    created_at_ms: number;
  };
}

/** The most versions of one preset that are kept. Older ones are deleted as new ones are added. */
export const versionsMax = 200;

const fromRow = (row: PresetTables["presets"]): Preset => ({
  id: row.id,
  workspaceId: row.workspace_id,
  slug: row.slug,
  name: row.name,
  description: row.description,
  config: JSON.parse(row.config) as PresetConfig,
  version: row.version,
  createdAtMs: row.created_at_ms,
  updatedAtMs: row.updated_at_ms,
});

/** Stores presets. */
export class PresetStore {
  constructor(private readonly database: Kysely<PresetTables>) {}

  /** Returns every preset of all workspaces, oldest first. */
  async loadAll(): Promise<Preset[]> {
    return this.load(undefined);
  }

  /** Returns every preset of a workspace, oldest first. */
  list(workspaceId: string): Promise<Preset[]> {
    return this.load(workspaceId);
  }

  /** Returns the stored preset; undefined where there is none. */
  async find(id: string): Promise<Preset | undefined> {
    const row = await this.database
      .selectFrom("presets")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  private async load(workspaceId: string | undefined): Promise<Preset[]> {
    let query = this.database.selectFrom("presets").selectAll();
    if (workspaceId !== undefined) query = query.where("workspace_id", "=", workspaceId);
    const rows = await query.orderBy("created_at_ms").orderBy("id").execute();
    return rows.map(fromRow);
  }

  /** Stores a new preset. The database refuses a slug that its workspace already has. */
  insert(preset: Preset, author: string): Promise<void> {
    return this.database.transaction().execute(async (transaction) => {
      await transaction
        .insertInto("presets")
        .values({
          id: preset.id,
          workspace_id: preset.workspaceId,
          slug: preset.slug,
          name: preset.name,
          description: preset.description,
          config: JSON.stringify(preset.config),
          version: preset.version,
          created_at_ms: preset.createdAtMs,
          updated_at_ms: preset.updatedAtMs,
        })
        .execute();
      await transaction.insertInto("preset_versions").values(versionRow(preset, author)).execute();
    });
  }

  /**
   * Stores the next version of a preset. Returns false where that before it is not the newest any
   * more, or the preset was deleted.
   */
  update(next: Preset, author: string): Promise<boolean> {
    const { id, version, name, description, config, updatedAtMs } = next;
    return this.database.transaction().execute(async (transaction) => {
      const row = await transaction
        .updateTable("presets")
        .set({
          name,
          description,
          config: JSON.stringify(config),
          updated_at_ms: updatedAtMs,
          version,
        })
        .where("id", "=", id)
        .where("version", "=", version - 1)
        .returning("id")
        .executeTakeFirst();
      if (row === undefined) return false;
      await transaction.insertInto("preset_versions").values(versionRow(next, author)).execute();
      await transaction
        .deleteFrom("preset_versions")
        .where("preset_id", "=", id)
        .where("version", "<=", version - versionsMax)
        .execute();
      return true;
    });
  }

  /** Returns the kept versions of a preset, newest first. */
  async versions(id: string): Promise<PresetVersion[]> {
    const rows = await this.database
      .selectFrom("preset_versions")
      .selectAll()
      .where("preset_id", "=", id)
      .orderBy("version", "desc")
      .execute();
    return rows.map((row) => ({
      version: row.version,
      name: row.name,
      description: row.description,
      config: JSON.parse(row.config) as PresetConfig,
      author: row.author,
      createdAtMs: row.created_at_ms,
    }));
  }

  remove(id: string): Promise<void> {
    return this.database.transaction().execute(async (transaction) => {
      await transaction.deleteFrom("presets").where("id", "=", id).execute();
      await transaction.deleteFrom("preset_versions").where("preset_id", "=", id).execute();
    });
  }
}

const versionRow = (
  {
    id,
    version,
    name,
    description,
    config,
    updatedAtMs,
  }: Omit<Preset, "workspaceId" | "slug" | "createdAtMs">,
  author: string,
): PresetTables["preset_versions"] => ({
  preset_id: id,
  version,
  name,
  description,
  config: JSON.stringify(config),
  author,
  created_at_ms: updatedAtMs,
});
