/*
 * A server that only reads each body and answers 200, to measure what the platform itself costs.
 * Performance tests run it beside the gateway as a separate process.
 */
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  maxRequestBodySize: 64 * 1024 * 1024,
  async fetch(request) {
    await request.arrayBuffer();
    return new Response("{}");
  },
});
process.stdout.write(`switchyard ready ${server.url.origin}\n`);
