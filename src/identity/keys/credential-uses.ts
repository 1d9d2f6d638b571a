import type { Kysely } from "kysely";

/**
 * The time of each key's last use, in memory. An accepted request costs two lookups and no write;
 * `CredentialUseWriter` writes the changes periodically.
 */
export class CredentialUses {
  private readonly lastMs = new Map<string, number>();
  private unwritten = new Set<string>();

  /** Notes that a key was accepted at a wall time in milliseconds. */
  note(id: string, atMs: number): void {
    this.lastMs.set(id, atMs);
    this.unwritten.add(id);
  }

  /** Restores what was written before. */
  restore(id: string, atMs: number): void {
    this.lastMs.set(id, atMs);
  }

  /**
   * Returns the wall time of the last accepted request in milliseconds; null when there was none.
   */
  lastUsedAtMs(id: string): number | null {
    return this.lastMs.get(id) ?? null;
  }

  /** Returns the changes since the last call, which then count as written. */
  takeUnwritten(): { id: string; atMs: number }[] {
    if (this.unwritten.size === 0) return [];
    const taken = [...this.unwritten].map((id) => ({ id, atMs: this.lastMs.get(id) ?? 0 }));
    this.unwritten = new Set();
    return taken;
  }

  /** Marks keys as unwritten again, after a failed write. */
  putBack(ids: readonly string[]): void {
    for (const id of ids) this.unwritten.add(id);
  }
}

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
  private readonly database: Kysely<CredentialUseTables>;

  constructor(database: Kysely<CredentialUseTables>) {
    this.database = database;
  }

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

/** Milliseconds that a use may be known in memory alone. A crash loses only a date, never money. */
const writeEveryMs = 10_000;

/**
 * Writes last uses in batches: one statement for all keys that were used since the previous batch.
 */
export class CredentialUseWriter {
  private readonly options: {
    uses: CredentialUses;
    store: CredentialUseStore;
    onError(error: unknown): void;
  };
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(options: CredentialUseWriter["options"]) {
    this.options = options;
  }

  /** Starts to write every ten seconds, where anything changed. */
  start(): void {
    this.timer = setInterval(() => void this.flush(), writeEveryMs);
  }

  /** Writes the changes. What the database refuses is tried again next time. */
  flush(): Promise<void> {
    this.running = this.running.then(() => this.writeNew());
    return this.running;
  }

  /** Writes the remaining changes and stops. */
  stop(): Promise<void> {
    clearInterval(this.timer);
    return this.flush();
  }

  private async writeNew(): Promise<void> {
    const { uses, store, onError } = this.options;
    const taken = uses.takeUnwritten();
    if (taken.length === 0) return;
    try {
      await store.write(taken);
    } catch (error) {
      uses.putBack(taken.map(({ id }) => id));
      onError(error);
    }
  }
}
