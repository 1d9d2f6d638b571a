import type { ClientUnderTest } from "../support/client-under-test.ts";

/** The classes of errors of Anthropic's packages. */
export const anthropicErrorNames: ClientUnderTest["errorNames"] = {
  400: "BadRequestError",
  401: "AuthenticationError",
  404: "NotFoundError",
  429: "RateLimitError",
  502: "InternalServerError",
};
