import type { Finish } from "../../canonical/finish-reason.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { asObject, asString } from "../request-fields.ts";

/** How a response stands when it has ended. */
export interface Ending {
  status: "completed" | "incomplete" | "failed";
  incomplete_details: JsonObject | null;
  error: JsonObject | null;
}

const whole: Ending = { status: "completed", incomplete_details: null, error: null };
const cut = (reason: string): Ending => ({
  status: "incomplete",
  incomplete_details: { reason },
  error: null,
});

/** The end of an answer for a Responses client. A refusal is a whole answer where its words stand in the message, a cut one otherwise. */
export function encodeFinish(finish: Finish): Ending {
  switch (finish.reason) {
    case "length":
      return cut("max_output_tokens");
    case "content_filter":
      return cut("content_filter");
    case "refusal":
      return finish.explanation === undefined ? cut("content_filter") : whole;
    case "error":
      return {
        status: "failed",
        incomplete_details: null,
        error: {
          code: "server_error",
          message: finish.explanation ?? "The provider broke off the answer.",
        },
      };
    default:
      return whole;
  }
}

/** The end that an upstream reported; undefined while it reports none. */
export function decodeFinish(response: JsonObject): Finish | undefined {
  if (response.status === "completed") return { reason: "stop" };
  if (response.status !== "incomplete") return undefined;
  const reason = asString(asObject(response.incomplete_details)?.reason);
  return { reason: reason === "content_filter" ? "content_filter" : "length" };
}
