import type { Kysely } from "kysely";

/**
 * When each key was used last, in memory: an accepted request costs two look-ups and no write.
 * `CredentialUseWriter` writes what is new from time to time.
 */
export class CredentialUses {
  private readonly lastMs = new Map<string, number>();
  private unwritten = new Set<string>();

  /** Remembers that a key was accepted at a wall time in milliseconds. */
  note(id: string, atMs: number): void {
    this.lastMs.set(id, atMs);
    this.unwritten.add(id);
  }

  /** Puts back what was written before. */
  restore(id: string, atMs: number): void {
    this.lastMs.set(id, atMs);
  }

  /** Wall time of the last accepted request in milliseconds; null when there was none. */
  lastUsedAtMs(id: string): number | null {
    return this.lastMs.get(id) ?? null;
  }

  /** What has not been written yet; it counts as written from now on. */
  takeUnwritten(): { id: string; atMs: number }[] {
    if (this.unwritten.size === 0) return [];
    const taken = [...this.unwritten].map((id) => ({ id, atMs: this.lastMs.get(id) ?? 0 }));
    this.unwritten = new Set();
    return taken;
  }

  /** Takes back what could not be written. */
  putBack(ids: readonly string[]): void {
    for (const id of ids) this.unwritten.add(id);
  }
}

/**
 * Rows of last uses; apart from the keys themselves, so that no use brings an old record of a key
 * back.
 */
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

/** How long a use may be known in memory alone; what a crash loses of it is a date, never money. */
const writeEveryMs = 10_000;

/** Writes last uses in batches: one statement for all keys that were used since the last one. */
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

  /** Writes every ten seconds from now on, whenever there is something new. */
  start(): void {
    this.timer = setInterval(() => void this.flush(), writeEveryMs);
  }

  /** Writes what is new; what the database refuses is tried again the next time. */
  flush(): Promise<void> {
    this.running = this.running.then(() => this.writeNew());
    return this.running;
  }

  /** Writes the rest and ends. */
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
