/** Serialises work under one name, and lets work under different names run concurrently. */
export class KeyedMutex {
  private readonly last = new Map<string, Promise<unknown>>();

  /**
   * Runs the work after all earlier work under the same name. A failure rejects only for its own
   * caller.
   */
  run<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const turn = (this.last.get(name) ?? Promise.resolve()).then(work);
    const settled = turn
      .then(
        () => undefined,
        () => undefined,
      )
      .then(() => {
        if (this.last.get(name) === settled) this.last.delete(name);
      });
    this.last.set(name, settled);
    return turn;
  }
}

/**
 * Returns a function that creates a value on its first call and keeps it; concurrent callers wait
 * for the one attempt. A failed attempt is not kept: the next caller tries again.
 */
export function lazily<Made>(make: () => Promise<Made>): () => Promise<Made> {
  let made: Promise<Made> | undefined;
  return () =>
    (made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    }));
}
