/**
 * Serialises access to the writer's connection. A transaction spans several messages and holds the
 * turn. Single statements and batches are one message each, and wait only while a transaction holds
 * it.
 */
export class WriterTurn {
  #held = false;
  readonly #waiting: { exclusive: boolean; enter: () => void }[] = [];

  /** Resolves when the caller has exclusive use of the connection, until it calls `release`. */
  acquire(): Promise<void> {
    return new Promise((resolve) => this.#enter({ exclusive: true, enter: resolve }));
  }

  /**
   * Sends one message at once, or when the turn is free. `send` runs inside `release`, so that its
   * message precedes all that the next transaction sends.
   */
  whenFree(send: () => void): void {
    this.#enter({ exclusive: false, enter: send });
  }

  /** Admits the callers that wait, in order, up to and including the next transaction. */
  release(): void {
    this.#held = false;
    while (!this.#held) {
      const next = this.#waiting.shift();
      if (!next) return;
      this.#held = next.exclusive;
      next.enter();
    }
  }

  #enter(caller: { exclusive: boolean; enter: () => void }): void {
    if (this.#held) {
      this.#waiting.push(caller);
      return;
    }
    this.#held = caller.exclusive;
    caller.enter();
  }
}
