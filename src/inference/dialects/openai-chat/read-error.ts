import type { JsonObject } from "../../canonical/json.ts";
import type { ReportedError } from "../../canonical/reported-error.ts";
import { errorMessage, readErrorBody } from "../read-error-body.ts";
import { asArray, asObject } from "../request-fields.ts";
import { decodeFinish, hasFinished } from "./finish-fields.ts";

/** What an error answer says, in any of the shapes that chat-shaped servers use. */
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

/** An error that came as an event of a stream, or as the end of one of its choices; undefined when there is none. */
export function readStreamError(chunk: JsonObject): ReportedError | undefined {
  const broken = brokenChoice(chunk);
  if (broken !== undefined && !chunk.error)
    return readStreamError({ error: broken.error ?? "The provider broke off the answer." });
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
