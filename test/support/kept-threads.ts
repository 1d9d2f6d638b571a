/** Threads that are kept at most: those of two gateways that ran beside each other. */
const keptMax = 4;

const Thread = globalThis.Worker;

/** Whether a message of a database thread asks it to close its connection. */
const isClose = (message: unknown): boolean =>
  typeof message === "object" && message !== null && "kind" in message && message.kind === "close";

/** Whether an answer of a database thread says that it failed. */
const isFailure = (answer: unknown): boolean =>
  typeof answer === "object" && answer !== null && "error" in answer;

/** A thread with a database, which its next user opens another one in. */
class DatabaseThread extends Thread {
  /** Those that have closed their connection. */
  static readonly free: DatabaseThread[] = [];
  #isClosing = false;
  #isClosed = false;
  /** What its user wants to know of its end. */
  #onEnd: (() => void)[] = [];

  constructor(url: string | URL, options?: WorkerOptions) {
    super(url, options);
    super.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
      this.#isClosed = this.#isClosing && !isFailure(data);
    });
    super.addEventListener("close", () => {
      const { free } = DatabaseThread;
      if (free.includes(this)) free.splice(free.indexOf(this), 1);
      for (const listener of this.#onEnd) listener();
    });
  }

  /** Takes listeners of the thread's end, the only ones that its users add. */
  override addEventListener(name: string, listener: unknown): void {
    if (name === "close" && typeof listener === "function") this.#onEnd.push(() => listener());
  }

  override postMessage(message: unknown, ...more: []): void {
    this.#isClosing = isClose(message);
    this.#isClosed = false;
    super.postMessage(message, ...more);
  }

  /** Ends the thread, unless it is as good as new. */
  override terminate(): void {
    const { free } = DatabaseThread;
    this.onmessage = null;
    this.onerror = null;
    this.#onEnd = [];
    if (!this.#isClosed || free.length >= keptMax) return super.terminate();
    this.unref();
    free.push(this);
  }
}

/**
 * Keeps the threads of embedded databases when they have closed their connection, for the next
 * gateway of this process: to start two of them, load their modules and compile these takes a fifth
 * of a gateway's start. Threads of other modules are not affected.
 */
export function keepDatabaseThreads(): void {
  if (globalThis.Worker !== Thread) return;
  globalThis.Worker = new Proxy(Thread, {
    construct(_, [url, options]: [string | URL, WorkerOptions?]) {
      if (!String(url).endsWith("/storage/sqlite/worker.ts")) return new Thread(url, options);
      const kept = DatabaseThread.free.pop();
      kept?.ref();
      return kept ?? new DatabaseThread(url, options);
    },
  });
}
