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
