/** Lets work on one thing happen one after the other, and work on different things side by side. */
export class KeyedMutex {
  private readonly last = new Map<string, Promise<unknown>>();

  /**
   * Does the work once everything is done that was asked for under the same name before; failures
   * pass to their own asker alone.
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
 * Returns what `make` gives, made when it is first asked for and then kept; callers of that time
 * wait for the one attempt. One that fails is not kept: the next caller tries again.
 */
export function lazily<Made>(make: () => Promise<Made>): () => Promise<Made> {
  let made: Promise<Made> | undefined;
  return () =>
    (made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    }));
}
