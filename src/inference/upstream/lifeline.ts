/** Something that can be given up. */
export interface Abortable {
  abort(): void;
}

/**
 * Ties the exchange that is under way to the client: when the client goes away it is aborted. Once the
 * answer streams, its stream hears of the client itself and the tie is released.
 */
export class Lifeline {
  private current: Abortable | undefined;
  private gone = false;
  private readonly aborts: boolean;

  /** `aborts` is false where the policy is to read on although the client has left. */
  constructor(signal: AbortSignal | undefined, options: { aborts: boolean }) {
    this.aborts = options.aborts;
    if (signal === undefined) return;
    const onAbort = (): void => {
      this.gone = true;
      if (this.aborts) this.current?.abort();
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  }

  /** Whether the client has left; nothing is retried after that. */
  get clientGone(): boolean {
    return this.gone;
  }

  /** Ties what is under way to the client; it is given up at once when the client has left already. */
  attach(abortable: Abortable): void {
    this.current = abortable;
    if (this.gone && this.aborts) abortable.abort();
  }

  release(): void {
    this.current = undefined;
  }
}
