import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import { DistinctTime } from "../../platform/kernel/time/distinct-time.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import {
  AliasStore,
  type AliasChanges,
  type AliasReference,
  type WorkspaceAlias,
  type AliasTables,
} from "./alias-store.ts";
import { AliasDirectory } from "./alias-directory.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

/** The most aliases of one workspace: every gateway keeps them in memory. */
export const aliasesMax = 200;

const noAlias = (name: string): GatewayError =>
  new GatewayError(
    "not_found",
    `This workspace has no alias ${JSON.stringify(name)}. GET /aliases lists them.`,
  );

const duplicate = (name: string): GatewayError => {
  const message = `This workspace has an alias ${JSON.stringify(name)} already. Change that one, or choose another name.`;
  return new GatewayError("conflict", message, { param: "name" });
};

/**
 * Creates, changes and deletes aliases, one write of a workspace at a time. A change is in force
 * when it is answered.
 */
export class AliasEditor {
  private readonly store: AliasStore;
  private readonly directory: AliasDirectory;
  private readonly clock: Clock;
  private readonly time: DistinctTime;
  private readonly mutex = new KeyedMutex();

  constructor(options: { store: AliasStore; directory: AliasDirectory; clock: Clock }) {
    this.store = options.store;
    this.directory = options.directory;
    this.clock = options.clock;
    this.time = new DistinctTime(options.clock);
  }

  /** Returns an alias. Throws `not_found`. */
  find(reference: AliasReference): WorkspaceAlias {
    const alias = this.directory.find(reference);
    if (alias === undefined) throw noAlias(reference.name);
    return alias;
  }

  /** Stores a new alias. Throws `conflict` where the name is taken, or there are too many. */
  create(wanted: Omit<WorkspaceAlias, "createdAtMs" | "updatedAtMs">): Promise<WorkspaceAlias> {
    const { workspaceId, name } = wanted;
    return this.mutex.run(workspaceId, async () => {
      if (this.directory.find(wanted) !== undefined) throw duplicate(name);
      if ((this.directory.targetsOf(workspaceId)?.size ?? 0) >= aliasesMax) {
        const message = `A workspace has at most ${aliasesMax} aliases. Delete one that is not used.`;
        throw new GatewayError("conflict", message);
      }
      const nowMs = this.time.nextMs();
      const alias: WorkspaceAlias = { ...wanted, createdAtMs: nowMs, updatedAtMs: nowMs };
      try {
        await this.store.insert(alias);
      } catch (error) {
        throw isUniqueViolation(error) ? duplicate(name) : error;
      }
      this.directory.put(alias);
      return alias;
    });
  }

  /** Changes some fields. Throws `not_found`. */
  change(reference: AliasReference, changes: AliasChanges): Promise<WorkspaceAlias> {
    return this.mutex.run(reference.workspaceId, async () => {
      const alias = this.find(reference);
      if (Object.values(changes).every((value) => value === undefined)) return alias;
      const changed = await this.store.change(alias, changes, this.clock.nowMs());
      if (changed === undefined) throw noAlias(reference.name);
      this.directory.put(changed);
      return changed;
    });
  }

  /** Deletes an alias and frees its name. Throws `not_found`. */
  remove(reference: AliasReference): Promise<void> {
    return this.mutex.run(reference.workspaceId, async () => {
      this.find(reference);
      await this.store.remove(reference);
      this.directory.remove(reference);
    });
  }
}

/** The aliases of all workspaces in memory, and their editor. */
export interface Aliases {
  aliases: AliasDirectory;
  aliasEditor: AliasEditor;
}

/** Loads every alias into memory. */
export async function openAliases(database: Kysely<AliasTables>, clock: Clock): Promise<Aliases> {
  const store = new AliasStore(withTables(database));
  const aliases = new AliasDirectory();
  const stored = Map.groupBy(await store.list(), ({ workspaceId }) => workspaceId);
  for (const [workspaceId, each] of stored) aliases.replaceWorkspace(workspaceId, each);
  return { aliases, aliasEditor: new AliasEditor({ store, directory: aliases, clock }) };
}
