/** Something that can be aborted. */
export interface Abortable {
  abort(): void;
}

/** The abort scope as an exchange sees it while it is in flight. */
export interface ExchangeTie {
  /** Whether the exchange has no reader any more. Checks the client's signal. */
  readonly clientGone: boolean;
  /** Like `clientGone`, but without checking: what is known so far. */
  readonly heardClientLeave: boolean;
  attach(abortable: Abortable): void;
  /** Starts to listen to the client's signal, since the exchange has begun to wait. */
  listen(): void;
}

/**
 * Ties the exchange in flight to its client: when the client disconnects, the exchange is aborted.
 * Once the answer streams, the stream notices the client itself and the tie is released. Listening
 * costs too much for an answer that takes a moment, so it starts only with `listen`, when the
 * exchange has begun to wait.
 */
export class AbortScope implements ExchangeTie {
  private current: Abortable | undefined;
  private gone = false;
  private listening = false;
  private readonly aborts: boolean;

  /** `aborts` is false where the policy is to read on after the client has left. */
  constructor(
    private readonly signalOf: (() => AbortSignal) | undefined,
    options: { aborts: boolean },
  ) {
    this.aborts = options.aborts;
  }

  /** Whether the client has left; nothing is retried after that. */
  get clientGone(): boolean {
    this.listen();
    return this.gone;
  }

  /** Whether the client is already known to have left; does not check. */
  get heardClientLeave(): boolean {
    return this.gone;
  }

  /** Starts to listen for the client's disconnect, and notices at once where it has happened. */
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
   * Ties an exchange or connection to the client; it is aborted at once where the client is known
   * to have left.
   */
  attach(abortable: Abortable): void {
    this.current = abortable;
    if (this.gone && this.aborts) abortable.abort();
  }

  release(): void {
    this.current = undefined;
  }

  /** Starts a bundle of exchanges, which takes the place of the present exchange. */
  bundle(): ExchangeBundle {
    return new ExchangeBundle(this);
  }
}

/** The exchanges of one attempt, which are aborted together. */
class ExchangeBundle implements Abortable, ExchangeTie {
  private readonly open = new Set<Abortable>();
  private over = false;

  constructor(private readonly abortScope: AbortScope) {
    abortScope.attach(this);
  }

  get clientGone(): boolean {
    return this.over || this.abortScope.clientGone;
  }

  get heardClientLeave(): boolean {
    return this.over || this.abortScope.heardClientLeave;
  }

  attach(abortable: Abortable): void {
    if (this.over) abortable.abort();
    else this.open.add(abortable);
  }

  listen(): void {
    this.abortScope.listen();
  }

  abort(): void {
    this.over = true;
    for (const abortable of this.open) abortable.abort();
    this.open.clear();
  }
}
