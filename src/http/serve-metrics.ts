import type { Server } from "bun";

/** Serves metrics on a port of their own, so that they need not be reachable where the API is. */
export function serveMetrics(
  metrics: { text(): Promise<string>; contentType: string },
  { host, port }: { host: string; port: number },
): Server<undefined> {
  return Bun.serve({
    hostname: host,
    port,
    development: false,
    reusePort: false,
    routes: {
      "/metrics": async () =>
        new Response(await metrics.text(), { headers: { "content-type": metrics.contentType } }),
    },
    fetch: () => new Response("Only /metrics is served here.\n", { status: 404 }),
  });
}
