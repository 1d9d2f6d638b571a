/** Something that can be given up. */
export interface Abortable {
  abort(): void;
}

/** What an exchange is tied to for as long as it is under way. */
export interface ExchangeTie {
  /** Whether the exchange has no reader any more. */
  readonly clientGone: boolean;
  /** The same as far as it is known already; does not look. */
  readonly heardClientLeave: boolean;
  attach(abortable: Abortable): void;
  /** Waiting has begun: from now on the signals that may end it are listened to. */
  listen(): void;
}

/**
 * Ties the exchange that is under way to the client: when the client goes away it is aborted. Once
 * the answer streams, its stream hears of the client itself and the tie is released. Listening
 * costs more than it is worth for an answer that takes a moment, so it begins with `listen`, when
 * waiting begins.
 */
export class AbortScope implements ExchangeTie {
  private current: Abortable | undefined;
  private gone = false;
  private listening = false;
  private readonly signalOf: (() => AbortSignal) | undefined;
  private readonly aborts: boolean;

  /** `aborts` is false where the policy is to read on although the client has left. */
  constructor(signalOf: (() => AbortSignal) | undefined, options: { aborts: boolean }) {
    this.signalOf = signalOf;
    this.aborts = options.aborts;
  }

  /** Whether the client has left; nothing is retried after that. */
  get clientGone(): boolean {
    this.listen();
    return this.gone;
  }

  /** Whether it is known already that the client has left; does not look. */
  get heardClientLeave(): boolean {
    return this.gone;
  }

  /** Hears from now on when the client leaves, and at once when it has left already. */
  listen(): void {
    if (this.listening || this.signalOf === undefined) return;
    this.listening = true;
    const signal = this.signalOf();
    const onAbort = (): void => {
      this.gone = true;
      if (this.aborts) this.current?.abort();
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  }

  /**
   * Ties what is under way to the client; it is given up at once when the client is known to have
   * left.
   */
  attach(abortable: Abortable): void {
    this.current = abortable;
    if (this.gone && this.aborts) abortable.abort();
  }

  release(): void {
    this.current = undefined;
  }
}
