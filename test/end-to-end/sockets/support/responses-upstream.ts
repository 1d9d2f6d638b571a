import type { Server, ServerWebSocket } from "bun";

type Fields = Record<string, unknown>;

/** What a socket of the double remembers: its latest response with the whole conversation. */
interface Memory {
  latest: { id: string; items: unknown[] } | undefined;
}

type Socket = ServerWebSocket<Memory>;

/** What happens to the next frame in place of an answer. */
export type Fault = "close" | "not-found" | "limit" | "refusal" | "close-within" | "error-within";

const headers = { "content-type": "text/event-stream" };

/**
 * A provider of Responses over HTTP and over OpenAI's socket, strictly: frames have no members of
 * HTTP, one response runs at a time, only the latest can be continued, and nothing after an error.
 */
export class ResponsesUpstream {
  /** Counts handshakes, refused ones too. */
  handshakes = 0;
  /** The frames of all sockets, and the bodies of requests. */
  readonly frames: Fields[] = [];
  readonly requests: Fields[] = [];
  /** What happens to the next frame. */
  fault: Fault | undefined;
  /** Whether handshakes are refused. */
  refuses = false;
  /** Whether responses on sockets wait for `finish` after their first text. */
  waits = false;
  private readonly sockets = new Set<Socket>();
  private readonly running = new Map<Socket, () => void>();
  private count = 0;
  private readonly server: Server<Memory>;

