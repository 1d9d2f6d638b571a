/** The kept output of a process, for which a test can wait. */
export class TextLog {
  text = "";
  /** The whole output, once the stream has ended. */
  readonly complete: Promise<string>;
  readonly #watchers = new Set<() => void>();

  constructor(stream: ReadableStream<Uint8Array>) {
    this.complete = this.#read(stream);
  }

  /**
   * Resolves when a text was written, at once when it is already there; rejects when the stream
   * ends without it.
   */
  has(text: string): Promise<void> {
    return this.#until(() => this.text.includes(text), text);
  }

  /** Waits for a pattern as `has` does for a text. */
  matches(pattern: RegExp): Promise<void> {
    return this.#until(() => pattern.test(this.text), String(pattern));
  }

  #until(isThere: () => boolean, what: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const watcher = (): void => {
      if (isThere()) resolve();
    };
    this.#watchers.add(watcher);
    void this.complete.then(() =>
      reject(new Error(`${what} was never written; what was written:\n${this.text}`)),
    );
    watcher();
    return promise.finally(() => this.#watchers.delete(watcher));
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<string> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      this.text += decoder.decode(chunk, { stream: true });
      for (const watcher of this.#watchers) watcher();
    }
    return this.text;
  }
}
