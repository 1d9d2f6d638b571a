import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import { DistinctTime } from "../../platform/kernel/time/distinct-time.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { newId } from "../../platform/kernel/ids.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import {
  mergeConfig,
  noPreset,
  type Preset,
  type PresetChanges,
  type PresetVersion,
} from "./preset.ts";
import { PresetDirectory } from "./preset-directory.ts";
import { PresetStore, type PresetTables } from "./preset-store.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

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

  /** Writes the next version of a preset: of the newest one, which another gateway may have made. */
  private write(
    reference: PresetReference,
    author: string,
    change: (preset: Preset) => Promise<Partial<Preset>>,
  ): Promise<Preset> {
    return this.mutex.run(reference.workspaceId, async () => {
      let newest: Preset | undefined = this.find(reference);
      while (newest !== undefined) {
        const next: Preset = {
          ...newest,
          ...(await change(newest)),
          version: newest.version + 1,
          updatedAtMs: this.clock.nowMs(),
        };
        if (await this.store.update(next, author)) {
          this.directory.put(next);
          return next;
        }
        newest = await this.store.find(next.id);
      }
      throw noPreset(reference.slug);
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
  const store = new PresetStore(withTables(database));
  const presets = new PresetDirectory();
  for (const preset of await store.loadAll()) presets.put(preset);
  return { presets, presetEditor: new PresetEditor({ store, directory: presets, clock }) };
}
