import type { GatewayError } from "../platform/lib/errors.ts";
import { describeWindow } from "./count-request.ts";
import type { Endpoint } from "./endpoint.ts";
import { asGatewayError, errorHeaders, type ErrorEncoder } from "./error-envelope.ts";
import type { Answer } from "./reply.ts";
import type { RequestContext } from "./request-context.ts";
import { pathOf } from "./request-target.ts";
import type { Compiling } from "./router-options.ts";

/** The answer to a request that was refused or failed, in the dialect of its client. */
export function errorResponse<Dependencies>(
  thrown: unknown,
  {
    context,
    options,
    encodeError,
    endpoint,
  }: {
    context: RequestContext;
    options: Compiling<Dependencies>;
    encodeError: ErrorEncoder;
    endpoint?: Endpoint<Dependencies>;
  },
): Answer {
  const error = asGatewayError(thrown);
  const { traceId, request, caller } = context;
  error.metadata["doc_url"] ??=
    `${options.sessions.publicUrl()}/docs/reference/errors#${error.code}`;
  options.onError(error, { traceId, method: request.method, path: pathOf(request), caller });
  if (!("x-ratelimit-limit" in context.headers))
    Object.assign(context.headers, describeWindow(options.counters, context.caller));
  const headers = { ...errorHeaders(error), ...challengeOf(error, { context, options, endpoint }) };
  return (
    options.errorPage(error, { context, headers }) ??
    context.json(encodeError(error, { traceId: context.traceId }), {
      status: error.status,
      headers,
    })
  );
}

/** Where a client learns how to get a credential for a protected resource (RFC 9728, section 5.1; RFC 6750, section 3). */
function challengeOf<Dependencies>(
  { status, code }: GatewayError,
  {
    context,
    options,
    endpoint,
  }: {
    context: RequestContext;
    options: Compiling<Dependencies>;
    endpoint: Endpoint<Dependencies> | undefined;
  },
): Record<string, string> {
  if (status !== 401 || !endpoint?.protectedResource) return {};
  const metadata = `${options.sessions.publicUrl()}/.well-known/oauth-protected-resource${pathOf(context.request).replace(/\/$/, "")}`;
  const refused = code === "missing_api_key" ? "" : ', error="invalid_token"';
  return { "www-authenticate": `Bearer resource_metadata="${metadata}"${refused}` };
}
