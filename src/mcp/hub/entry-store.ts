import { sql, type Expression, type Kysely, type SqlBool, type Transaction } from "kysely";
import type {
  Entry,
  EntryContent,
  EntryKind,
  FileBundle,
  HubCaller,
  ReviewStatus,
  SkillFile,
  Visibility,
  HubTables,
} from "./entry.ts";
import { EntryFiles } from "./entry-files.ts";
import type { SearchIndex } from "./search-index.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

/**
 * The entries of a list. `own`: the workspace's; `public`: everyone's; `starred`: those of both
 * that the person starred.
 */
export type EntryScope = "own" | "public" | "starred";

/** The query of a list of entries, newest first. */
export interface EntryQuery {
  scope: EntryScope;
  kind?: EntryKind | undefined;
  hubId?: string | undefined;
  search?: string | undefined;
  tag?: string | undefined;
  category?: string | undefined;
  status?: ReviewStatus | undefined;
  after?: { atMs: number; id: string } | undefined;
  /** The number of entries before the page; counts only without `after`. */
  offset?: number | undefined;
  limit: number;
}

/** A version of an entry. */
export interface EntryVersion extends EntryContent {
  version: number;
  personId: string;
  createdAtMs: number;
}

/** The most versions of an entry; the oldest are dropped first. */
const versionsMax = 100;

const details = ({
  platforms,
  recommendedAgents,
  recommendedModel,
  bundle,
}: EntryContent): string =>
  JSON.stringify({ platforms, recommendedAgents, recommendedModel, ...(bundle && { bundle }) });

type ContentRow = Pick<
  HubTables["hub_versions"],
  "title" | "description" | "category" | "tags" | "details" | "body"
>;

const contentRow = (content: EntryContent): ContentRow => ({
  title: content.title,
  description: content.description,
  category: content.category,
  tags: JSON.stringify(content.tags),
  details: details(content),
  body: content.body,
});

const contentOf = (row: ContentRow): EntryContent => ({
  title: row.title,
  description: row.description,
  category: row.category,
  tags: JSON.parse(row.tags) as string[],
  bundle: null,
  ...(JSON.parse(row.details) as Pick<
    EntryContent,
    "platforms" | "recommendedAgents" | "recommendedModel"
  > & { bundle?: FileBundle }),
  body: row.body,
});

/** Returns the searchable text of an entry. */
const searchedText = ({ title, description, category, tags, body }: EntryContent): string =>
  [title, description ?? "", category ?? "", tags.join(" "), body].join("\n");

type Database = Kysely<HubTables>;

/** Stores entries. Reads return only what a caller may see, in the version that it sees. */
export class EntryStore {
  readonly files: EntryFiles;

  constructor(
    readonly database: Database,
    private readonly search: SearchIndex,
  ) {
    this.files = new EntryFiles(withTables(database));
  }

  /** Returns the entry with this id; undefined where the caller sees none. */
  async find(caller: HubCaller, id: string): Promise<Entry | undefined> {
    const row = await this.shown(caller)
      .where("e.id", "=", id)
      .where(this.visible(caller))
      .executeTakeFirst();
    return row && entryOf(row);
  }

  /** Returns the entry of a hub with this id or slug. */
  async findInHub(
    caller: HubCaller,
    { hubId, name }: { hubId: string; name: string },
  ): Promise<Entry | undefined> {
    const row = await this.shown(caller)
      .where("e.hub_id", "=", hubId)
      .where(this.visible(caller))
      .where(({ or, eb }) => or([eb("e.id", "=", name), eb("e.slug", "=", name)]))
      .executeTakeFirst();
    return row && entryOf(row);
  }

  /** Returns entries that the caller sees, newest first. */
  async list(
    caller: HubCaller,
    { scope, kind, hubId, search, tag, category, status, after, offset = 0, limit }: EntryQuery,
  ): Promise<Entry[]> {
    let query = this.shown(caller, scope);
    query = query.where(
      scope === "own" ? this.own(caller) : scope === "public" ? this.open() : this.visible(caller),
    );
    if (scope === "starred") query = query.where("s.entry_id", "is not", null);
    if (kind !== undefined) query = query.where("e.kind", "=", kind);
    if (hubId !== undefined) query = query.where("e.hub_id", "=", hubId);
    if (category !== undefined) query = query.where("v.category", "=", category);
    if (status !== undefined)
      query = query.where("e.status", "=", status).where("e.workspace_id", "=", caller.workspaceId);
    if (tag !== undefined) query = query.where(hasTag(tag));
    if (search !== undefined) query = query.where(this.found(caller, scope, search));
    if (after !== undefined) query = query.where(olderThan(after));
    const rows = await query
      .orderBy("e.created_at_ms", "desc")
      .orderBy("e.id", "desc")
      .limit(limit)
      .offset(after === undefined ? offset : 0)
      .execute();
    return rows.map(entryOf);
  }

