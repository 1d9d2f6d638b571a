/** Headers that many answers have alike, also as the platform has them ready; never changed. */
class SharedHeaders {
  readonly record: Readonly<Record<string, string>>;
  private readonly extended = new WeakMap<object, SharedHeaders>();
  private written: Headers | undefined;

  constructor(record: Readonly<Record<string, string>>) {
    this.record = record;
  }

  /** These and more; the same ones for the same object. */
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
 * Headers of an answer to come, by name in lower case. What many answers have alike is kept as what
 * it is, so that the platform copies it in place of reading each name and value again (decision
 * 0135).
 */
export class AnswerHeaders {
  private shared = none;
  private own: Record<string, string>;
  private isOneRecord = false;

  constructor(own: Record<string, string> = {}) {
    this.own = own;
  }

  /** All of them as one record, which may be changed from then on. */
  get all(): Record<string, string> {
    if (!this.isOneRecord) {
      this.own = { ...this.shared.record, ...this.own };
      this.shared = none;
      this.isOneRecord = true;
    }
    return this.own;
  }

  /** Adds headers that many answers are given by the same object, which is not changed any more. */
  share(more: Readonly<Record<string, string>>): void {
    if (this.isOneRecord) Object.assign(this.own, more);
    else this.shared = this.shared.with(more);
  }

  /** Sets a header of this answer alone. */
  set(name: string, value: string): void {
    this.own[name] = value;
  }

  /** The same headers, to be gone on with apart. */
  copy(): AnswerHeaders {
    const copy = new AnswerHeaders({ ...this.own });
    copy.shared = this.shared;
    copy.isOneRecord = this.isOneRecord;
    return copy;
  }

  /** An answer of the platform with these headers. */
  response(body: string | ReadableStream<string>, status: number): Response {
    if (this.shared === none) return new Response(body, { status, headers: this.own });
    const response = new Response(body, { status, headers: this.shared.ready });
    for (const name of Object.keys(this.own)) response.headers.set(name, this.own[name] ?? "");
    return response;
  }
}
