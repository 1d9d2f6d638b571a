import type { RequestHeaders, ServedRequest } from "./http-request.ts";
import type { IncomingBody } from "./incoming-body.ts";
import type { RequestHead } from "./request-head.ts";

const noParams: Readonly<Record<string, string>> = {};

/** A request whose head has come, and the way to the rest of it. What few handlers ask for is made when it is asked for. */
export class IncomingRequest implements ServedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: RequestHeaders;
  params = noParams;
  private readonly incoming: IncomingBody;
  private readonly addressOf: () => string;
  private leaving: AbortController | undefined;
  private left = false;

  constructor({ method, target, headers }: RequestHead, options: { body: IncomingBody; addressOf: () => string }) {
    this.method = method;
    this.url = target;
    this.headers = headers;
    this.incoming = options.body;
    this.addressOf = options.addressOf;
  }

  get peerAddress(): string {
    return this.addressOf();
  }

  get signal(): AbortSignal {
    if (this.leaving === undefined) {
      this.leaving = new AbortController();
      if (this.left) this.leaving.abort();
    }
    return this.leaving.signal;
  }

  get body(): AsyncIterable<Uint8Array> {
    return this.incoming;
  }

  /** UTF-8, without the byte order mark that some programs put before it; what is no UTF-8 becomes replacement characters. */
  async text(): Promise<string> {
    const text = this.incoming.readyText() ?? (await this.incoming.bytes()).toString("utf8");
    return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }

  arrayBuffer(): Promise<Uint8Array<ArrayBuffer>> {
    return this.incoming.bytes();
  }

  /** The client has left. */
  abort(): void {
    this.left = true;
    this.leaving?.abort();
  }
}
