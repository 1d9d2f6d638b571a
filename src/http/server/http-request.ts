/** Request headers, by name in any case; a name that came several times has its values joined (RFC 9110, 5.3). */
export interface RequestHeaders {
  get(name: string): string | null;
  has(name: string): boolean;
}

/** What is read of a request, whoever made it; a `Request` of the platform fits, too. */
export interface HttpRequest {
  readonly method: string;
  /** Where it goes, with its query: absolute, or from the path on. */
  readonly url: string;
  readonly headers: RequestHeaders;
  /** Aborted when the client leaves. */
  readonly signal: AbortSignal;
  /** The body in pieces; null where there is none. */
  readonly body: AsyncIterable<Uint8Array> | null;
  text(): Promise<string>;
  arrayBuffer(): Promise<ArrayBuffer | Uint8Array<ArrayBuffer>>;
}

/** A request that came over a connection of this server. */
export interface ServedRequest extends HttpRequest {
  /** Path parameters of the route, decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** The address that the connection comes from. */
  readonly peerAddress: string;
}
