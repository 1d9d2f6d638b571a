/** Posts a form (application/x-www-form-urlencoded) and reads the whole answer. */
export type PostForm = (url: string, form: string) => Promise<{ status: number; text: string }>;

/** A request as a signer sees it: everything that a signature may cover. */
export interface SignableRequest {
  method: string;
  /** The absolute URL, as it is sent. */
  url: string;
  /** Headers that are sent in any case, with lower-case names. */
  headers: Readonly<Record<string, string>>;
  body: string;
}

/**
 * Returns the headers that authenticate a request, for credentials that are more than one constant
 * header. They are returned directly where they can be computed, and as a promise where a token has
 * to be fetched first. Throws or rejects with `UpstreamFailure` `connect_failed` where no
 * credential can be obtained.
 */
export interface RequestSigner {
  /** Returns without a promise where the token is at hand, as it is for nearly every request. */
  headersFor(request: SignableRequest): Promise<Record<string, string>> | Record<string, string>;
}
