import type { GatewayError } from "../../../platform/lib/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { ReportedError } from "../../canonical/reported-error.ts";
import type { ErrorContext } from "../dialect.ts";
import { reportError } from "../report-error.ts";

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

/** The frame that ends a stream in failure: without `choices`, which makes it loud in every client. */
export const errorFrame = (error: ReportedError): string => `data: ${JSON.stringify(errorBody(error))}\n\n`;

/** The JSON body of an error answer. */
export const encodeError = (error: GatewayError, context: ErrorContext): JsonObject => errorBody(reportError(error, context));

/** The one frame that ends a stream in failure. */
export const encodeStreamError = (error: GatewayError, context: ErrorContext): string[] => [errorFrame(reportError(error, context))];
