import type { GatewayError } from "../../../platform/lib/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { ReportedError } from "../../canonical/reported-error.ts";
import type { ErrorContext } from "../dialect.ts";
import { errorBody } from "../openai-error-body.ts";
import { reportError } from "../report-error.ts";

/** The frame that ends a stream in failure: without `choices`, which makes it loud in every client. */
export const errorFrame = (error: ReportedError): string =>
  `data: ${JSON.stringify(errorBody(error))}\n\n`;

/** The JSON body of an error answer. */
export const encodeError = (error: GatewayError, context: ErrorContext): JsonObject =>
  errorBody(reportError(error, context));

/** The one frame that ends a stream in failure. */
export const encodeStreamError = (error: GatewayError, context: ErrorContext): string[] => [
  errorFrame(reportError(error, context)),
];
