import { testLlmKey } from "../../test/support/gateway.ts";

/** How often a relay of bytes costs what a picture in an event may cost. */
const timesMax = 3;

/** Pictures that are sent before those that are measured, and those. */
const warmUp = 100;
const measured = 100;

/** Returns a stream of chat with a picture of so many bytes in base64, in one line. */
export function pictureStream(base64Bytes: number): Uint8Array {
  const data = Buffer.alloc((base64Bytes / 4) * 3, 7).toString("base64");
  const images = [
    { type: "image_url", image_url: { url: `data:image/png;base64,${data}` }, index: 0 },
  ];
  const event = {
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "chat",
    choices: [
      { index: 0, delta: { role: "assistant", content: "Here.", images }, finish_reason: "stop" },
    ],
    usage: { prompt_tokens: 10, completion_tokens: 1_125, total_tokens: 1_135 },
  };
  return Buffer.from(`data: ${JSON.stringify(event)}\n\ndata: [DONE]\n\n`);
}

/** Passes the bytes of every answer of an upstream on, in a process of its own. */
export function serveRelay(upstream: string): void {
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const body = await request.text();
      const answer = await fetch(`${upstream}/chat/completions`, { method: "POST", body });
      return new Response(answer.body, { headers: { "content-type": "text/event-stream" } });
    },
  });
  console.log(`http://127.0.0.1:${server.port}`);
}

/** Returns the milliseconds that a process has spent on the processor (proc(5), stat). */
async function cpuMsOf(pid: number): Promise<number> {
  const fields = (await Bun.file(`/proc/${pid}/stat`).text()).split(" ");
  return (Number(fields[13]) + Number(fields[14])) * 10;
}

async function askForPicture(url: string): Promise<void> {
  const response = await fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${testLlmKey}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "bench/chat",
      stream: true,
      messages: [{ role: "user", content: "a picture" }],
    }),
  });
  const { byteLength } = await response.arrayBuffer();
  if (!response.ok || byteLength < 1_000_000)
    throw new Error(`picture: ${response.status}, ${byteLength} bytes`);
}

async function cpuOfPicture({ url, pid }: { url: string; pid: number }): Promise<number> {
  for (let index = 0; index < warmUp; index += 1) await askForPicture(url);
  const before = await cpuMsOf(pid);
  for (let index = 0; index < measured; index += 1) await askForPicture(url);
  return ((await cpuMsOf(pid)) - before) / measured;
}

/** Prints what a picture in one event costs the gateway and a relay. Returns whether it is little. */
export async function reportPictures(
  gateway: { origin: string; pid: number },
  relay: { url: string; pid: number },
): Promise<boolean> {
  const relayMs = await cpuOfPicture(relay);
  const { origin, pid } = gateway;
  const gatewayMs = await cpuOfPicture({ url: `${origin}/v1/chat/completions`, pid });
  console.log(
    `a picture of 4 MB in one event: ${gatewayMs.toFixed(1)} ms of a processor, ${relayMs.toFixed(1)} ms for a relay of its bytes`,
  );
  return gatewayMs <= relayMs * timesMax;
}
