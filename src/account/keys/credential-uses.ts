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
