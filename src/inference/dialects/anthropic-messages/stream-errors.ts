import type { ErrorPart } from "../../canonical/stream-part.ts";

/** The connection ended before the answer did. */
export const cut: ErrorPart = {
  type: "error",
  fault: "cut",
  error: {
    message: "The provider closed the stream before the answer was finished.",
    code: "upstream_error",
    type: "upstream_error",
  },
};

/** An event that is no JSON. */
export const malformed: ErrorPart = {
  type: "error",
  fault: "malformed",
  error: {
    message: "The provider sent a stream event that is no valid JSON.",
    code: "upstream_error",
    type: "upstream_error",
  },
};

/** An error event that is a sentence. */
export const textError = (text: string): ErrorPart => ({
  type: "error",
  fault: "reported",
  error: { message: text === "" ? "The provider ended the stream with an error." : text },
});
