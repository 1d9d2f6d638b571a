import type { Kysely } from "kysely";
import { dayMs, hourMs, minuteMs, type Clock } from "../platform/kernel/clock.ts";
import type { FileTables } from "./file-store.ts";

/** A file in an account at a provider. */
interface CopyPlace {
  workspaceId: string;
  fileId: string;
  provider: string;
  /** The id of the workspace's own provider key; `platform` for the platform's credential. */
  account: string;
}

/** The copy of a file that a provider stores. */
interface ProviderCopy extends CopyPlace {
  /** 24 hexadecimal digits, which are part of the copy's name at the provider. */
  id: string;
  /** What requests name it by; null until its upload was answered. */
  upstreamId: string | null;
  usedAtMs: number;
  expiresAtMs: number;
}

/** How long an upload may take; a copy without an answer is one that a killed process left. */
const uploadMs = 10 * minuteMs;

/** How long a copy is kept that no request uses. */
const idleMs = dayMs;

/** How long the deletion of a copy is tried while its provider fails. */
const triedMs = dayMs;

/** Copies that are looked at in one turn of the sweep. */
const copiesMax = 200;

/** Stores which files have copies at providers. The row is written before the upload begins. */
export class ProviderCopyStore {
  constructor(
    private readonly database: Kysely<FileTables>,
    private readonly clock: Clock,
  ) {}

  /** Returns the copy of a file in an account. */
  async find({
    workspaceId,
    fileId,
    provider,
    account,
  }: CopyPlace): Promise<ProviderCopy | undefined> {
    const row = await this.database
      .selectFrom("provider_files")
      .selectAll()
      .where("file_id", "=", fileId)
      .where("provider", "=", provider)
      .where("account", "=", account)
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    return row && copyOf(row);
  }

  /** Notes that a file is being uploaded. Returns undefined where another request does that. */
  async begin(place: CopyPlace, expiresAtMs: number): Promise<string | undefined> {
    const id = Buffer.from(crypto.getRandomValues(new Uint8Array(12))).toString("hex");
    const nowMs = this.clock.nowMs();
    const { numInsertedOrUpdatedRows = 0n } = await this.database
      .insertInto("provider_files")
      .values({
        id,
        workspace_id: place.workspaceId,
        file_id: place.fileId,
        provider: place.provider,
        account: place.account,
        upstream_id: null,
        created_at_ms: nowMs,
        used_at_ms: nowMs,
        expires_at_ms: expiresAtMs,
      })
      .onConflict((conflict) => conflict.columns(["file_id", "provider", "account"]).doNothing())
      .executeTakeFirstOrThrow();
    return numInsertedOrUpdatedRows > 0n ? id : undefined;
  }

  /** Notes what requests name a copy by. */
  async uploaded(id: string, upstreamId: string): Promise<void> {
    await this.database
      .updateTable("provider_files")
      .set({ upstream_id: upstreamId })
      .where("id", "=", id)
      .execute();
  }

  /** Notes that a copy was used, once an hour at most. */
  async used({ id, usedAtMs }: Pick<ProviderCopy, "id" | "usedAtMs">): Promise<void> {
    const nowMs = this.clock.nowMs();
    if (nowMs - usedAtMs < hourMs) return;
    await this.database
      .updateTable("provider_files")
      .set({ used_at_ms: nowMs })
      .where("id", "=", id)
      .execute();
  }

  /** Forgets a copy. */
  async drop(id: string): Promise<void> {
    await this.database.deleteFrom("provider_files").where("id", "=", id).execute();
  }

  /**
   * Returns copies that are to be deleted: of files that are gone, unused ones, expired ones, and
   * those whose upload was not answered.
   */
  async due(): Promise<ProviderCopy[]> {
    const nowMs = this.clock.nowMs();
    const rows = await this.database
      .selectFrom("provider_files")
      .selectAll()
      .where((is) =>
        is.or([
          is("used_at_ms", "<", nowMs - idleMs),
          is("expires_at_ms", "<", nowMs),
          is.and([is("upstream_id", "is", null), is("created_at_ms", "<", nowMs - uploadMs)]),
          is.not(
            is.exists(
              is
                .selectFrom("files")
                .select("files.id")
                .whereRef("files.id", "=", "provider_files.file_id")
                .where("files.deleted_at_ms", "is", null),
            ),
          ),
        ]),
      )
      .orderBy("used_at_ms")
      .limit(copiesMax)
      .execute();
    // An upload in progress ends first: what it makes can be found only then.
    return rows
      .filter(
        ({ upstream_id, created_at_ms }) =>
          upstream_id !== null || created_at_ms < nowMs - uploadMs,
      )
      .map(copyOf);
  }

  /** Puts a copy behind the others, since its provider failed to delete it. */
  async postpone(id: string): Promise<void> {
    await this.database
      .updateTable("provider_files")
      .set({ used_at_ms: this.clock.nowMs() })
      .where("id", "=", id)
      .execute();
  }

  /** Returns whether a copy's deletion was tried for long enough; the provider has deleted it by now. */
  isGivenUp({ expiresAtMs }: Pick<ProviderCopy, "expiresAtMs">): boolean {
    return expiresAtMs + triedMs < this.clock.nowMs();
  }
}

const copyOf = (row: FileTables["provider_files"]): ProviderCopy => ({
  id: row.id,
  workspaceId: row.workspace_id,
  fileId: row.file_id,
  provider: row.provider,
  account: row.account,
  upstreamId: row.upstream_id,
  usedAtMs: row.used_at_ms,
  expiresAtMs: row.expires_at_ms,
});
