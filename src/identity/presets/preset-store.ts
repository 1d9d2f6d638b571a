import type { Kysely } from "kysely";
import { type Clock, DistinctTime } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { newId } from "../../platform/kernel/ids.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import {
  mergeConfig,
  noPreset,
  type Preset,
  type PresetChanges,
  type PresetConfig,
  type PresetVersion,
} from "./preset.ts";

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

/** Stores presets. */
export class PresetStore {
  private readonly database: Kysely<PresetTables>;

  constructor(database: Kysely<PresetTables>) {
    this.database = database;
  }

  /** Returns every preset of all workspaces, oldest first. */
  async loadAll(): Promise<Preset[]> {
    return this.load(undefined);
  }

  /** Returns every preset of a workspace, oldest first. */
  list(workspaceId: string): Promise<Preset[]> {
    return this.load(workspaceId);
  }

  private async load(workspaceId: string | undefined): Promise<Preset[]> {
    let query = this.database.selectFrom("presets").selectAll();
    if (workspaceId !== undefined) query = query.where("workspace_id", "=", workspaceId);
    const rows = await query.orderBy("created_at_ms").orderBy("id").execute();
    return rows.map((row) => ({
      id: row.id,
      workspaceId: row.workspace_id,
      slug: row.slug,
      name: row.name,
      description: row.description,
      config: JSON.parse(row.config) as PresetConfig,
      version: row.version,
      createdAtMs: row.created_at_ms,
      updatedAtMs: row.updated_at_ms,
    }));
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
   * Stores a changed preset as its next version and returns its number; undefined where the preset
   * was deleted.
   */
  update(
    { id, name, description, config, updatedAtMs }: Preset,
    author: string,
  ): Promise<number | undefined> {
    return this.database.transaction().execute(async (transaction) => {
      // The database counts versions, since another gateway may have added one meanwhile.
      const row = await transaction
        .updateTable("presets")
        .set((columns) => ({
          name,
          description,
          config: JSON.stringify(config),
          updated_at_ms: updatedAtMs,
          version: columns("version", "+", 1),
        }))
        .where("id", "=", id)
        .returning("version")
        .executeTakeFirst();
      if (row === undefined) return undefined;
      const { version } = row;
      await transaction
        .insertInto("preset_versions")
        .values(versionRow({ id, version, name, description, config, updatedAtMs }, author))
        .execute();
      await transaction
        .deleteFrom("preset_versions")
        .where("preset_id", "=", id)
        .where("version", "<=", version - versionsMax)
        .execute();
      return version;
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

/** A preset as its own workspace names it. */
export interface PresetReference {
  workspaceId: string;
  slug: string;
}

const duplicateSlug = (slug: string): GatewayError => {
  const message = `This workspace has a preset ${JSON.stringify(slug)} already. Choose another slug, or change that one.`;
  return new GatewayError("duplicate_slug", message, { param: "slug" });
};

/**
 * Creates, changes and deletes presets, one write of a workspace at a time. A change is in force
 * when it is answered.
 */
export class PresetEditor {
  private readonly store: PresetStore;
  private readonly directory: PresetDirectory;
  private readonly clock: Clock;
  private readonly time: DistinctTime;
  private readonly mutex = new KeyedMutex();

  constructor(options: { store: PresetStore; directory: PresetDirectory; clock: Clock }) {
    this.store = options.store;
    this.directory = options.directory;
    this.clock = options.clock;
    this.time = new DistinctTime(options.clock);
  }

  /** Returns the preset with this slug. Throws `not_found`. */
  find({ workspaceId, slug }: PresetReference): Preset {
    const preset = this.directory.resolvePreset(workspaceId, slug);
    if (preset === undefined || preset.slug !== slug) throw noPreset(slug);
    return preset;
  }

  /** Stores a new preset. Throws `duplicate_slug`. */
  create(
    wanted: Pick<Preset, "workspaceId" | "slug" | "name" | "description" | "config">,
    author: string,
  ): Promise<Preset> {
    return this.mutex.run(wanted.workspaceId, async () => {
      if (this.directory.resolvePreset(wanted.workspaceId, wanted.slug) !== undefined)
        throw duplicateSlug(wanted.slug);
      const nowMs = this.time.nextMs();
      const preset: Preset = {
        ...wanted,
        id: newId("prs", nowMs),
        version: 1,
        createdAtMs: nowMs,
        updatedAtMs: nowMs,
      };
      try {
        await this.store.insert(preset, author);
      } catch (error) {
        throw isUniqueViolation(error) ? duplicateSlug(wanted.slug) : error;
      }
      this.directory.put(preset);
      return preset;
    });
  }

  /** Changes some fields. Throws `not_found`. */
  async change(
    reference: PresetReference,
    { name, description, config }: PresetChanges,
    author: string,
  ): Promise<Preset> {
    if (name === undefined && description === undefined && config === undefined)
      return this.find(reference);
    return this.write(reference, author, async (preset) => ({
      ...(name === undefined ? {} : { name }),
      ...(description === undefined ? {} : { description }),
      ...(config === undefined ? {} : { config: mergeConfig(preset.config, config) }),
    }));
  }

  /** Returns the kept versions of a preset, newest first. Throws `not_found`. */
  versions(reference: PresetReference): Promise<PresetVersion[]> {
    return this.store.versions(this.find(reference).id);
  }

  /** Restores an older version, as a new version. Throws `not_found`. */
  restore(reference: PresetReference, version: number, author: string): Promise<Preset> {
    return this.write(reference, author, async ({ id }) => {
      const wanted = (await this.store.versions(id)).find((kept) => kept.version === version);
      if (wanted === undefined) {
        const way = `GET /presets/${reference.slug}/versions lists them.`;
        throw new GatewayError(
          "not_found",
          `There is no version ${version} of this preset. ${way}`,
        );
      }
      return { name: wanted.name, description: wanted.description, config: wanted.config };
    });
  }

  private write(
    reference: PresetReference,
    author: string,
    change: (preset: Preset) => Promise<Partial<Preset>>,
  ): Promise<Preset> {
    return this.mutex.run(reference.workspaceId, async () => {
      const preset = this.find(reference);
      const changed: Preset = {
        ...preset,
        ...(await change(preset)),
        updatedAtMs: this.clock.nowMs(),
      };
      const version = await this.store.update(changed, author);
      if (version === undefined) throw noPreset(reference.slug);
      const stored = { ...changed, version };
      this.directory.put(stored);
      return stored;
    });
  }

  /** Deletes a preset and frees its slug. Throws `not_found`. */
  remove(reference: PresetReference): Promise<void> {
    return this.mutex.run(reference.workspaceId, async () => {
      const { id } = this.find(reference);
      await this.store.remove(id);
      this.directory.remove(reference);
    });
  }
}

/** The presets of all workspaces in memory, and their editor. */
export interface Presets {
  presets: PresetDirectory;
  presetEditor: PresetEditor;
}

/** Loads every preset into memory. */
export async function openPresets(database: Kysely<PresetTables>, clock: Clock): Promise<Presets> {
  const store = new PresetStore(database.withTables());
  const presets = new PresetDirectory();
  for (const preset of await store.loadAll()) presets.put(preset);
  return { presets, presetEditor: new PresetEditor({ store, directory: presets, clock }) };
}
