import type { Server, ServerWebSocket } from "bun";

/** What a provider of sessions has received. */
export interface RealtimeUpstream {
  /** Below this, sessions are opened at `/realtime`. */
  readonly baseUrl: string;
  /** The queries and headers of the handshakes. */
  readonly handshakes: { query: URLSearchParams; headers: Headers }[];
  /** The events of all sessions. */
  readonly events: Record<string, unknown>[];
  /** The usage that the next responses report; none where it is null. */
  usage: Record<string, unknown> | null;
  /** Whether responses wait for `finish`. */
  waits: boolean;
  /** Ends the responses in progress. */
  finish(status?: string): void;
  /** Closes every session with a code, or cuts its connection. */
  closeAll(code?: number): void;
  stop(): void;
}

/** The usage of a response in text and sound, some of both from a cache. */
export const mixedUsage = {
  total_tokens: 330,
  input_tokens: 230,
  output_tokens: 100,
  input_token_details: {
    text_tokens: 130,
    audio_tokens: 100,
    cached_tokens: 90,
    cached_tokens_details: { text_tokens: 50, audio_tokens: 40 },
  },
  output_token_details: { text_tokens: 20, audio_tokens: 80 },
};

const firstSession = { type: "realtime", id: "sess_1", model: "gpt-realtime-up" };

/** Starts a provider that speaks OpenAI's Realtime API (GA) and answers each `response.create`. */
export function startRealtimeUpstream(): RealtimeUpstream {
  const sockets = new Set<ServerWebSocket<unknown>>();
  const running = new Map<string, ServerWebSocket<unknown>>();
  let count = 0;
  const send = (socket: ServerWebSocket<unknown>, event: object): void =>
    void socket.send(JSON.stringify({ event_id: `event_${(count += 1)}`, ...event }));
  const end = (id: string, status: string): void => {
    const socket = running.get(id);
    running.delete(id);
    if (socket === undefined) return;
    const { usage } = upstream;
    send(socket, {
      type: "response.done",
      response: { id, object: "realtime.response", status, usage },
    });
  };
  const answer = (socket: ServerWebSocket<unknown>): void => {
    const id = `resp_${(count += 1)}`;
    running.set(id, socket);
    send(socket, { type: "response.created", response: { id, status: "in_progress" } });
    send(socket, { type: "response.output_text.delta", response_id: id, delta: "Hello." });
    if (!upstream.waits) end(id, "completed");
  };
  const server: Server<unknown> = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    fetch(request, self) {
      const { searchParams: query } = new URL(request.url);
      upstream.handshakes.push({ query, headers: request.headers });
      if (request.headers.get("authorization") !== "Bearer upstream-secret")
        return new Response("no", { status: 401 });
      return self.upgrade(request, { data: undefined })
        ? undefined
        : new Response("no", { status: 400 });
    },
    websocket: {
      open(socket) {
        sockets.add(socket);
        send(socket, { type: "session.created", session: firstSession });
      },
      message(socket, text) {
        const event = JSON.parse(String(text)) as Record<string, unknown>;
        upstream.events.push(event);
        const { type, session, response_id: id } = event;
        if (type === "session.update") send(socket, { type: "session.updated", session });
        if (type === "response.create") answer(socket);
        if (type === "response.cancel") end(String(id), "cancelled");
      },
      close: (socket) => void sockets.delete(socket),
    },
  });
  const upstream: RealtimeUpstream = {
    baseUrl: `http://127.0.0.1:${server.port}/v1`,
    handshakes: [],
    events: [],
    usage: mixedUsage,
    waits: false,
    finish(status = "completed") {
      for (const id of [...running.keys()]) end(id, status);
    },
    closeAll(code) {
      for (const socket of sockets) {
        if (code === undefined) socket.terminate();
        else socket.close(code, "over");
      }
    },
    stop: () => void server.stop(true),
  };
  return upstream;
}
