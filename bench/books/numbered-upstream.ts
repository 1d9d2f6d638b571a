import { z } from "zod";

const requestSchema = z.object({ stream: z.boolean().default(false) });
const usage = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 };
const words = ["One ", "two ", "three."];

/** A provider of OpenAI's chat dialect whose every answer has an id of its own. */
export interface NumberedUpstream {
  port: number;
  /** Chat requests so far. */
  requests(): number;
  stop(): void;
}

/** Starts it on a free port of loopback. */
export function startNumberedUpstream(): NumberedUpstream {
  let count = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      if (request.method !== "POST") return Response.json({ data: [] });
      const { stream } = requestSchema.parse(await request.json());
      count += 1;
      const id = `chatcmpl-upstream-${count}`;
      return stream ? streamed(id) : Response.json(completion(id));
    },
  });
  return {
    port: server.port ?? 0,
    requests: () => count,
    stop: () => void server.stop(true),
  };
}

const common = (id: string) => ({ id, created: 1_700_000_000, model: "large" });

const completion = (id: string) => ({
  ...common(id),
  object: "chat.completion",
  choices: [
    { index: 0, message: { role: "assistant", content: words.join("") }, finish_reason: "stop" },
  ],
  usage,
});

function streamed(id: string): Response {
  const chunk = (choices: unknown[], rest = {}): string =>
    `data: ${JSON.stringify({ ...common(id), object: "chat.completion.chunk", choices, ...rest })}\n\n`;
  const events = words.map((content, index) =>
    chunk([
      {
        index: 0,
        delta: { role: "assistant", content },
        finish_reason: index === words.length - 1 ? "stop" : null,
      },
    ]),
  );
  const body = [...events, chunk([], { usage }), "data: [DONE]\n\n"].join("");
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}
