import { sql, type Expression, type SqlBool } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import { DistinctTime } from "../../platform/kernel/time/distinct-time.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { newId } from "../../platform/kernel/ids.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import {
  assertMayChange,
  mayChange,
  pageOf,
  readCursor,
  slugFrom,
  type Entry,
  type Hub,
  type HubCaller,
  type Page,
  type Visibility,
  type HubTables,
} from "./entry.ts";
import type { EntryStore } from "./entry-store.ts";
import type { SearchIndex } from "./search-index.ts";

/** The most hubs of a workspace. */
const hubsMax = 200;

/** The fields of a hub that may be changed; absent ones stay as they are. */
export type HubChanges = Partial<Pick<Hub, "slug" | "name" | "description" | "visibility">>;

/** The query of a list of hubs, newest first. */
export interface HubQuery {
  scope: "own" | "public";
  search?: string | undefined;
  cursor?: string | undefined;
  offset?: number | undefined;
  limit: number;
}

const noHub = (): GatewayError =>
  new GatewayError("not_found", "There is no hub with this slug. GET /hubs lists them.");

const duplicateSlug = (slug: string, visibility: Visibility): GatewayError => {
  const where = visibility === "public" ? "This workspace, or a public hub," : "This workspace";
  const message = `${where} has the slug ${JSON.stringify(slug)} already. Choose another one.`;
  return new GatewayError("duplicate_slug", message, { param: "slug" });
};

/** Hubs: collections of skills, prompts, knowledge documents and plugins. */
export class Hubs {
  private readonly store: EntryStore;
  private readonly index: SearchIndex;
  private readonly clock: Clock;
  private readonly time: DistinctTime;
  private readonly mutex = new KeyedMutex();

  constructor(options: { store: EntryStore; index: SearchIndex; clock: Clock }) {
    this.store = options.store;
    this.index = options.index;
    this.clock = options.clock;
    this.time = new DistinctTime(options.clock);
  }

  /**
   * Returns the hub with this slug or id; the own workspace's takes precedence over a public one of
   * another. Throws `not_found`.
   */
  async find(caller: HubCaller, slug: string): Promise<Hub> {
    if (!/^[\w-]{1,100}$/.test(slug)) throw noHub();
    const row = await this.shown(caller)
      .where(({ or, eb }) => or([eb("h.id", "=", slug), eb("h.slug", "=", slug)]))
      .where(sql<SqlBool>`(${own(caller)} or ${open})`)
      .orderBy(sql`case when h.workspace_id = ${caller.workspaceId} then 0 else 1 end`)
      .limit(1)
      .executeTakeFirst();
    if (row === undefined) throw noHub();
    return hubOf(row);
  }

  /** Returns the hubs of the workspace, or everyone's public ones. */
  async list(
    caller: HubCaller,
    { scope, search, cursor, offset = 0, limit }: HubQuery,
  ): Promise<Page<Hub>> {
    let query = this.shown(caller).where(scope === "own" ? own(caller) : open);
    if (search !== undefined) {
      query = query.where(
        this.index.matches("h.id", { audience: scope === "own" ? "workspace" : "public", search }),
      );
    }
    if (cursor !== undefined) {
      const { atMs, id } = readCursor(cursor);
      query = query.where(sql<SqlBool>`(h.created_at_ms, h.id) < (${atMs}, ${id})`);
    }
    const rows = await query
      .orderBy("h.created_at_ms", "desc")
      .orderBy("h.id", "desc")
      .limit(limit + 1)
      .offset(cursor === undefined ? offset : 0)
      .execute();
    return pageOf(rows.map(hubOf), limit, ({ createdAtMs, id }) => ({ atMs: createdAtMs, id }));
  }

  /** Stores a new hub. Throws `duplicate_slug`, and `conflict` where there are too many. */
  create(
    caller: HubCaller,
    {
      slug,
      name,
      description,
      visibility,
    }: Pick<Hub, "name" | "description" | "visibility"> & { slug?: string | undefined },
  ): Promise<Hub> {
    const { workspaceId, personId } = caller;
    return this.mutex.run(workspaceId, async () => {
      const { count } = await this.store.database
        .selectFrom("hubs")
        .select(({ fn }) => fn.countAll<number>().as("count"))
        .where("workspace_id", "=", workspaceId)
        .executeTakeFirstOrThrow();
      if (Number(count) >= hubsMax)
        throw new GatewayError("conflict", `The workspace has ${hubsMax} hubs. Delete some.`);
      const nowMs = this.time.nextMs();
      const hub: Hub = {
        id: newId("hub", nowMs),
        workspaceId,
        personId,
        slug: "",
        name,
        description,
        visibility,
        itemCount: 0,
        createdAtMs: nowMs,
        updatedAtMs: nowMs,
      };
      const base = slugFrom(name) || "hub";
      const slugs =
        slug === undefined
          ? [base, `${base}-2`, `${base}-3`, `${base}-${hub.id.slice(-8)}`]
          : [slug];
      for (const each of slugs) {
        try {
          return await this.write({ ...hub, slug: each }, { isNew: true });
        } catch (error) {
          if (!isUniqueViolation(error)) throw error;
        }
      }
      throw duplicateSlug(slugs[0] ?? "", visibility);
    });
  }