  /**
   * Returns prompts of every workspace by review status in their newest version, the longest
   * waiting first.
   */
  async reviewList({
    status,
    after,
    offset = 0,
    limit,
  }: Pick<EntryQuery, "after" | "offset" | "limit"> & { status: ReviewStatus }): Promise<Entry[]> {
    let query = this.rows({ personId: "", workspaceId: "" })
      .whereRef("v.version", "=", "e.version")
      .where("e.status", "=", status);
    if (after !== undefined) {
      query = query.where(sql<SqlBool>`(e.created_at_ms, e.id) > (${after.atMs}, ${after.id})`);
    }
    const rows = await query
      .orderBy("e.created_at_ms")
      .orderBy("e.id")
      .limit(limit)
      .offset(after === undefined ? offset : 0)
      .execute();
    return rows.map(entryOf);
  }

  /** Returns the entry with this id for an operator, regardless of its visibility. */
  async findForReview(id: string): Promise<Entry | undefined> {
    const row = await this.rows({ personId: "", workspaceId: "" })
      .whereRef("v.version", "=", "e.version")
      .where("e.id", "=", id)
      .executeTakeFirst();
    return row && entryOf(row);
  }

  /** Returns versions of an entry, newest first. */
  async versions(id: string): Promise<EntryVersion[]> {
    const rows = await this.database
      .selectFrom("hub_versions")
      .selectAll()
      .where("entry_id", "=", id)
      .orderBy("version", "desc")
      .execute();
    return rows.map((row) => ({
      ...contentOf(row),
      version: row.version,
      personId: row.person_id,
      createdAtMs: row.created_at_ms,
    }));
  }

  async countOf(of: { workspaceId: string } | { hubId: string }): Promise<number> {
    const counted = this.database
      .selectFrom("hub_entries")
      .select(({ fn }) => fn.countAll<number>().as("count"));
    const { count } = await ("hubId" in of
      ? counted.where("hub_id", "=", of.hubId)
      : counted.where("workspace_id", "=", of.workspaceId)
    ).executeTakeFirstOrThrow();
    return Number(count);
  }

  /** Stores a new entry with its first version, and the files of its bundle. */
  insert(entry: Entry, files: readonly SkillFile[] = []): Promise<void> {
    return this.database.transaction().execute(async (transaction) => {
      await transaction
        .insertInto("hub_entries")
        .values({
          id: entry.id,
          kind: entry.kind,
          workspace_id: entry.workspaceId,
          person_id: entry.personId,
          hub_id: entry.hubId,
          slug: entry.slug,
          visibility: entry.visibility,
          status: entry.status,
          version: 1,
          public_version: entry.publicVersion,
          stars: 0,
          forks: 0,
          forked_from: entry.forkedFrom,
          source_ref: entry.sourceRef,
          review_note: null,
          reviewed_by: null,
          reviewed_at_ms: null,
          created_at_ms: entry.createdAtMs,
          updated_at_ms: entry.updatedAtMs,
        })
        .execute();
      await this.writeVersion(transaction, entry);
      await this.files.insert(transaction, entry, files);
      if (entry.forkedFrom !== null) {
        await transaction
          .updateTable("hub_entries")
          .set((eb) => ({ forks: eb("forks", "+", 1) }))
          .where("id", "=", entry.forkedFrom)
          .execute();
      }
    });
  }

