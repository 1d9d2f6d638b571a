import type { Server } from "bun";
import type { CompiledRoutes } from "./router.ts";
import type { BunRequest } from "bun";

/** Bodies are bounded by each endpoint, with an answer in its dialect; this is only the last wall behind them. */
const bodyBytesWall = 1024 * 1024 * 1024;

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
  });
}
