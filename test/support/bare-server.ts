/*
 * What the platform does by itself: reads each body whole and answers 200, with nothing of the
 * gateway in between. Tests of cost run it beside the gateway as a process of its own.
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
