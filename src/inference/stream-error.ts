import type { AttemptRecord } from "../insights/generation-record.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import { encodeStreamError } from "./dialects/openai-chat/encode-error.ts";
import type { Provider } from "./catalog/model.ts";
import { errorOfAttempts } from "./failure-error.ts";
import type { AttemptFailure } from "./upstream/classify-failure.ts";
import { withoutCredential } from "./without-credential.ts";

const isFailure = (value: unknown): value is AttemptFailure =>
  typeof value === "object" && value !== null && "failover" in value;

/** The error that ends a stream in the chat dialect: an event without `choices`, which every client takes as an error. */
export function asStreamError(failure: unknown, context: { attempt: AttemptRecord; provider: Provider; traceId: string }): string {
  const error = isFailure(failure)
    ? errorOfAttempts([{ record: context.attempt, failure: withoutCredential(failure, context.provider) }])
    : failure instanceof GatewayError
      ? failure
      : new GatewayError("internal_server_error", "The gateway failed on this stream.", { cause: failure });
  return encodeStreamError(error, { traceId: context.traceId }).join("");
}
