import type { ParsedRequest } from "./request-parser.ts";

/** The position of a request among all requests. */
export interface RequestPlace {
  /** 0 for the first connection that was accepted. */
  connectionIndex: number;
  /** 0 for the first request on its connection. */
  indexOnConnection: number;
}

/** A request that the upstream received, and the outcome of its answer. */
export class RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
  readonly place: RequestPlace;
  /** `performance.now()` when the last byte of the request arrived. */
  readonly receivedAtMs = performance.now();
  /** Resolves when the answer was sent to its end; never settles otherwise. */
  readonly answered: Promise<void>;
  /**
   * Resolves when the client closes the connection before the answer is complete, with the
   * `performance.now()` of that moment; never settles otherwise.
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

  /** Returns the body as parsed JSON. */
  json(): unknown {
    return JSON.parse(this.body);
  }

  /** Whether the answer was sent to its end. */
  get completed(): boolean {
    return this.outcome === "answered";
  }

  /** Whether the client left before the answer was complete. */
  get wasAborted(): boolean {
    return this.outcome === "aborted";
  }

  markAnswered(): void {
    if (this.outcome !== "open") return;
    this.outcome = "answered";
    this.resolveAnswered();
  }

  /**
   * Records that the upstream itself cut the answer; a client that closes after that has not
   * aborted.
   */
  markBroken(): void {
    if (this.outcome === "open") this.outcome = "broken";
  }

  markAborted(): void {
    if (this.outcome !== "open") return;
    this.outcome = "aborted";
    this.resolveAborted(performance.now());
  }
}
