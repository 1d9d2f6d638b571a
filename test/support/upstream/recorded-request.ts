import type { ParsedRequest } from "./request-parser.ts";

/** Where a request stands among the others. */
export interface RequestPlace {
  /** 0 for the first connection that was accepted. */
  connectionIndex: number;
  /** 0 for the first request on its connection. */
  indexOnConnection: number;
}

/** A request that the upstream received, and what became of its answer. */
export class RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
  readonly place: RequestPlace;
  /** `performance.now()` when the last byte of the request was in. */
  readonly receivedAtMs = performance.now();
  /** Resolves when the answer was sent to its end. Stays open when it never is. */
  readonly answered: Promise<void>;
  /**
   * Resolves when the client closed the connection before the answer was complete, with the
   * `performance.now()` of that moment. Stays open when the client does not.
   */
  readonly aborted: Promise<number>;
  private readonly resolveAnswered: () => void;
  private readonly resolveAborted: (atMs: number) => void;
  private outcome: "open" | "answered" | "aborted" | "broken" = "open";

  constructor(parsed: ParsedRequest, place: RequestPlace) {
    this.method = parsed.method;
    this.path = parsed.path;
    this.headers = parsed.headers;
    this.bytes = parsed.body;
    this.place = place;
    const answered = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<number>();
    this.answered = answered.promise;
    this.aborted = aborted.promise;
    this.resolveAnswered = answered.resolve;
    this.resolveAborted = aborted.resolve;
  }

  /** The body as text. */
  get body(): string {
    return Buffer.from(this.bytes).toString("utf8");
  }

  /** The body as parsed JSON. */
  json(): unknown {
    return JSON.parse(this.body);
  }

  /** True when the answer was sent to its end. */
  get completed(): boolean {
    return this.outcome === "answered";
  }

  /** True when the client left before the answer was complete. */
  get wasAborted(): boolean {
    return this.outcome === "aborted";
  }

  markAnswered(): void {
    if (this.outcome !== "open") return;
    this.outcome = "answered";
    this.resolveAnswered();
  }

  /** The upstream itself broke the answer off: a client that closes after that has not aborted. */
  markBroken(): void {
    if (this.outcome === "open") this.outcome = "broken";
  }

  markAborted(): void {
    if (this.outcome !== "open") return;
    this.outcome = "aborted";
    this.resolveAborted(performance.now());
  }
}
