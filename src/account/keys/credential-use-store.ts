import type { Kysely } from "kysely";

/** Rows of last uses; apart from the keys themselves, so that no use brings an old record of a key back. */
export interface CredentialUseTables {
  credential_uses: { credential_id: string; last_used_at_ms: number };
}

/** Rows that one statement writes: two values each, below what either database binds. */
const rowsPerStatement = 1_000;

/** Last uses of keys at rest. */
export class CredentialUseStore {
  private readonly database: Kysely<CredentialUseTables>;

  constructor(database: Kysely<CredentialUseTables>) {
    this.database = database;
  }

  /** Every last use that was written. */
  async loadAll(): Promise<{ id: string; atMs: number }[]> {
    const rows = await this.database.selectFrom("credential_uses").selectAll().execute();
    return rows.map((row) => ({ id: row.credential_id, atMs: row.last_used_at_ms }));
  }

  /** Writes last uses; a later one that stands already stays. */
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
