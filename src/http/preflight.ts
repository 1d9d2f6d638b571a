import { anyOrigin } from "./endpoint.ts";
import { Reply } from "./reply.ts";
import type { RequestContext } from "./request-context.ts";

/**
 * Answers a CORS preflight: whether pages of other origins may send a request (Fetch, "CORS
 * protocol").
 */
export function preflight({ request, headers }: RequestContext, methods: readonly string[]): Reply {
  const wanted = request.headers.get("access-control-request-headers");
  return new Reply("", {
    status: 204,
    headers: {
      ...headers,
      ...anyOrigin,
      "access-control-allow-methods": methods.join(", "),
      "access-control-max-age": "86400",
      vary: "access-control-request-headers",
      ...(wanted !== null && headerNames.test(wanted)
        ? { "access-control-allow-headers": wanted }
        : {}),
    },
  });
}

const headerNames = /^[\w\-, ]{1,2048}$/;
