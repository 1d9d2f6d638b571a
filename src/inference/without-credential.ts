import type { Provider } from "./catalog/model.ts";
import type { AttemptFailure } from "./upstream/classify-failure.ts";

/** Credentials of local servers, such as `none`, are ordinary words and no secrets. */
const secretLengthMin = 8;

/** The failure without the platform's credential: some providers repeat the key that they refuse, and callers read their words. */
export function withoutCredential(failure: AttemptFailure, { apiKey }: Provider): AttemptFailure {
  if (apiKey === undefined || apiKey.length < secretLengthMin) return failure;
  const { upstreamMessage, upstreamError } = failure;
  const tells =
    upstreamError !== null &&
    JSON.stringify(upstreamError).includes(JSON.stringify(apiKey).slice(1, -1));
  if (!tells && upstreamMessage?.includes(apiKey) !== true) return failure;
  const message = upstreamMessage?.replaceAll(apiKey, "[credential]") ?? null;
  return { ...failure, upstreamMessage: message, upstreamError: tells ? null : upstreamError };
}
