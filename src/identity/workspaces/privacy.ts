import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { LlmKeyCaller } from "../keys/caller.ts";

/** The privacy that a workspace, or one of its keys, requires of every provider of its requests. */
export interface Privacy {
  /** Only providers that retain nothing (zero data retention). */
  zdr: boolean;
  /** Ids of providers that never serve. */
  blockedProviders: readonly string[];
  /**
   * The wall time since which a workspace keeps its prompts and answers; absent where it does not.
   * Keys have no such setting.
   */
  contentsSinceMs?: number | undefined;
}

/** Changes to the settings. Absent fields stay as they are. */
type PrivacyChanges = Partial<Omit<Privacy, "contentsSinceMs">> & {
  /** Whether prompts and answers are kept from now on. */
  keepsContents?: boolean | undefined;
};

/** The owner of the settings: a workspace, or one of its keys. */
interface PrivacyOwner {
  workspaceId: string;
  ownerId: string;
}

/** The settings that require nothing. */
export const noPrivacy: Privacy = Object.freeze({
  zdr: false,
  blockedProviders: Object.freeze([]),
});

/** The settings of all workspaces and keys in memory. Planning a request costs two lookups. */
export class PrivacyDirectory {
  /** Called with the workspace or key whose settings changed. */
  onChange: (ownerId: string) => void = () => undefined;
  private readonly byOwner = new Map<string, Privacy>();

  /** Replaces the settings of a workspace or a key. */
  put(ownerId: string, privacy: Privacy): void {
    this.onChange(ownerId);
    const { zdr, blockedProviders, contentsSinceMs } = privacy;
    if (!zdr && blockedProviders.length === 0 && contentsSinceMs === undefined)
      this.byOwner.delete(ownerId);
    else this.byOwner.set(ownerId, privacy);
  }

  /** Returns the own settings of a workspace or a key. */
  of(ownerId: string): Privacy {
    return this.byOwner.get(ownerId) ?? noPrivacy;
  }

  /**
   * Returns since when a workspace keeps its prompts and answers; undefined where it does not, or
   * where it or the key requires zero data retention.
   */
  contentsSinceMs(
    workspaceId: string,
    caller: Pick<LlmKeyCaller, "key" | "parent">,
  ): number | undefined {
    const { contentsSinceMs } = this.of(workspaceId);
    return contentsSinceMs === undefined || this.workspacePrivacy(workspaceId, caller).zdr
      ? undefined
      : contentsSinceMs;
  }

  /**
   * Returns all requirements of a request: those of its workspace, its key, and the key that
   * created that one.
   */
  workspacePrivacy(
    workspaceId: string,
    { key, parent }: Pick<LlmKeyCaller, "key" | "parent">,
  ): Privacy {
    if (this.byOwner.size === 0) return noPrivacy;
    return [key.id, ...(parent === undefined ? [] : [parent.id])].reduce(
      (sum, id) => both(sum, this.of(id)),
      this.of(workspaceId),
    );
  }
}

/** Returns the stricter of both in each respect. */
function both(one: Privacy, other: Privacy): Privacy {
  if (other === noPrivacy) return one;
  if (one === noPrivacy) return other;
  return {
    zdr: one.zdr || other.zdr,
    blockedProviders: [...new Set([...one.blockedProviders, ...other.blockedProviders])],
  };
}

/** Rows of privacy settings. */
export interface PrivacyTables {
  privacy_settings: {
    owner_id: string;
    workspace_id: string;
    zdr: number;
    blocked_providers: string;
    updated_at_ms: number;
    contents_since_ms: number;
  };
}

/** The settings of a workspace or a key. */
interface OwnedPrivacy {
  ownerId: string;
  privacy: Privacy;
}

const fromRow = (row: PrivacyTables["privacy_settings"]): OwnedPrivacy => ({
  ownerId: row.owner_id,
  privacy: {
    zdr: row.zdr === 1,
    blockedProviders: JSON.parse(row.blocked_providers) as string[],
    ...(row.contents_since_ms > 0 && { contentsSinceMs: Number(row.contents_since_ms) }),
  },
});

/** Stores privacy settings. */
export class PrivacyStore {
  private readonly database: Kysely<PrivacyTables>;

