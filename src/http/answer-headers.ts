import type { FramePiece } from "../platform/kernel/frame-source.ts";

/** Headers that many answers share, also in the platform's form. They never change. */
class SharedHeaders {
  private readonly extended = new WeakMap<object, SharedHeaders>();
  private written: Headers | undefined;

  constructor(readonly record: Readonly<Record<string, string>>) {}

  /** Returns these headers with more added; the same object for the same argument. */
  with(more: Readonly<Record<string, string>>): SharedHeaders {
    let both = this.extended.get(more);
    if (both === undefined) {
      both = new SharedHeaders({ ...this.record, ...more });
      this.extended.set(more, both);
    }
    return both;
  }

  get ready(): Headers {
    return (this.written ??= new Headers(this.record));
  }
}

const none = new SharedHeaders({});

/**
 * The headers of an answer to come, with lower-case names. Headers that many answers share are kept
 * as one object, so that the platform copies it instead of reading each name and value again
 * (decision 0135).
 */
export class AnswerHeaders {
  private shared = none;
  private isOneRecord = false;

  constructor(private own: Record<string, string> = {}) {}

  /** All headers as one record, which may be changed from then on. */
  get all(): Record<string, string> {
    if (!this.isOneRecord) {
      this.own = { ...this.shared.record, ...this.own };
      this.shared = none;
      this.isOneRecord = true;
    }
    return this.own;
  }

  /** Adds headers that many answers share as one object, which must not change afterwards. */
  share(more: Readonly<Record<string, string>>): void {
    if (this.isOneRecord) Object.assign(this.own, more);
    else this.shared = this.shared.with(more);
  }

  /** Sets a header of this answer alone. */
  set(name: string, value: string): void {
    this.own[name] = value;
  }

  /** Returns an independent copy. */
  copy(): AnswerHeaders {
    const copy = new AnswerHeaders({ ...this.own });
    copy.shared = this.shared;
    copy.isOneRecord = this.isOneRecord;
    return copy;
  }

  /** Creates the platform's response with these headers. */
  response(body: string | ReadableStream<FramePiece>, status: number): Response {
    if (this.shared === none) return new Response(body, { status, headers: this.own });
    const response = new Response(body, { status, headers: this.shared.ready });
    for (const name of Object.keys(this.own)) response.headers.set(name, this.own[name] ?? "");
    return response;
  }
}
