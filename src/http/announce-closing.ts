import type { BunRequest, Server } from "bun";
import type { CompiledRoutes } from "./router.ts";

type Handler = (request: BunRequest, server: Server<undefined>) => Response | Promise<Response>;

/** The handler, whose answers tell the client to send its next request on another connection. */
const closing = (handler: Handler): Handler => async (request, server) => {
  const response = await handler(request, server);
  // RFC 9112 section 9.6.
  response.headers.set("connection", "close");
  return response;
};

/**
 * From now on every answer closes its connection. A server that stops at once closes connections that
 * are idle for the moment, and the request that is already on its way to it is lost; clients that were
 * told so beforehand send it elsewhere.
 */
export function announceClosing(
  server: Server<undefined>,
  { routes, fallback }: { routes: CompiledRoutes; fallback: Handler },
): void {
  const closingRoutes = Object.entries(routes).map(([path, methods]) => {
    const handlers = Object.entries(methods).flatMap(([method, handler]) => (handler ? [[method, closing(handler)] as const] : []));
    return [path, Object.fromEntries(handlers)] as const;
  });
  const closingFallback = closing(fallback);
  server.reload({
    routes: Object.fromEntries(closingRoutes) as never,
    fetch: (request) => closingFallback(request as BunRequest, server),
  });
}
