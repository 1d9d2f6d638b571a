import type { Provider } from "./catalog/model.ts";
import type { AttemptFailure } from "./upstream/classify-failure.ts";

/** Credentials of local servers, such as `none`, are ordinary words and no secrets. */
const secretLengthMin = 8;

/** The failure without the platform's credential: some providers repeat the key that they refuse, and callers read their words. */
export function withoutCredential(failure: AttemptFailure, { apiKey }: Provider): AttemptFailure {
  const { upstreamMessage } = failure;
  if (
    apiKey === undefined ||
    apiKey.length < secretLengthMin ||
    upstreamMessage === null ||
    !upstreamMessage.includes(apiKey)
  )
    return failure;
  return { ...failure, upstreamMessage: upstreamMessage.replaceAll(apiKey, "[credential]") };
}
