import type { ResponseHead } from "./response-parser.ts";

/** An answer whose body is still to be read; every answer has to be read to its end or aborted. */
export interface UpstreamResponse {
  readonly status: number;
  readonly headers: ResponseHead["headers"];
  /** The next piece of the decoded body; undefined at its end; rejects with an `UpstreamFailure`. */
  next(): Promise<Uint8Array | undefined> | Uint8Array | undefined;
  /** The whole decoded body as text where it is all here already; undefined leaves everything to `readText`. */
  takeText?(limitBytes: number): string | undefined;
  /** The whole decoded body as text; rejects with an `UpstreamFailure`. */
  readText(limitBytes: number): Promise<string>;
  /** Tells that content arrived: the idle timeout takes over from the first-token timeout. */
  markContent(): void;
  /** Tells that everything was said: the answer is given up unless it ends soon. */
  expectEnd(): void;
  abort(): void;
}
