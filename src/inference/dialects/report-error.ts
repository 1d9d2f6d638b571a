import type { GatewayError } from "../../platform/lib/errors.ts";
import type { JsonObject } from "../canonical/json.ts";
import type { ReportedError } from "../canonical/reported-error.ts";

/** A refusal or failure as any client dialect tells it: public facts only, who refused and the trace id among them. */
export function reportError(error: GatewayError, context: { traceId: string }): ReportedError {
  const { type } = error.facts;
  return {
    message: error.message,
    code: error.code,
    type,
    ...(error.param !== undefined && { param: error.param }),
    status: error.status,
    ...(error.retryAfterSeconds !== undefined && { retryAfterSeconds: error.retryAfterSeconds }),
    metadata: {
      type,
      fault: error.fault,
      trace_id: context.traceId,
      ...(error.metadata as JsonObject),
    },
  };
}
