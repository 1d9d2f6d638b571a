import type { JsonObject } from "../canonical/json.ts";
import type { ReportedError } from "../canonical/reported-error.ts";

/** The error envelope that satisfies both OpenAI's clients and the contract: all four of OpenAI's keys, and metadata. */
export const errorBody = (error: ReportedError): JsonObject => ({
  error: {
    code: error.code ?? "upstream_error",
    message: error.message,
    type: error.type ?? "upstream_error",
    param: error.param ?? null,
    metadata: { type: error.type ?? "upstream_error", ...error.metadata },
  },
});
