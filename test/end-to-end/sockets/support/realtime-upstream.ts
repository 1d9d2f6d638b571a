import type { Server, ServerWebSocket } from "bun";

type Event = Record<string, unknown>;

/** What a session of the double remembers. */
interface Session {
  kind: "realtime" | "transcription" | "translation";
  /** The model of transcripts, once it was set. */
  transcription: string | undefined;
  soundBytes: number;
}

type Socket = ServerWebSocket<Session>;

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

/** Members of the beta, which GA refuses as unknown. */
const betaMembers = [
  "modalities",
  "voice",
  "input_audio_format",
  "output_audio_format",
  "input_audio_transcription",
  "turn_detection",
  "temperature",
  "max_response_output_tokens",
];

const fieldsOf = (value: unknown): Event => Object(value) as Event;

const sessions = {
  realtime: { type: "realtime", id: "sess_1", model: "gpt-realtime-up" },
  transcription: { type: "transcription", id: "sess_2", audio: { input: {} } },
  translation: { type: "translation", id: "sess_3", model: "gpt-translate-up" },
};

/**
 * A provider that speaks OpenAI's Realtime API (GA) strictly: it refuses the beta's header and
 * members, sessions of another type, and models that it does not know.
 */
export class RealtimeUpstream {
  /** The addresses and headers of the handshakes. */
  readonly handshakes: { path: string; query: URLSearchParams; headers: Headers }[] = [];
  /** The events of all sessions. */
  readonly events: Event[] = [];
  /** The usage that the next responses report; none where it is null. */
  usage: Event | null = mixedUsage;
  /** The usages that were reported, of responses and of transcripts. */
  readonly reports: { responses: unknown[]; transcripts: unknown[] } = {
    responses: [],
    transcripts: [],
  };
  /** The usage of the next transcripts; by their length where it is undefined. */
  transcriptUsage: Event | undefined;
  /** Whether responses wait for `finish`. */
  waits = false;
  private readonly sockets = new Set<Socket>();
  private readonly running = new Map<string, Socket>();
  private count = 0;
  private readonly server: Server<Session>;

  constructor() {
    this.server = Bun.serve<Session>({
      ...{ port: 0, hostname: "127.0.0.1" },
      fetch: (request, server) => this.handshake(request, server),
      websocket: {
        open: (socket) => {
          this.sockets.add(socket);
          this.send(socket, { type: "session.created", session: sessions[socket.data.kind] });
        },
        message: (socket, text) => {
          const event = JSON.parse(String(text)) as Event;
          this.events.push(event);
          this.received(socket, event);
        },
        close: (socket) => void this.sockets.delete(socket),
      },
    });
  }

  /** Below this, sessions are opened at `/realtime`. */
  get baseUrl(): string {
    return `http://127.0.0.1:${this.server.port}/v1`;
  }

  /** The number of open sessions. */
  get openCount(): number {
    return this.sockets.size;
  }

  /** Ends the responses in progress. */
  finish(status = "completed"): void {
    for (const id of [...this.running.keys()]) this.end(id, status);
  }

  /** Sends an event to every session. */
  tell(event: Event): void {
    for (const socket of this.sockets) this.send(socket, event);
  }

  /** Closes every session with a code, or cuts its connection. */
  closeAll(code?: number): void {
    for (const socket of this.sockets) {
      if (code === undefined) socket.terminate();
      else socket.close(code, "over");
    }
  }

  stop(): void {
    void this.server.stop(true);
  }

  private handshake(request: Request, server: Server<Session>): Response | undefined {
    const { searchParams: query, pathname: path } = new URL(request.url);
    this.handshakes.push({ path, query, headers: request.headers });
    if (request.headers.get("authorization") !== "Bearer upstream-secret")
      return new Response("no", { status: 401 });
    if (request.headers.has("openai-beta")) return new Response("no beta", { status: 400 });
    const kind = path.endsWith("/translations")
      ? "translation"
      : query.get("intent") === "transcription"
        ? "transcription"
        : "realtime";
    const data = { kind, transcription: undefined, soundBytes: 0 } as const;
    return server.upgrade(request, { data }) ? undefined : new Response("no", { status: 400 });
  }