  constructor(database: Kysely<PrivacyTables>) {
    this.database = database;
  }

  /** Returns the settings of every workspace and key that has any. */
  async loadAll(): Promise<OwnedPrivacy[]> {
    const rows = await this.database.selectFrom("privacy_settings").selectAll().execute();
    return rows.map(fromRow);
  }

  /** Returns the settings of a workspace and of its keys. */
  async list(workspaceId: string): Promise<OwnedPrivacy[]> {
    const rows = await this.database
      .selectFrom("privacy_settings")
      .selectAll()
      .where("workspace_id", "=", workspaceId)
      .execute();
    return rows.map(fromRow);
  }

  /** Returns the settings of a workspace or a key. */
  async find(ownerId: string): Promise<Privacy> {
    const row = await this.database
      .selectFrom("privacy_settings")
      .selectAll()
      .where("owner_id", "=", ownerId)
      .executeTakeFirst();
    return row === undefined ? noPrivacy : fromRow(row).privacy;
  }

  /**
   * Returns the workspaces that keep prompts and answers, each with the wall time since which it
   * does; none that requires zero data retention.
   */
  async contentsSince(): Promise<Map<string, number>> {
    const rows = await this.database
      .selectFrom("privacy_settings")
      .select(["workspace_id", "contents_since_ms"])
      .whereRef("owner_id", "=", "workspace_id")
      .where("contents_since_ms", ">", 0)
      .where("zdr", "=", 0)
      .execute();
    return new Map(rows.map((row) => [row.workspace_id, Number(row.contents_since_ms)]));
  }

  /** Writes all settings of a workspace or a key. */
  async save(
    { ownerId, workspaceId }: PrivacyOwner,
    { privacy, nowMs }: { privacy: Privacy; nowMs: number },
  ): Promise<void> {
    const values = {
      zdr: privacy.zdr ? 1 : 0,
      blocked_providers: JSON.stringify(privacy.blockedProviders),
      updated_at_ms: nowMs,
      contents_since_ms: privacy.contentsSinceMs ?? 0,
    };
    await this.database
      .insertInto("privacy_settings")
      .values({ owner_id: ownerId, workspace_id: workspaceId, ...values })
      .onConflict((conflict) => conflict.column("owner_id").doUpdateSet(values))
      .execute();
  }
}

/**
 * Changes what workspaces and keys require of providers. A change is in force when it is answered.
 */
export class PrivacyEditor {
  private readonly options: {
    store: Pick<PrivacyStore, "find" | "save">;
    directory: PrivacyDirectory;
    clock: Clock;
  };
  private readonly mutex = new KeyedMutex();

  constructor(options: PrivacyEditor["options"]) {
    this.options = options;
  }

  /**
   * Changes some of the settings; absent ones stay as they are. Zero data retention ends the
   * keeping of prompts and answers. Throws `conflict` where both are requested.
   */
  change(owner: PrivacyOwner, changes: PrivacyChanges): Promise<Privacy> {
    const { store, directory, clock } = this.options;
    return this.mutex.run(owner.ownerId, async () => {
      // From the database, since another gateway may have just changed other settings.
      const before = await store.find(owner.ownerId);
      const privacy = changed(before, changes, clock.nowMs());
      await store.save(owner, { privacy, nowMs: clock.nowMs() });
      directory.put(owner.ownerId, privacy);
      return privacy;
    });
  }
}

function changed(
  before: Privacy,
  { keepsContents, ...changes }: PrivacyChanges,
  nowMs: number,
): Privacy {
  const { contentsSinceMs, ...privacy } = { ...before, ...changes };
  if (privacy.zdr && keepsContents === true)
    throw new GatewayError(
      "conflict",
      "keep_contents: the workspace demands zero data retention. Send zdr: false as well, or leave keep_contents out.",
      { param: "keep_contents" },
    );
  const isKept = !privacy.zdr && (keepsContents ?? contentsSinceMs !== undefined);
  // What was kept before, even in this millisecond, does not become visible again.
  return isKept ? { ...privacy, contentsSinceMs: contentsSinceMs ?? nowMs + 1 } : privacy;
}
