import type { Kysely } from "kysely";

/**
 * Rows of last uses. They are kept apart from the keys, so that writing a use never restores an old
 * record of a key.
 */
export interface CredentialUseTables {
  credential_uses: { credential_id: string; last_used_at_ms: number };
}

/** The most rows of one statement: two values each, below what either database can bind. */
const rowsPerStatement = 1_000;

/** Stores the last uses of keys. */
export class CredentialUseStore {
  constructor(private readonly database: Kysely<CredentialUseTables>) {}

  /** Returns every last use that was written. */
  async loadAll(): Promise<{ id: string; atMs: number }[]> {
    const rows = await this.database.selectFrom("credential_uses").selectAll().execute();
    return rows.map((row) => ({ id: row.credential_id, atMs: row.last_used_at_ms }));
  }

  /** Writes last uses. A later one that is already stored stays. */
  async write(uses: readonly { id: string; atMs: number }[]): Promise<void> {
    for (let start = 0; start < uses.length; start += rowsPerStatement) {
      const step = uses.slice(start, start + rowsPerStatement);
      await this.database
        .insertInto("credential_uses")
        .values(step.map(({ id, atMs }) => ({ credential_id: id, last_used_at_ms: atMs })))
        .onConflict((conflict) =>
          conflict
            .column("credential_id")
            .doUpdateSet((rows) => ({ last_used_at_ms: rows.ref("excluded.last_used_at_ms") }))
            .whereRef("excluded.last_used_at_ms", ">", "credential_uses.last_used_at_ms"),
        )
        .execute();
    }
  }
}