  constructor() {
    this.server = Bun.serve<Memory>({
      ...{ port: 0, hostname: "127.0.0.1" },
      fetch: (request, server) => this.fetched(request, server),
      websocket: {
        open: (socket) => void this.sockets.add(socket),
        message: (socket, text) => this.received(socket, text),
        close: (socket) => {
          this.sockets.delete(socket);
          this.running.delete(socket);
        },
      },
    });
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.server.port}/v1`;
  }

  /** The number of open sockets. */
  get socketCount(): number {
    return this.sockets.size;
  }

  /** Ends the responses in progress. */
  finish(): void {
    for (const end of [...this.running.values()]) end();
  }

  /** Closes every socket. */
  closeAll(): void {
    for (const socket of this.sockets) socket.close(1001, "over");
  }

  /** Forgets what was received, and answers as at first. */
  reset(): void {
    this.closeAll();
    this.handshakes = 0;
    this.frames.length = 0;
    this.requests.length = 0;
    this.fault = undefined;
    this.refuses = false;
    this.waits = false;
  }

  stop(): void {
    void this.server.stop(true);
  }

  private async fetched(request: Request, server: Server<Memory>): Promise<Response | undefined> {
    const { pathname } = new URL(request.url);
    if (pathname !== "/v1/responses") return new Response("no", { status: 404 });
    const isKnown = request.headers.get("authorization") === "Bearer upstream-secret";
    if (request.headers.get("upgrade") === "websocket") {
      this.handshakes += 1;
      if (!isKnown || this.refuses) return new Response("no", { status: 401 });
      const data = { latest: undefined };
      return server.upgrade(request, { data }) ? undefined : new Response("no", { status: 400 });
    }
    if (!isKnown) return new Response("no", { status: 401 });
    const body = (await request.json()) as Fields;
    this.requests.push(body);
    const wrong = ["type", "previous_response_id", "generate"].find((name) => name in body);
    if (wrong !== undefined || body["stream"] !== true || body["store"] !== false)
      return Response.json({ error: { message: `wrong: ${wrong}` } }, { status: 400 });
    const events = this.eventsOf(itemsOf(body["input"]), this.nextId());
    const lines = events.map(
      (event) => `event: ${event["type"]}\ndata: ${JSON.stringify(event)}\n\n`,
    );
    return new Response(lines.join(""), { headers });
  }

  private received(socket: Socket, text: string | Buffer): void {
    const frame = JSON.parse(String(text)) as Fields;
    this.frames.push(frame);
    const { fault } = this;
    this.fault = undefined;
    if (fault === "close") return socket.close(1011, "over");
    if (fault === "not-found") return this.refuse(socket, "previous_response_not_found");
    if (fault === "refusal") return this.refuse(socket, "server_error", 500);
    if (fault === "limit") {
      this.refuse(socket, "websocket_connection_limit_reached");
      return socket.close(1000, "over");
    }
    const wrong = ["stream", "background", "stream_id"].find((name) => name in frame);
    if (typeof text !== "string" || frame["type"] !== "response.create" || wrong !== undefined)
      return this.refuse(socket, "invalid_frame");
    if (frame["store"] !== false || this.running.has(socket))
      return this.refuse(socket, "invalid_request");
    const { latest } = socket.data;
    const previous = frame["previous_response_id"];
    if (previous !== undefined && previous !== latest?.id)
      return this.refuse(socket, "previous_response_not_found");
    const before = previous === undefined ? [] : (latest?.items ?? []);
    return this.answer(socket, { items: [...before, ...itemsOf(frame["input"])], fault });
  }

  private answer(
    socket: Socket,
    { items, fault }: { items: unknown[]; fault: Fault | undefined },
  ): void {
    const id = this.nextId();
    const events = this.eventsOf(items, id);
    const send = (event: Fields): void => void socket.send(JSON.stringify(event));
    const early = events.findIndex(({ type }) => type === "response.output_text.delta") + 1;
    events.slice(0, early).forEach(send);
    if (fault === "close-within") return socket.close(1011, "over");
    if (fault === "error-within") return this.refuse(socket, "server_error", 500);
    const end = (): void => {
      this.running.delete(socket);
      events.slice(early).forEach(send);
      const { output } = Object(events.at(-1)?.["response"]) as { output: unknown[] };
      socket.data.latest = { id, items: [...items, ...output] };
    };
    this.running.set(socket, end);
    if (!this.waits) end();
  }

  private refuse(socket: Socket, code: string, status = 400): void {
    socket.data.latest = undefined;
    const type = status < 500 ? "invalid_request_error" : "server_error";
    const error = { type, code, message: `Refused: ${code}`, param: null };
    socket.send(JSON.stringify({ type: "error", status, error }));
  }

  /** Ten tokens are counted for each item of the conversation, and five for the answer. */
  private eventsOf(items: readonly unknown[], id: string): Fields[] {
    const text = `Answer to ${items.length} items.`;
    const at = { item_id: `msg_${id}`, output_index: 0, content_index: 0 };
    const part = { type: "output_text", text, annotations: [], logprobs: [] };
    const item = { id: at.item_id, type: "message", role: "assistant" };
    const whole = { ...item, status: "completed", content: [part] };
    const head = { id, object: "response", created_at: 1_700_000_000, model: "up", error: null };
    const begun = { ...head, status: "in_progress", output: [], usage: null };
    const usage = {
      input_tokens: 10 * items.length,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 10 * items.length + 5,
    };
    const open = { ...item, status: "in_progress", content: [] };
    return [
      { type: "response.created", response: begun },
      { type: "response.output_item.added", output_index: 0, item: open },
      { type: "response.content_part.added", ...at, part: { ...part, text: "" } },
      { type: "response.output_text.delta", ...at, delta: text, logprobs: [] },
      { type: "response.output_text.done", ...at, text, logprobs: [] },
      { type: "response.content_part.done", ...at, part },
      { type: "response.output_item.done", output_index: 0, item: whole },
      {
        type: "response.completed",
        response: { ...head, status: "completed", output: [whole], usage },
      },
    ].map((event, index) => ({ ...event, sequence_number: index }));
  }

  private nextId(): string {
    return `resp_upstream_${(this.count += 1)}`;
  }
}

/** Returns the items of an input, which may be a text. */
const itemsOf = (input: unknown): unknown[] =>
  Array.isArray(input) ? (input as unknown[]) : [{ type: "message", role: "user", content: input }];
