import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { LlmKeyCaller } from "../keys/caller.ts";

/** What a workspace, or one of its keys, demands of every provider that sees its requests. */
export interface Privacy {
  /** Only providers that keep nothing (zero data retention). */
  zdr: boolean;
  /** Ids of providers that never serve. */
  blockedProviders: readonly string[];
  /**
   * The wall time since when a workspace asks for its prompts and answers to be kept; absent where
   * it does not. Keys have none of their own.
   */
  contentsSinceMs?: number | undefined;
}

/** Changes to it; what is left out stays as it is. */
type PrivacyChanges = Partial<Omit<Privacy, "contentsSinceMs">> & {
  /** Whether prompts and answers are kept from now on. */
  keepsContents?: boolean | undefined;
};

/** Whose demands they are: a workspace's own, or those of one of its keys. */
interface PrivacyOwner {
  workspaceId: string;
  ownerId: string;
}

/** No demands. */
export const noPrivacy: Privacy = Object.freeze({
  zdr: false,
  blockedProviders: Object.freeze([]),
});

/** The demands of all workspaces and keys in memory; planning a request costs two look-ups. */
export class PrivacyDirectory {
  /** Called with the workspace or key whose demands changed. */
  onChange: (ownerId: string) => void = () => undefined;
  private readonly byOwner = new Map<string, Privacy>();

  /** Replaces the demands of a workspace or a key. */
  put(ownerId: string, privacy: Privacy): void {
    this.onChange(ownerId);
    const { zdr, blockedProviders, contentsSinceMs } = privacy;
    if (!zdr && blockedProviders.length === 0 && contentsSinceMs === undefined)
      this.byOwner.delete(ownerId);
    else this.byOwner.set(ownerId, privacy);
  }

  /** What a workspace or a key demands itself. */
  of(ownerId: string): Privacy {
    return this.byOwner.get(ownerId) ?? noPrivacy;
  }

  /**
   * Since when a workspace asks for its prompts and answers to be kept; undefined where it does
   * not, or where it or the key demands zero data retention.
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
   * Everything that holds for a request: what its workspace demands, its key, and the key that made
   * that one.
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

/** The stricter of both in each respect. */
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

/** The demands of a workspace or a key. */
interface OwnedPrivacy {
  ownerId: string;
  privacy: Privacy;
}

/** Privacy settings at rest. */
export class PrivacyStore {
  private readonly database: Kysely<PrivacyTables>;

  constructor(database: Kysely<PrivacyTables>) {
    this.database = database;
  }

  /** The demands of every workspace and key that has any. */
  loadAll(): Promise<OwnedPrivacy[]> {
    return this.load(undefined);
  }

  /** The demands of a workspace and of its keys. */
  list(workspaceId: string): Promise<OwnedPrivacy[]> {
    return this.load(workspaceId);
  }

  /**
   * Workspaces that ask for prompts and answers to be kept, each with the wall time since when;
   * none that demands zero data retention.
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

  private async load(workspaceId: string | undefined): Promise<OwnedPrivacy[]> {
    let query = this.database.selectFrom("privacy_settings").selectAll();
    if (workspaceId !== undefined) query = query.where("workspace_id", "=", workspaceId);
    const rows = await query.execute();
    return rows.map((row) => ({
      ownerId: row.owner_id,
      privacy: {
        zdr: row.zdr === 1,
        blockedProviders: JSON.parse(row.blocked_providers) as string[],
        ...(row.contents_since_ms > 0 && { contentsSinceMs: Number(row.contents_since_ms) }),
      },
    }));
  }

  /** Writes the demands of a workspace or a key as a whole. */
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

/** Changes what workspaces and keys demand of providers; what is answered is in force. */
export class PrivacyEditor {
  private readonly options: { store: PrivacyStore; directory: PrivacyDirectory; clock: Clock };
  private readonly mutex = new KeyedMutex();

  constructor(options: PrivacyEditor["options"]) {
    this.options = options;
  }

  /**
   * Changes some of it; what is left out stays as it is. Zero data retention ends the keeping of
   * prompts and answers. Throws `conflict` where both are asked for.
   */
  change(owner: PrivacyOwner, changes: PrivacyChanges): Promise<Privacy> {
    const { store, directory, clock } = this.options;
    return this.mutex.run(owner.ownerId, async () => {
      const privacy = changed(directory.of(owner.ownerId), changes, clock.nowMs());
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
  // What was kept before, in this millisecond even, does not come back.
  return isKept ? { ...privacy, contentsSinceMs: contentsSinceMs ?? nowMs + 1 } : privacy;
}
