import { AbortScope } from "../abort-scope.ts";
import { upstreamTarget, type UpstreamClient } from "../upstream-client.ts";

/** Posts a form (application/x-www-form-urlencoded) and reads the whole answer. */
export type PostForm = (url: string, form: string) => Promise<{ status: number; text: string }>;

const connectTimeoutMs = 5_000;
const answerTimeoutMs = 20_000;
const answerBytesMax = 64 * 1024;

/**
 * Returns a function that posts through the connections that inference uses, and the provider's own
 * proxy. It rejects with `UpstreamFailure`.
 */
export const postFormThrough =
  (client: UpstreamClient, provider: { proxy?: string } = {}): PostForm =>
  async (url, form) => {
    const response = await client.send({
      target: upstreamTarget(
        url,
        { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
        provider,
      ),
      body: form,
      connectTimeoutMs,
      timeouts: {
        firstTokenMs: answerTimeoutMs,
        idleMs: answerTimeoutMs,
        totalMs: answerTimeoutMs,
      },
      // A token belongs to no single client: several requests may wait for it.
      abortScope: new AbortScope(undefined, { aborts: false }),
    });
    return { status: response.status, text: await response.readText(answerBytesMax) };
  };

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
