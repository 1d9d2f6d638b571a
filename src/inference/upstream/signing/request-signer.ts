/** A request as a signer sees it: everything that a signature may cover. */
export interface SignableRequest {
  method: string;
  /** Absolute, as it is sent. */
  url: string;
  /** Headers that are sent anyway; lower-case names. */
  headers: Readonly<Record<string, string>>;
  body: string;
}

/**
 * Makes the headers that prove who sends a request, where that is more than one constant header.
 * They come at once where they can be computed, and as a promise where a token has to be fetched
 * first. Throws or rejects with `UpstreamFailure` `connect_failed` when there is no credential to
 * be had.
 */
export interface RequestSigner {
  /** Without a promise where the token is at hand, as it is for nearly every request. */
  headersFor(request: SignableRequest): Promise<Record<string, string>> | Record<string, string>;
}
