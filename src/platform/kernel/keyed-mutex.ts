/** Lets work on one thing happen one after the other, and work on different things side by side. */
export class Turns {
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
