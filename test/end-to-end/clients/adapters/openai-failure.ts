import OpenAI from "openai";
import type { ClientFailure, ClientUnderTest } from "../support/client-under-test.ts";

/** An error of the `openai` package, also where other packages hand it on. */
export function openaiFailure(error: unknown): ClientFailure {
  if (!(error instanceof OpenAI.APIError)) throw error;
  return { status: error.status, name: error.constructor.name, message: error.message };
}

/** Its classes of errors. */
export const openaiErrorNames: ClientUnderTest["errorNames"] = {
  400: "BadRequestError",
  401: "AuthenticationError",
  404: "NotFoundError",
  429: "RateLimitError",
  502: "InternalServerError",
};
