import type { Server, ServerWebSocket } from "bun";

type Fields = Record<string, unknown>;

interface Session {
  setup: Fields | undefined;
  /** Whether a turn was begun by hand. */
  isActive: boolean;
}

type Socket = ServerWebSocket<Session>;

const fieldsOf = (value: unknown): Fields => Object(value) as Fields;

/** Members of the frames of clients (ai.google.dev, "Live API"), which refuses all others. */
const known: Readonly<Record<string, readonly string[]>> = {
  setup: [
    "model",
    "generationConfig",
    "systemInstruction",
    "tools",
    "realtimeInputConfig",
    "sessionResumption",
    "contextWindowCompression",
    "inputAudioTranscription",
    "outputAudioTranscription",
  ],
  clientContent: ["turns", "turnComplete"],
  realtimeInput: ["audio", "video", "text", "activityStart", "activityEnd", "audioStreamEnd"],
  toolResponse: ["functionResponses"],
};

/** What a turn costs, as Google reports it. */
export const liveUsageMetadata = {
  promptTokenCount: 130,
  responseTokenCount: 60,
  totalTokenCount: 190,
  promptTokensDetails: [
    { modality: "TEXT", tokenCount: 30 },
    { modality: "AUDIO", tokenCount: 100 },
  ],
  responseTokensDetails: [
    { modality: "TEXT", tokenCount: 10 },
    { modality: "AUDIO", tokenCount: 50 },
  ],
};

/**
 * A provider that speaks Gemini Live strictly: the first frame is the setup, no frame precedes its
 * confirmation, and every member is known. It answers in binary frames, as Google does.
 */
export class LiveDouble {
  readonly handshakes: { url: URL; headers: Headers }[] = [];
  readonly frames: Fields[] = [];
  /** Whether turns wait for `interrupt`. */
  waits = false;
  private readonly sockets = new Set<Socket>();
  private readonly server: Server<Session>;

  constructor() {
    this.server = Bun.serve<Session>({
      ...{ port: 0, hostname: "127.0.0.1" },
      fetch: (request, server) => {
        const url = new URL(request.url);
        this.handshakes.push({ url, headers: request.headers });
        const path =
          "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent";
        if (url.pathname !== path) return new Response("no", { status: 404 });
        if (request.headers.get("x-goog-api-key") !== "live-secret")
          return new Response("no", { status: 403 });
        const data = { setup: undefined, isActive: false };
        return server.upgrade(request, { data }) ? undefined : new Response("no", { status: 400 });
      },
      websocket: {
        open: (socket) => void this.sockets.add(socket),
        message: (socket, text) => this.received(socket, JSON.parse(String(text)) as Fields),
        close: (socket) => void this.sockets.delete(socket),
      },
    });
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.server.port}/v1beta`;
  }

  /** Ends the turns in progress, as when a user begins to speak. */
  interrupt(): void {
    for (const socket of this.sockets) {
      this.send(socket, { serverContent: { interrupted: true } });
      this.complete(socket);
    }
  }

  stop(): void {
    void this.server.stop(true);
  }

  private received(socket: Socket, frame: Fields): void {
    this.frames.push(frame);
    const [name = "", ...others] = Object.keys(frame);
    const members = Object.keys(fieldsOf(frame[name]));
    const unknown = members.find((member) => known[name]?.includes(member) !== true);
    if (others.length > 0 || known[name] === undefined || unknown !== undefined)
      return socket.close(1007, `Invalid JSON payload: ${name}.${unknown}`);
    if ((name === "setup") !== (socket.data.setup === undefined))
      return socket.close(1007, "setup must be the first message, and sent once");
    if (name === "setup") {
      socket.data.setup = fieldsOf(frame["setup"]);
      return this.send(socket, { setupComplete: {} });
    }
    if (name === "clientContent") return this.content(socket, fieldsOf(frame["clientContent"]));
    if (name === "toolResponse") return this.outputs(socket, fieldsOf(frame["toolResponse"]));
    return this.input(socket, fieldsOf(frame["realtimeInput"]));
  }

  private content(socket: Socket, { turns, turnComplete }: Fields): void {
    if (turnComplete !== true) return;
    const asked = JSON.stringify(turns ?? []);
    if (asked.includes("weather") && socket.data.setup?.["tools"] !== undefined) {
      const functionCalls = [{ id: "call-1", name: "weather", args: { city: "Rome" } }];
      return this.send(socket, { toolCall: { functionCalls } });
    }
    this.answer(socket);
  }

  private outputs(socket: Socket, { functionResponses }: Fields): void {
    const [first] = functionResponses as Fields[];
    if (first?.["id"] !== "call-1" || first["name"] !== "weather")
      return socket.close(1007, "a function response has to name its call");
    this.answer(socket);
  }

  private input(socket: Socket, input: Fields): void {
    const config = fieldsOf(socket.data.setup?.["realtimeInputConfig"]);
    const isManual = fieldsOf(config["automaticActivityDetection"])["disabled"] === true;
    const begins = input["activityStart"] !== undefined;
    const ends = input["activityEnd"] !== undefined;
    if ((begins || ends) && !isManual)
      return socket.close(1007, "Explicit activity control is not supported");
    if (begins) socket.data.isActive = true;
    if (input["audio"] !== undefined) {
      const { mimeType, data } = fieldsOf(input["audio"]);
      if (!/^audio\/pcm;rate=\d+$/.test(String(mimeType)) || typeof data !== "string")
        return socket.close(1007, "audio has to be PCM with its rate");
      if (isManual && !socket.data.isActive) return socket.close(1007, "no activity");
    }
    if (ends || input["audioStreamEnd"] === true) this.answer(socket);
  }

  private answer(socket: Socket): void {
    const config = fieldsOf(socket.data.setup?.["generationConfig"]);
    const speaks = JSON.stringify(config["responseModalities"]) === '["AUDIO"]';
    const inlineData = {
      mimeType: "audio/pcm;rate=24000",
      data: Buffer.alloc(4_800).toString("base64"),
    };
    const thought = { text: "The user greets.", thought: true };
    const parts = speaks ? [{ inlineData }] : [thought, { text: "Ciao." }];
    this.send(socket, { serverContent: { modelTurn: { parts } } });
    if (speaks) this.send(socket, { serverContent: { outputTranscription: { text: "Ciao." } } });
    if (this.waits) return;
    this.send(socket, { serverContent: { generationComplete: true } });
    this.complete(socket);
  }

  private complete(socket: Socket): void {
    this.send(socket, { serverContent: { turnComplete: true }, usageMetadata: liveUsageMetadata });
  }

  private send(socket: Socket, frame: object): void {
    socket.send(new TextEncoder().encode(JSON.stringify(frame)));
  }
}
