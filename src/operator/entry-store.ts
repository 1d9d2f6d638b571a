import type { Kysely } from "kysely";
import type { KeyVault } from "../platform/vault/key-vault.ts";

/** The sections of switchyard.yaml of which operators add entries in the page. */
export const entrySections = ["providers", "routers", "aliases"] as const;
export type EntrySection = (typeof entrySections)[number];

/**
 * The value of an entry, as switchyard.yaml has it, without its id; that of an alias is its `target`.
 */
export type EntryValue = Readonly<Record<string, unknown>>;

/** An entry that is stored. */
export interface StoredEntry {
  section: EntrySection;
  id: string;
  value: EntryValue;
  updatedAtMs: number;
  /** Id of the operator. */
  updatedBy: string;
}

interface EntryRow {
  section: string;
  id: string;
  sealed: string;
  updated_at_ms: number;
  updated_by: string;
}

/** The table of the entries. */
export interface EntryTables {
  configuration_entries: EntryRow;
}

const isSection = (text: string): text is EntrySection =>
  entrySections.some((section) => section === text);

/** Stores entries, whose values are sealed, since they hold providers' credentials. */
export class EntryStore {
  private readonly database: Kysely<EntryTables>;
  private readonly vault: KeyVault;
  private readonly workspaceId: string;

  constructor({
    database,
    vault,
    workspaceId,
  }: {
    database: Kysely<EntryTables>;
    vault: KeyVault;
    /** The operator's workspace, under whose data key values are sealed. */
    workspaceId: string;
  }) {
    this.database = database;
    this.vault = vault;
    this.workspaceId = workspaceId;
  }

  /** Returns every entry, by section and id. */
  async all(): Promise<StoredEntry[]> {
    const rows = await this.database
      .selectFrom("configuration_entries")
      .selectAll()
      .orderBy("section")
      .orderBy("id")
      .execute();
    if (rows.length > 0) await this.vault.learn(this.workspaceId);
    return rows.flatMap(({ section, id, ...row }) =>
      isSection(section)
        ? [
            {
              section,
              id,
              value: this.valueOf({ section, id }, row.sealed),
              updatedAtMs: Number(row.updated_at_ms),
              updatedBy: row.updated_by,
            },
          ]
        : [],
    );
  }

  /** Stores an entry in place of one with its id. */
  async put(entry: StoredEntry): Promise<void> {
    const text = Buffer.from(JSON.stringify(entry.value), "utf8");
    const values = {
      sealed: await this.vault.sealRecord(this.placeOf(entry), text),
      updated_at_ms: entry.updatedAtMs,
      updated_by: entry.updatedBy,
    };
    await this.database
      .insertInto("configuration_entries")
      .values({ section: entry.section, id: entry.id, ...values })
      .onConflict((conflict) => conflict.columns(["section", "id"]).doUpdateSet(values))
      .execute();
  }

  /** Deletes an entry. Returns false where there was none. */
  async remove({ section, id }: Pick<StoredEntry, "section" | "id">): Promise<boolean> {
    const { numDeletedRows } = await this.database
      .deleteFrom("configuration_entries")
      .where("section", "=", section)
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  private placeOf({ section, id }: Pick<StoredEntry, "section" | "id">) {
    return {
      workspaceId: this.workspaceId,
      id: `configuration ${section} ${id}`,
      facts: ["configuration-entry"],
    };
  }

  private valueOf(entry: Pick<StoredEntry, "section" | "id">, sealed: string): EntryValue {
    const text = this.vault.openRecord(this.placeOf(entry), sealed).toString("utf8");
    return JSON.parse(text) as EntryValue;
  }
}