  /** Writes a changed entry, with a new version where `newVersion` says so. */
  update(entry: Entry, { newVersion }: { newVersion: boolean }): Promise<void> {
    return this.database.transaction().execute(async (transaction) => {
      await transaction
        .updateTable("hub_entries")
        .set({
          slug: entry.slug,
          visibility: entry.visibility,
          status: entry.status,
          version: entry.version,
          public_version: entry.publicVersion,
          review_note: entry.reviewNote,
          reviewed_by: entry.reviewedBy,
          reviewed_at_ms: entry.reviewedAtMs,
          updated_at_ms: entry.updatedAtMs,
        })
        .where("id", "=", entry.id)
        .execute();
      if (newVersion) await this.writeVersion(transaction, entry);
      else await this.indexPublic(transaction, entry);
      await transaction
        .deleteFrom("hub_versions")
        .where("entry_id", "=", entry.id)
        .where("version", "<=", entry.version - versionsMax)
        .where("version", "!=", entry.publicVersion ?? 0)
        .execute();
    });
  }

  /** Updates the public state of a hub's entries after its visibility changed. */
  async followHub(
    transaction: Transaction<HubTables>,
    { hubId, visibility }: { hubId: string; visibility: Visibility },
  ): Promise<void> {
    const open = visibility === "public";
    await transaction
      .updateTable("hub_entries")
      .set({ visibility })
      .where("hub_id", "=", hubId)
      .execute();
    await transaction
      .updateTable("hub_entries")
      .set({
        status: open ? "pending_review" : null,
        ...(open ? {} : { public_version: null }),
      })
      .where("hub_id", "=", hubId)
      .where("kind", "=", "prompt")
      .execute();
    await transaction
      .updateTable("hub_entries")
      .set(({ ref }) => ({ public_version: open ? ref("version") : null }))
      .where("hub_id", "=", hubId)
      .where("kind", "!=", "prompt")
      .execute();
    const rows = await this.rows({ personId: "", workspaceId: "" }, transaction)
      .whereRef("v.version", "=", "e.version")
      .where("e.hub_id", "=", hubId)
      .execute();
    for (const row of rows) await this.indexPublic(transaction, entryOf(row));
  }

  /** Deletes entries with their versions, stars and search entries. */
  async remove(ids: readonly string[], transaction?: Transaction<HubTables>): Promise<void> {
    if (ids.length === 0) return;
    if (transaction === undefined)
      return this.database.transaction().execute((own) => this.remove(ids, own));
    await transaction.deleteFrom("hub_entries").where("id", "in", ids).execute();
    await transaction.deleteFrom("hub_versions").where("entry_id", "in", ids).execute();
    await this.files.remove(transaction, ids);
    await transaction.deleteFrom("hub_stars").where("entry_id", "in", ids).execute();
    for (const id of ids) await this.search.remove(transaction, { ownerId: id });
  }

  /** Stars or unstars an entry; repeating it has no further effect. */
  setStar(
    { personId, workspaceId }: HubCaller,
    { id, starred, nowMs }: { id: string; starred: boolean; nowMs: number },
  ): Promise<void> {
    return this.database.transaction().execute(async (transaction) => {
      const star = { person_id: personId, workspace_id: workspaceId, entry_id: id };
      const changed = starred
        ? (
            await transaction
              .insertInto("hub_stars")
              .values({ ...star, created_at_ms: nowMs })
              .onConflict((conflict) => conflict.doNothing())
              .executeTakeFirst()
          ).numInsertedOrUpdatedRows
        : (
            await transaction
              .deleteFrom("hub_stars")
              .where("person_id", "=", personId)
              .where("workspace_id", "=", workspaceId)
              .where("entry_id", "=", id)
              .executeTakeFirst()
          ).numDeletedRows;
      if (changed === undefined || changed === 0n) return;
      await transaction
        .updateTable("hub_entries")
        .set((eb) => ({ stars: eb("stars", "+", starred ? 1 : -1) }))
        .where("id", "=", id)
        .execute();
    });
  }

  private async writeVersion(transaction: Transaction<HubTables>, entry: Entry): Promise<void> {
    await transaction
      .insertInto("hub_versions")
      .values({
        entry_id: entry.id,
        version: entry.version,
        person_id: entry.personId,
        created_at_ms: entry.updatedAtMs,
        ...contentRow(entry),
      })
      .execute();
    await this.search.put(
      transaction,
      { ownerId: entry.id, audience: "workspace" },
      searchedText(entry),
    );
    await this.indexPublic(transaction, entry);
  }

  /** Indexes the published version for others, or removes it where there is none. */
  private async indexPublic(
    transaction: Transaction<HubTables>,
    { id, publicVersion }: Entry,
  ): Promise<void> {
    const reference = { ownerId: id, audience: "public" } as const;
    if (publicVersion === null) return this.search.remove(transaction, reference);
    const row = await transaction
      .selectFrom("hub_versions")
      .selectAll()
      .where("entry_id", "=", id)
      .where("version", "=", publicVersion)
      .executeTakeFirstOrThrow();
    await this.search.put(transaction, reference, searchedText(contentOf(row)));
  }

