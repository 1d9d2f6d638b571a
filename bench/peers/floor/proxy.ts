/**
 * The least that this runtime needs for a durable, metered proxy: `Bun.serve` and `fetch`, both
 * bodies parsed, two rows appended by a database thread in group commits, the answer sent once they
 * are durable. It knows no credential, limit, hold, route, price or translation. Streams are relayed
 * as they come and their rows appended at the end.
 *
 * Usage: bun proxy.ts FULL|NORMAL UPSTREAM_CHAT_URL DATABASE_FILE
 */
import type { Row } from "./writer.ts";

const [synchronous = "NORMAL", upstream = "", file = "floor.db"] = process.argv.slice(2);
const detail = "x".repeat(520);

const writer = new Worker(new URL("./writer.ts", import.meta.url));
writer.postMessage({ file, synchronous });
let waiting: { row: Row; done: () => void }[] = [];
let underWay: typeof waiting | undefined;
let isScheduled = false;
let count = 0;

function sendBatch(): void {
  isScheduled = false;
  if (underWay !== undefined || waiting.length === 0) return;
  [underWay, waiting] = [waiting, []];
  writer.postMessage(JSON.stringify(underWay.map(({ row }) => row)));
}

writer.onmessage = () => {
  const committed = underWay ?? [];
  underWay = undefined;
  for (const { done } of committed) done();
  sendBatch();
};

const commit = (model: string, [input, output]: [number, number]): Promise<void> =>
  new Promise((done) => {
    count += 1;
    const id = `gen_${1e12 + count}`;
    const key = `key_${count % 50}`;
    waiting.push({
      row: [id, "ws_1", key, Date.now(), model, 12_345, input, output, detail],
      done,
    });
    if (underWay !== undefined || isScheduled) return;
    isScheduled = true;
    setImmediate(sendBatch);
  });

async function* relay(body: ReadableStream<Uint8Array>, model: string) {
  for await (const chunk of body) yield chunk;
  await commit(model, [0, 0]);
}

async function answer(request: Request): Promise<Response> {
  const body = await request.text();
  const { model } = JSON.parse(body) as { model: string };
  const headers = { "content-type": "application/json", authorization: "Bearer upstream" };
  const response = await fetch(upstream, { method: "POST", body, headers });
  const type = response.headers.get("content-type") ?? "application/json";
  if (type.startsWith("text/event-stream") && response.body)
    return new Response(relay(response.body, model), { headers: { "content-type": type } });
  const text = await response.text();
  const { usage } = JSON.parse(text) as {
    usage: { prompt_tokens: number; completion_tokens: number };
  };
  await commit(model, [usage.prompt_tokens, usage.completion_tokens]);
  return new Response(text, { headers: { "content-type": type } });
}

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 0,
  fetch: (request) => answer(request),
});
console.log(`ready http://127.0.0.1:${server.port}`);
