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

  /** `aborts` is false where the policy is to read on although the client has left. */
  constructor(signal: AbortSignal | undefined, options: { aborts: boolean }) {
    if (signal === undefined) return;
    const onAbort = (): void => {
      this.gone = true;
      if (options.aborts) this.current?.abort();
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  }

  /** Whether the client has left; nothing is retried after that. */
  get clientGone(): boolean {
    return this.gone;
  }

  attach(abortable: Abortable): void {
    this.current = abortable;
  }

  release(): void {
    this.current = undefined;
  }
}
