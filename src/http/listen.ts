import type { Server } from "bun";
import type { CompiledRoutes } from "./router.ts";
import type { BunRequest } from "bun";

/**
 * Bodies are bounded where they are read, with an answer in the endpoint's dialect. A limit of the server's own
 * would close the connection without an answer; what nobody reads is not kept either way.
 */
const bodyBytesWall = Number.MAX_SAFE_INTEGER;

/** Opens the listening socket. Streams may be quiet for long, so no idle timeout ends them: their own deadlines do. */
export function listen(options: {
  host: string;
  port: number;
  routes: CompiledRoutes;
  fallback: (request: BunRequest, server: Server<undefined>) => Response | Promise<Response>;
}): Server<undefined> {
  return Bun.serve({
    hostname: options.host,
    port: options.port,
    idleTimeout: 0,
    maxRequestBodySize: bodyBytesWall,
    routes: options.routes as never,
    fetch: (request, server) => options.fallback(request as BunRequest, server),
    development: false,
    // Bun lets processes share a port once it is not developing: a second gateway would take every other connection.
    reusePort: false,
  });
}
