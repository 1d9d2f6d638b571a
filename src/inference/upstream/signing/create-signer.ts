import type { Clock } from "../../../platform/kernel/clock.ts";
import { AwsSigner, type AwsCredential } from "./aws-signer.ts";
import type { PostForm, RequestSigner } from "./request-signer.ts";
import { ServiceAccountSigner } from "./service-account-signer.ts";
import { AbortScope } from "../abort-scope.ts";
import { upstreamTarget, type UpstreamClient } from "../upstream-client.ts";

/** A credential that signs requests, as a provider's configuration states it. */
export type SigningCredential =
  | ({ type: "aws-sigv4" } & AwsCredential)
  /** A Google service account: its key as JSON text, or the file that holds it. */
  | { type: "google-service-account"; key: { json: string } | { file: string } };

/** Creates the signer of a credential. Each provider has one, which keeps the token. */
export function createSigner(
  credential: SigningCredential,
  { clock, post }: { clock: Clock; post: PostForm },
): RequestSigner {
  if (credential.type === "aws-sigv4") return new AwsSigner(credential, clock);
  const { key } = credential;
  const readKey = "json" in key ? () => Promise.resolve(key.json) : () => Bun.file(key.file).text();
  return new ServiceAccountSigner({ readKey, clock, post });
}

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
