import { bindToParent } from "../process/bind-to-parent.ts";

/** Numbers of one vector: a common size. */
const dimensions = 1_536;

const embedding = Array.from(
  { length: dimensions },
  (_, index) => Math.round(Math.sin(index) * 1e8) / 1e8,
);
const answer = JSON.stringify({
  object: "list",
  data: [{ object: "embedding", index: 0, embedding }],
  model: "embed",
  usage: { prompt_tokens: 250, total_tokens: 250 },
});
let requests = 0;

/**
 * The least that answers a request for embeddings: it reads the body and sends the same answer to
 * each. Also the gateway's provider.
 */
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    if (request.method === "GET") return Response.json({ requests });
    requests += 1;
    await request.text();
    return new Response(answer, { headers: { "content-type": "application/json" } });
  },
});

console.log(`bare ready ${server.port}`);
bindToParent();
