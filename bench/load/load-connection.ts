import { timeDigits, timeMark } from "../mock-responses.ts";
import { EventCounter, ResponseReader } from "./response-reader.ts";

const timeMarkBytes = Buffer.from(timeMark);
const maxErrorText = 300;

/** One finished exchange. Times are milliseconds of `performance.now()`. */
export interface Exchange {
  status: number;
  startedAtMs: number;
  firstByteAtMs: number;
  endedAtMs: number;
  events: number;
  /** Beginning of the body where the status is not 200. */
  errorText: string;
}

/** What a connection tells. */
export interface ConnectionListener {
  onExchange(connection: LoadConnection, exchange: Exchange): void;
  /** The first byte of a body has come. */
  onFirstByte?(connection: LoadConnection): void;
  /** The connection ended; `inFlight` when an answer was due. */
  onClosed(connection: LoadConnection, reason: { inFlight: boolean; text: string }): void;
  /** An event that carries its sending time came, so many milliseconds after it. */
  onEventDelay(delayMs: number): void;
}

/** A keep-alive connection that sends one prepared request at a time. */
export class LoadConnection {
  private socket: Bun.Socket<undefined> | undefined;
  private readonly reader: ResponseReader;
  private readonly listener: ConnectionListener;
  private readonly request: Buffer;
  private sentBytes = 0;
  private inFlight = false;
  private exchange: Exchange = emptyExchange(0);
  private counter = new EventCounter();
  private closed = false;

  constructor(request: Buffer, listener: ConnectionListener) {
    this.request = request;
    this.listener = listener;
    this.reader = new ResponseReader({
      onHead: (status) => void (this.exchange.status = status),
      onBody: (piece) => this.readBody(piece),
      onEnd: () => this.finish(),
    });
  }

  /** Connects to a port on loopback; rejects when it is refused. */
  async connect(port: number): Promise<void> {
    this.socket = await Bun.connect<undefined>({
      hostname: "127.0.0.1",
      port,
      socket: {
        data: (_, data) => this.read(data),
        drain: () => this.flush(),
        close: () => this.end("the connection was closed"),
        error: (_, error) => this.end(error.message),
      },
    });
  }

  /**
   * Sends the request; `dueAtMs` counts as its start where a schedule demanded it earlier than now.
   */
  send(dueAtMs = performance.now()): void {
    this.exchange = emptyExchange(dueAtMs);
    this.counter = new EventCounter();
    this.inFlight = true;
    this.sentBytes = 0;
    this.flush();
  }

  close(): void {
    this.closed = true;
    this.socket?.terminate();
  }

  private flush(): void {
    if (this.sentBytes >= this.request.length || this.socket === undefined || !this.inFlight)
      return;
    const written = this.socket.write(
      this.request,
      this.sentBytes,
      this.request.length - this.sentBytes,
    );
    this.sentBytes += Math.max(written, 0);
  }

  private read(data: Buffer): void {
    try {
      this.reader.feed(data);
    } catch (error) {
      this.end(error instanceof Error ? error.message : String(error));
      this.close();
    }
  }

  private readBody(piece: Buffer): void {
    const { exchange } = this;
    if (exchange.firstByteAtMs === 0) {
      exchange.firstByteAtMs = performance.now();
      this.listener.onFirstByte?.(this);
    }
    if (exchange.status !== 200) {
      if (exchange.errorText.length < maxErrorText)
        exchange.errorText += piece.toString("utf8", 0, maxErrorText);
      return;
    }
    this.counter.feed(piece);
    if (piece.includes(timeMarkBytes)) this.readTimes(piece);
  }

  /** Reads the sending times out of events; one that is cut by the end of the piece is skipped. */
  private readTimes(piece: Buffer): void {
    const nowMs = performance.timeOrigin + performance.now();
    let at = piece.indexOf(timeMarkBytes);
    while (at >= 0) {
      const start = at + timeMarkBytes.length;
      const sentAtMs = Number(piece.toString("latin1", start, start + timeDigits));
      if (sentAtMs > 0 && start + timeDigits <= piece.length)
        this.listener.onEventDelay(nowMs - sentAtMs);
      at = piece.indexOf(timeMarkBytes, start);
    }
  }

  private finish(): void {
    this.inFlight = false;
    const { exchange } = this;
    exchange.endedAtMs = performance.now();
    exchange.events = this.counter.count;
    this.listener.onExchange(this, exchange);
  }

  private end(text: string): void {
    if (this.closed) return;
    this.closed = true;
    this.listener.onClosed(this, { inFlight: this.inFlight, text });
  }
}

const emptyExchange = (startedAtMs: number): Exchange => ({
  status: 0,
  startedAtMs,
  firstByteAtMs: 0,
  endedAtMs: 0,
  events: 0,
  errorText: "",
});
