import { errorAddress, type GatewayError } from "../platform/kernel/errors.ts";
import type { Endpoint } from "./endpoint.ts";
import { asGatewayError, errorHeaders, type ErrorEncoder } from "./error-envelope.ts";
import type { Answer } from "./reply.ts";
import { pathOf, type RequestContext } from "./request-context.ts";
import type { Compiling } from "./router-options.ts";

/** The answer to a request that was refused or failed, in the dialect of its client. */
export function errorResponse<Dependencies, Caller>(
  thrown: unknown,
  {
    context,
    options,
    encodeError,
    endpoint,
  }: {
    context: RequestContext<unknown, Caller>;
    options: Compiling<Dependencies, Caller>;
    encodeError: ErrorEncoder;
    endpoint?: Endpoint<Dependencies, unknown, Caller>;
  },
): Answer {
  const error = asGatewayError(thrown);
  const { traceId, request, caller } = context;
  error.metadata["doc_url"] ??= errorAddress(options.publicUrl(), error.code);
  options.onError(error, { traceId, method: request.method, path: pathOf(request), caller });
  if (!("x-ratelimit-limit" in context.headers))
    Object.assign(context.headers, options.guard.windowHeaders(context.caller));
  const headers = { ...errorHeaders(error), ...challengeOf(error, { context, options, endpoint }) };
  return (
    options.errorPage(error, { context, headers }) ??
    context.json(encodeError(error, { traceId: context.traceId }), {
      status: error.status,
      headers,
    })
  );
}

/**
 * Where a client learns how to get a credential for a protected resource (RFC 9728, section 5.1;
 * RFC 6750, section 3).
 */
function challengeOf<Dependencies, Caller>(
  { status, code }: GatewayError,
  {
    context,
    options,
    endpoint,
  }: {
    context: RequestContext<unknown, Caller>;
    options: Compiling<Dependencies, Caller>;
    endpoint: Endpoint<Dependencies, unknown, Caller> | undefined;
  },
): Record<string, string> {
  if (status !== 401 || !endpoint?.protectedResource) return {};
  const metadata = `${options.publicUrl()}/.well-known/oauth-protected-resource${pathOf(context.request).replace(/\/$/, "")}`;
  const refused = code === "missing_api_key" ? "" : ', error="invalid_token"';
  return { "www-authenticate": `Bearer resource_metadata="${metadata}"${refused}` };
}
