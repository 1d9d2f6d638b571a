import { z } from "zod";
import { chatBody } from "./load/chat-request.ts";
import { contentEvents } from "./mock-responses.ts";
import type { Peer, RunningPeer } from "./peers/peer.ts";

const timeoutMs = 10_000;
const usageSchema = z.object({
  usage: z.object({ total_tokens: z.number(), cost: z.number().optional() }),
});
const chunkSchema = z.object({
  choices: z.array(z.object({ delta: z.object({ content: z.string().nullish() }).optional() })),
  usage: z.object({ cost: z.number().optional() }).nullish(),
});

/**
 * Asks one whole and one streamed answer of a peer and throws, in words, when they are not what is
 * to be timed.
 */
export async function verifyPeer(peer: Peer, running: RunningPeer): Promise<void> {
  const { usage } = usageSchema.parse(JSON.parse(await ask({ peer, running, stream: false })));
  if (peer.chargesRequests && (usage.cost ?? 0) <= 0)
    throw new Error("the answer shows no usage.cost");
  const events = (await ask({ peer, running, stream: true }))
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice("data:".length).trim());
  if (events.at(-1) !== "[DONE]") throw new Error("the stream does not end with [DONE]");
  const chunks = events.slice(0, -1).map((event) => chunkSchema.parse(JSON.parse(event)));
  const withContent = chunks.filter((chunk) =>
    chunk.choices.some((choice) => choice.delta?.content),
  ).length;
  if (withContent !== contentEvents)
    throw new Error(`${withContent} content events instead of ${contentEvents}`);
  const cost = chunks.find((chunk) => chunk.usage?.cost !== undefined)?.usage?.cost ?? 0;
  if (peer.chargesRequests && cost <= 0) throw new Error("the stream shows no usage.cost");
}

interface Question {
  peer: Peer;
  running: RunningPeer;
  stream: boolean;
}

async function ask({ peer, running, stream }: Question): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${running.port}${peer.path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...peer.headers },
    body: chatBody({ model: `${peer.modelPrefix}large`, stream, bodyBytes: 1_000 }),
    signal: AbortSignal.timeout(timeoutMs),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`status ${response.status}: ${text.slice(0, 300)}`);
  return text;
}
