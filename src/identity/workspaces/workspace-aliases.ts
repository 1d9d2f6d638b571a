import type { Kysely } from "kysely";
import { type Clock, DistinctTime } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { AliasTarget } from "../../platform/kernel/models/model-alias.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";

/** A name of a workspace's own for a model, or for several. */
export interface WorkspaceAlias {
  workspaceId: string;
  /** In lower case; unique within its workspace; never changes. */
  name: string;
  target: AliasTarget;
  description: string | null;
  createdAtMs: number;
  updatedAtMs: number;
}

/** An alias as its own workspace names it. */
type AliasReference = Pick<WorkspaceAlias, "workspaceId" | "name">;

/** Rows of workspaces' aliases. */
export interface AliasTables {
  workspace_aliases: {
    workspace_id: string;
    name: string;
    target: string;
    description: string | null;
    created_at_ms: number;
    updated_at_ms: number;
  };
}

/** The most aliases of one workspace: every gateway keeps them in memory. */
export const aliasesMax = 200;

/** Stores workspaces' aliases. */
export class AliasStore {
  private readonly database: Kysely<AliasTables>;

  constructor(database: Kysely<AliasTables>) {
    this.database = database;
  }

  /** Returns the aliases of a workspace, or of all, oldest first. */
  async list(workspaceId?: string): Promise<WorkspaceAlias[]> {
    let query = this.database.selectFrom("workspace_aliases").selectAll();
    if (workspaceId !== undefined) query = query.where("workspace_id", "=", workspaceId);
    const rows = await query.orderBy("created_at_ms").orderBy("name").execute();
    return rows.map((row) => ({
      workspaceId: row.workspace_id,
      name: row.name,
      target: JSON.parse(row.target) as AliasTarget,
      description: row.description,
      createdAtMs: Number(row.created_at_ms),
      updatedAtMs: Number(row.updated_at_ms),
    }));
  }

  /** Stores a new alias. The database refuses a name that its workspace already has. */
  async insert(alias: WorkspaceAlias): Promise<void> {
    await this.database
      .insertInto("workspace_aliases")
      .values({
        workspace_id: alias.workspaceId,
        name: alias.name,
        target: JSON.stringify(alias.target),
        description: alias.description,
        created_at_ms: alias.createdAtMs,
        updated_at_ms: alias.updatedAtMs,
      })
      .execute();
  }

  /** Stores a changed alias. Returns false where it was deleted meanwhile. */
  async update(alias: WorkspaceAlias): Promise<boolean> {
    const { numUpdatedRows } = await this.database
      .updateTable("workspace_aliases")
      .set({
        target: JSON.stringify(alias.target),
        description: alias.description,
        updated_at_ms: alias.updatedAtMs,
      })
      .where("workspace_id", "=", alias.workspaceId)
      .where("name", "=", alias.name)
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }

  async remove({ workspaceId, name }: AliasReference): Promise<void> {
    await this.database
      .deleteFrom("workspace_aliases")
      .where("workspace_id", "=", workspaceId)
      .where("name", "=", name)
      .execute();
  }
}

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

const noAlias = (name: string): GatewayError =>
  new GatewayError(
    "not_found",
    `This workspace has no alias ${JSON.stringify(name)}. GET /aliases lists them.`,
  );

const duplicate = (name: string): GatewayError => {
  const message = `This workspace has an alias ${JSON.stringify(name)} already. Change that one, or choose another name.`;
  return new GatewayError("conflict", message, { param: "name" });
};

/** The fields of an alias that may be changed; absent ones stay as they are. */
interface AliasChanges {
  target?: AliasTarget | undefined;
  description?: string | null | undefined;
}

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
  change(
    reference: AliasReference,
    { target, description }: AliasChanges,
  ): Promise<WorkspaceAlias> {
    return this.mutex.run(reference.workspaceId, async () => {
      const alias = this.find(reference);
      if (target === undefined && description === undefined) return alias;
      const changed: WorkspaceAlias = {
        ...alias,
        ...(target === undefined ? {} : { target }),
        ...(description === undefined ? {} : { description }),
        updatedAtMs: this.clock.nowMs(),
      };
      if (!(await this.store.update(changed))) throw noAlias(reference.name);
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
  const store = new AliasStore(database.withTables());
  const aliases = new AliasDirectory();
  const stored = Map.groupBy(await store.list(), ({ workspaceId }) => workspaceId);
  for (const [workspaceId, each] of stored) aliases.replaceWorkspace(workspaceId, each);
  return { aliases, aliasEditor: new AliasEditor({ store, directory: aliases, clock }) };
}
