import type { GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { ReportedError } from "../../canonical/response.ts";
import type { ErrorContext } from "../dialect.ts";
import { errorBody, errorMessage, readErrorBody, reportError } from "../errors.ts";
import { asArray, asObject } from "../shared/wire-fields.ts";
import { decodeFinish, hasFinished } from "./answer-fields.ts";

/** Reads an error answer, in any of the forms that chat-like servers use. */
export const readError = (status: number, body: unknown): ReportedError =>
  readErrorBody(status, body);

function brokenChoice({ choices }: JsonObject): JsonObject | undefined {
  for (const value of asArray(choices) ?? []) {
    const choice = asObject(value);
    if (choice !== undefined && hasFinished(choice) && decodeFinish(choice)?.reason === "error")
      return choice;
  }
  return undefined;
}

const brokenOff = (word: unknown): string =>
  `The provider broke off the answer (finish reason ${JSON.stringify(word)}).`;

/**
 * Reads an error that came as an event of a stream, or as the end of one of its choices; undefined
 * when there is none.
 */
export function readStreamError(chunk: JsonObject): ReportedError | undefined {
  const broken = brokenChoice(chunk);
  if (broken !== undefined && !chunk.error)
    return readStreamError({ error: broken.error ?? brokenOff(broken.finish_reason) });
  const reports =
    (chunk.error !== undefined && chunk.error !== null && chunk.error !== false) ||
    chunk.object === "error" ||
    chunk.type === "error";
  if (!reports) return undefined;
  const { status, ...error } = readError(0, chunk);
  return status
    ? { ...error, status }
    : { ...error, message: errorMessage(chunk) ?? "The provider ended the stream with an error." };
}

/**
 * Returns the frame that ends a stream in failure: without `choices`, so that every client notices
 * it.
 */
export const errorFrame = (error: ReportedError): string =>
  `data: ${JSON.stringify(errorBody(error))}\n\n`;

/** Returns the JSON body of an error answer. */
export const encodeError = (error: GatewayError, context: ErrorContext): JsonObject =>
  errorBody(reportError(error, context));

/** Returns the one frame that ends a stream in failure. */
export const encodeStreamError = (error: GatewayError, context: ErrorContext): string[] => [
  errorFrame(reportError(error, context)),
];
