import type { AttemptRecord } from "../insights/generation-record.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import type { Provider } from "./catalog/model.ts";
import { errorOfAttempts } from "./failure-error.ts";
import type { AttemptFailure } from "./upstream/classify-failure.ts";
import { withoutCredential } from "./without-credential.ts";

const isFailure = (value: unknown): value is AttemptFailure =>
  typeof value === "object" && value !== null && "failover" in value;

/** What the client of a stream is told of whatever broke it. */
export function asStreamError(
  failure: unknown,
  context: { attempt: AttemptRecord; provider: Provider },
): GatewayError {
  if (isFailure(failure))
    return errorOfAttempts([
      { record: context.attempt, failure: withoutCredential(failure, context.provider) },
    ]);
  if (failure instanceof GatewayError) return failure;
  return new GatewayError("internal_server_error", "The gateway failed on this stream.", {
    cause: failure,
  });
}
