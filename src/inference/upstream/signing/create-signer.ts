import type { Clock } from "../../../platform/kernel/clock.ts";
import { AwsSigner, type AwsCredential } from "./aws-signer.ts";
import type { PostForm, RequestSigner } from "./request-signer.ts";
import { ServiceAccountSigner } from "./service-account-signer.ts";

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
