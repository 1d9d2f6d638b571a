/** A value that both databases can bind; money and counts stay within 2^53. */
export type SqlValue = string | number | null;

/** A named insert, written once by the store that owns the table. */
export interface InsertStatement {
  /** Unique name of the statement, such as `transfer`. */
  name: string;
  table: string;
  columns: readonly string[];
}

/** A named counter table: rows found by `keyColumns`, whose `sumColumns` grow. Missing rows start at zero. */
export interface AddStatement {
  name: string;
  table: string;
  keyColumns: readonly string[];
  sumColumns: readonly string[];
}

/** What one settlement writes; everything in a unit is committed together or not at all. */
export interface CommitUnit {
  inserts: readonly { statement: InsertStatement; values: readonly SqlValue[] }[];
  adds: readonly { statement: AddStatement; key: readonly SqlValue[]; sums: readonly number[] }[];
}

/** What the queue is told beside a unit. */
export interface CommitOptions {
  /** Others are under way whose units may follow at once: the group is held open while turns of the event loop bring more. */
  moreMayFollow?: boolean;
}

/**
 * Writes units in groups, off the event loop. The promise of `commit` settles when the unit is durable
 * (as `storage.durability` says); it rejects when the database refused, and then nothing of the unit stands.
 * A unit that was under way when the database was lost stays pending until the database tells what became of it.
 */
export interface CommitQueue {
  commit(unit: CommitUnit, options?: CommitOptions): Promise<void>;
  /** Resolves when everything accepted so far is durable. */
  flush(): Promise<void>;
  /** Units accepted and not yet durable. */
  readonly pendingCount: number;
  /** Units that were refused since the start. */
  readonly rejectedCount: number;
  /**
   * Whether the database has stopped taking commits: the oldest unit waits for over a second, or the last commit or test
   * write was refused.
   */
  readonly stalled: boolean;
  /** Whether a request may be begun whose charge has to be committed; after an outage one a second, until a unit stands. */
  admits(): boolean;
}