  private received(socket: Socket, event: Event): void {
    switch (event["type"]) {
      case "session.update":
        return this.update(socket, event);
      case "response.create":
        if (socket.data.kind !== "realtime") return this.fail(socket, "no responses here");
        return this.answer(socket);
      case "response.cancel":
        return this.end(String(event["response_id"]), "cancelled");
      case "input_audio_buffer.append":
        socket.data.soundBytes += Buffer.from(String(event["audio"]), "base64").byteLength;
        return undefined;
      case "input_audio_buffer.commit":
        return this.commit(socket);
      case "input_audio_buffer.clear":
        socket.data.soundBytes = 0;
        return this.send(socket, { type: "input_audio_buffer.cleared" });
      case "conversation.item.create": {
        const item = { id: this.id("item"), status: "completed", ...fieldsOf(event["item"]) };
        this.send(socket, { type: "conversation.item.added", item });
        return this.send(socket, { type: "conversation.item.done", item });
      }
      case "session.input_audio_buffer.append":
        return this.send(socket, { type: "session.output_transcript.delta", delta: "Hola" });
      case "session.close":
        this.send(socket, { type: "session.closed" });
        return socket.close(1000);
      default:
        return undefined;
    }
  }

  private update(socket: Socket, event: Event): void {
    const session = fieldsOf(event["session"]);
    const { kind } = socket.data;
    const wrong = betaMembers.find((name) => session[name] !== undefined);
    if (wrong !== undefined) return this.fail(socket, `Unknown parameter: 'session.${wrong}'.`);
    if (session["type"] !== kind && kind !== "translation")
      return this.fail(socket, `Passing a ${session["type"]} update event to a ${kind} session`);
    const { transcription } = fieldsOf(fieldsOf(session["audio"])["input"]);
    const { model } = fieldsOf(transcription);
    if (model !== undefined && model !== "whisper-up" && model !== "transcribe-up")
      return this.fail(socket, `Invalid transcription model ${String(model)}`);
    if (transcription !== undefined)
      socket.data.transcription = model === undefined ? undefined : String(model);
    return this.send(socket, { type: "session.updated", session });
  }

  private commit(socket: Socket): void {
    const itemId = this.id("item");
    const seconds = socket.data.soundBytes / 48_000;
    socket.data.soundBytes = 0;
    this.send(socket, { type: "input_audio_buffer.committed", item_id: itemId });
    if (socket.data.transcription === undefined) return;
    const base = "conversation.item.input_audio_transcription";
    this.send(socket, { type: `${base}.delta`, item_id: itemId, content_index: 0, delta: "Hel" });
    const usage = this.transcriptUsage ?? { type: "duration", seconds };
    this.reports.transcripts.push(usage);
    this.send(socket, { type: `${base}.completed`, item_id: itemId, transcript: "Hello.", usage });
  }

  private answer(socket: Socket): void {
    const id = this.id("resp");
    this.running.set(id, socket);
    this.send(socket, { type: "response.created", response: { id, status: "in_progress" } });
    this.send(socket, { type: "response.output_text.delta", response_id: id, delta: "Hello." });
    if (!this.waits) this.end(id, "completed");
  }

  private end(id: string, status: string): void {
    const socket = this.running.get(id);
    this.running.delete(id);
    if (socket === undefined) return;
    const { usage } = this;
    this.reports.responses.push(usage);
    const response = { id, object: "realtime.response", status, usage };
    this.send(socket, { type: "response.done", response });
  }

  private fail(socket: Socket, message: string): void {
    this.send(socket, { type: "error", error: { type: "invalid_request_error", message } });
  }

  private send(socket: Socket, event: object): void {
    socket.send(JSON.stringify({ event_id: this.id("event"), ...event }));
  }

  private id(prefix: string): string {
    return `${prefix}_${(this.count += 1)}`;
  }
}

/** Starts a provider of sessions. */
export const startRealtimeUpstream = (): RealtimeUpstream => new RealtimeUpstream();