  private rows(
    { personId, workspaceId }: Pick<HubCaller, "personId" | "workspaceId">,
    database: Database = this.database,
  ) {
    return database
      .selectFrom("hub_entries as e")
      .innerJoin("hub_versions as v", "v.entry_id", "e.id")
      .leftJoin("hubs as h", "h.id", "e.hub_id")
      .leftJoin("hub_stars as s", (join) =>
        join
          .onRef("s.entry_id", "=", "e.id")
          .on("s.person_id", "=", personId)
          .on("s.workspace_id", "=", workspaceId),
      )
      .selectAll("e")
      .select([
        "v.title",
        "v.description",
        "v.category",
        "v.tags",
        "v.details",
        "v.body",
        "v.version as shown_version",
        "h.slug as hub_slug",
        "s.entry_id as starred",
      ]);
  }

  /**
   * Selects entries in the version that a caller sees: the newest one of the own workspace's, the
   * published one of others'.
   */
  private shown(caller: HubCaller, scope?: EntryScope) {
    const shownVersion =
      scope === "public"
        ? sql<number>`e.public_version`
        : sql<number>`case when e.workspace_id = ${caller.workspaceId} then e.version else e.public_version end`;
    return this.rows(caller).where("v.version", "=", shownVersion);
  }

  private own({ workspaceId, personId }: HubCaller): Expression<SqlBool> {
    return sql<SqlBool>`(e.workspace_id = ${workspaceId} and (e.visibility <> 'private' or e.person_id = ${personId}))`;
  }

  /**
   * Returns the condition of what everyone sees: published public entries whose workspace is not
   * blocked.
   */
  private open(): Expression<SqlBool> {
    return sql<SqlBool>`(e.visibility = 'public' and e.public_version is not null and not exists (
      select 1 from workspaces w where w.id = e.workspace_id and w.blocked_at_ms is not null))`;
  }

  private visible(caller: HubCaller): Expression<SqlBool> {
    return sql<SqlBool>`(${this.own(caller)} or ${this.open()})`;
  }

  /**
   * Returns the condition of a search: own entries by their newest version, others by the published
   * one.
   */
  private found(
    { workspaceId }: HubCaller,
    scope: EntryScope,
    search: string,
  ): Expression<SqlBool> {
    const inWorkspace = this.search.matches("e.id", { audience: "workspace", search });
    const inPublic = this.search.matches("e.id", { audience: "public", search });
    if (scope === "own") return inWorkspace;
    if (scope === "public") return inPublic;
    return sql<SqlBool>`(case when e.workspace_id = ${workspaceId} then ${inWorkspace} else ${inPublic} end)`;
  }
}

const escaped = (text: string): string => text.replace(/[\\%_]/g, "\\$&");

const hasTag = (tag: string): Expression<SqlBool> =>
  sql<SqlBool>`v.tags like ${`%${escaped(JSON.stringify(tag))}%`} escape '\\'`;

const olderThan = ({ atMs, id }: { atMs: number; id: string }): Expression<SqlBool> =>
  sql<SqlBool>`(e.created_at_ms, e.id) < (${atMs}, ${id})`;

type ShownRow = HubTables["hub_entries"] &
  ContentRow & { shown_version: number; hub_slug: string | null; starred: string | null };

const entryOf = (row: ShownRow): Entry => ({
  ...contentOf(row),
  id: row.id,
  kind: row.kind,
  workspaceId: row.workspace_id,
  personId: row.person_id,
  hubId: row.hub_id,
  hubSlug: row.hub_slug,
  slug: row.slug,
  visibility: row.visibility,
  status: row.status,
  version: row.shown_version,
  publicVersion: row.public_version,
  stars: row.stars,
  forks: row.forks,
  starred: row.starred !== null,
  forkedFrom: row.forked_from,
  sourceRef: row.source_ref,
  reviewNote: row.review_note,
  reviewedBy: row.reviewed_by,
  reviewedAtMs: row.reviewed_at_ms,
  createdAtMs: row.created_at_ms,
  updatedAtMs: row.updated_at_ms,
});
