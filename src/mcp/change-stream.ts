/** The lists that a server can say have changed. */
export const listKinds = ["tools", "prompts", "resources"] as const;
export type ListKind = (typeof listKinds)[number];

/** How changes reach a client. */
export interface ChangeSink {
  send(kind: ListKind): void;
  /** Ends the stream. */
  end(): void;
}

/** A stream on which a client hears that lists have changed. */
export interface ChangeStream {
  /** Names where changes go. Until then they are dropped. */
  attach(sink: ChangeSink): void;
  /** Takes the stream out: its client has left, or it was never opened. */
  close(): void;
}

/** Milliseconds between signs of life: well below the minute after which proxies cut silence. */
const pingMs = 15_000;

const frameOf = (kind: ListKind): string => {
  const message = { jsonrpc: "2.0", method: `notifications/${kind}/list_changed` };
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
};

/**
 * Returns the stream that a client of the older generation opens with GET (MCP up to 2025-11-25,
 * "Listening for Messages from the Server"). It begins with a comment, so that the client has the
 * headers at once.
 */
export function changeEvents(stream: ChangeStream, signal: AbortSignal): Response {
  const encoder = new TextEncoder();
  let pinging: ReturnType<typeof setInterval> | undefined;
  const leave = (): void => {
    clearInterval(pinging);
    signal.removeEventListener("abort", leave);
    stream.close();
  };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const write = (text: string): void => controller.enqueue(encoder.encode(text));
      write(": open\n\n");
      pinging = setInterval(() => write(": ping\n\n"), pingMs);
      stream.attach({
        send: (kind) => write(frameOf(kind)),
        end: () => {
          leave();
          controller.close();
        },
      });
    },
    cancel: leave,
  });
  signal.addEventListener("abort", leave);
  return new Response(body, {
    headers: { "content-type": "text/event-stream", "cache-control": "no-cache, no-transform" },
  });
}
