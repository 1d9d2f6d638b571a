import type { Clock } from "../../../platform/kernel/clock.ts";
import { AwsSigner, type AwsCredential } from "./aws-signer.ts";
import type { PostForm, RequestSigner } from "./request-signer.ts";
import { ServiceAccountSigner } from "./service-account-signer.ts";

/** A credential that signs requests, as a provider's configuration states it. */
export type SigningCredential =
  | ({ type: "aws-sigv4" } & AwsCredential)
  /** A Google service account: the JSON of its key, or the file that holds it. */
  | { type: "google-service-account"; key: { json: string } | { file: string } };

/** The signer of a credential; one for each provider, since it keeps the token. */
export function createSigner(
  credential: SigningCredential,
  { clock, post }: { clock: Clock; post: PostForm },
): RequestSigner {
  if (credential.type === "aws-sigv4") return new AwsSigner(credential, clock);
  const { key } = credential;
  const readKey = "json" in key ? () => Promise.resolve(key.json) : () => Bun.file(key.file).text();
  return new ServiceAccountSigner({ readKey, clock, post });
}