  /**
   * Changes a hub. Its entries follow its visibility. Throws `not_found`, `forbidden` and
   * `duplicate_slug`.
   */
  change(caller: HubCaller, slug: string, changes: HubChanges): Promise<Hub> {
    return this.mutex.run(caller.workspaceId, async () => {
      const hub = await this.find(caller, slug);
      assertMayChange(caller, hub);
      const changed = { ...hub, ...changes, updatedAtMs: this.clock.nowMs() };
      try {
        return await this.write(changed, { isNew: false, wasVisibleTo: hub.visibility });
      } catch (error) {
        throw isUniqueViolation(error) ? duplicateSlug(changed.slug, changed.visibility) : error;
      }
    });
  }

  /** Deletes a hub and its entries; returns the hub. Throws `not_found` and `forbidden`. */
  async remove(caller: HubCaller, slug: string): Promise<Hub> {
    const hub = await this.find(caller, slug);
    assertMayChange(caller, hub);
    await this.store.database.transaction().execute(async (transaction) => {
      const entries = await transaction
        .selectFrom("hub_entries")
        .select("id")
        .where("hub_id", "=", hub.id)
        .execute();
      await this.store.remove(
        entries.map(({ id }) => id),
        transaction,
      );
      await transaction.deleteFrom("hubs").where("id", "=", hub.id).execute();
      await this.index.remove(transaction, { ownerId: hub.id });
    });
    return hub;
  }

  /**
   * Returns the hub that a caller may add to: anyone in its workspace who can see it may. Throws
   * `not_found` and `forbidden`.
   */
  async findToAddTo(caller: HubCaller, slug: string): Promise<Hub> {
    const hub = await this.find(caller, slug);
    if (hub.workspaceId !== caller.workspaceId) {
      throw new GatewayError(
        "forbidden",
        "Only the workspace that the hub belongs to may add to it.",
        { param: "hub" },
      );
    }
    return hub;
  }

  /** Returns the item of a hub with this id or slug. Throws `not_found`. */
  async findItem(
    caller: HubCaller,
    { slug, item }: { slug: string; item: string },
  ): Promise<{ hub: Hub; entry: Entry }> {
    const hub = await this.find(caller, slug);
    const entry = /^[\w-]{1,100}$/.test(item)
      ? await this.store.findInHub(caller, { hubId: hub.id, name: item })
      : undefined;
    if (entry === undefined)
      throw new GatewayError("not_found", "The hub has no item with this id or slug.");
    return { hub, entry };
  }

  /**
   * Returns whether a caller may change an item: its author, its hub's author, and the
   * administrators of the workspace may.
   */
  mayChangeItem = (caller: HubCaller, { hub, entry }: { hub: Hub; entry: Entry }): boolean =>
    mayChange(caller, entry) || mayChange(caller, hub);

  private write(
    hub: Hub,
    { isNew, wasVisibleTo }: { isNew: boolean; wasVisibleTo?: Visibility },
  ): Promise<Hub> {
    const { id, slug, name, description, visibility } = hub;
    return this.store.database.transaction().execute(async (transaction) => {
      const changes = { slug, name, description, visibility, updated_at_ms: hub.updatedAtMs };
      await (isNew
        ? transaction
            .insertInto("hubs")
            .values({
              id,
              workspace_id: hub.workspaceId,
              person_id: hub.personId,
              created_at_ms: hub.createdAtMs,
              ...changes,
            })
            .execute()
        : transaction.updateTable("hubs").set(changes).where("id", "=", id).execute());
      if (!isNew && wasVisibleTo !== visibility)
        await this.store.followHub(transaction, { hubId: id, visibility });
      const text = [slug, name, description ?? ""].join("\n");
      await this.index.put(transaction, { ownerId: id, audience: "workspace" }, text);
      if (visibility === "public")
        await this.index.put(transaction, { ownerId: id, audience: "public" }, text);
      else await this.index.remove(transaction, { ownerId: id, audience: "public" });
      return hub;
    });
  }

  private shown({ workspaceId }: HubCaller) {
    return this.store.database
      .selectFrom("hubs as h")
      .selectAll("h")
      .select(
        sql<number>`(
      select count(*) from hub_entries e where e.hub_id = h.id and (h.workspace_id = ${workspaceId} or e.public_version is not null)
    )`.as("item_count"),
      );
  }
}

const own = ({ workspaceId, personId }: HubCaller): Expression<SqlBool> =>
  sql<SqlBool>`(h.workspace_id = ${workspaceId} and (h.visibility <> 'private' or h.person_id = ${personId}))`;

const open = sql<SqlBool>`(h.visibility = 'public' and not exists (
  select 1 from workspaces w where w.id = h.workspace_id and w.blocked_at_ms is not null))`;

const hubOf = (row: HubTables["hubs"] & { item_count: number }): Hub => ({
  id: row.id,
  workspaceId: row.workspace_id,
  personId: row.person_id,
  slug: row.slug,
  name: row.name,
  description: row.description,
  visibility: row.visibility,
  itemCount: Number(row.item_count),
  createdAtMs: row.created_at_ms,
  updatedAtMs: row.updated_at_ms,
});
