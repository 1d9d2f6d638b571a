import { testLlmKey } from "../../../support/gateway.ts";

/** An event that a gateway has sent. */
export type Event = Record<string, unknown> & { type: string };

/** A client's socket, which keeps what it receives until it is read. */
export class SocketClient {
  readonly socket: WebSocket;
  /** All events so far. */
  readonly events: Event[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;
  private read = 0;
  private wake: (() => void) | undefined;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.addEventListener("message", ({ data }) => {
      this.events.push(JSON.parse(String(data)) as Event);
      this.wake?.();
    });
    this.closed = new Promise((resolve) =>
      socket.addEventListener("close", ({ code, reason }) => {
        resolve({ code, reason });
        this.wake?.();
      }),
    );
  }

  /** Opens a socket; rejects where the handshake is refused. */
  static async open(
    origin: string,
    {
      path = "/v1/responses",
      key = testLlmKey,
      headers = {},
      protocols = [],
    }: {
      path?: string;
      key?: string | undefined;
      headers?: Record<string, string>;
      protocols?: string[];
    } = {},
  ): Promise<SocketClient> {
    const socket = new WebSocket(origin.replace(/^http/, "ws") + path, {
      protocols,
      headers: { ...(key !== "" && { authorization: `Bearer ${key}` }), ...headers },
    } as unknown as string[]);
    const client = new SocketClient(socket);
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve);
      socket.addEventListener("close", () => reject(new Error("the handshake was refused")));
    });
    return client;
  }

  send(event: object): void {
    this.socket.send(JSON.stringify(event));
  }

  /** Returns the next event that was not read yet. */
  async next(): Promise<Event> {
    for (;;) {
      const event = this.events[this.read];
      if (event !== undefined) {
        this.read += 1;
        return event;
      }
      if (this.socket.readyState !== WebSocket.OPEN) {
        const { code, reason } = await this.closed;
        throw new Error(`the socket is closed: ${code} ${reason}`);
      }
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  /** Reads on to the first event of a type, and returns it. */
  async until(...types: string[]): Promise<Event> {
    for (;;) {
      const event = await this.next();
      if (types.includes(event.type)) return event;
    }
  }

  /** Creates a response and returns the record that it ends with. */
  async create(body: object): Promise<Record<string, unknown>> {
    this.send({ type: "response.create", ...body });
    const end = await this.until(
      "response.completed",
      "response.incomplete",
      "response.failed",
      "error",
    );
    return end.type === "error" ? end : (end["response"] as Record<string, unknown>);
  }

  close(): void {
    this.socket.close();
  }
}

/** Sends a handshake over HTTP, and returns the answer of one that is refused. */
export async function refusalOf(
  origin: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; code: unknown; headers: Headers }> {
  const response = await fetch(origin + path, {
    headers: {
      upgrade: "websocket",
      connection: "Upgrade",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      ...headers,
    },
  });
  const body = (await response.json()) as { error?: { code?: unknown } };
  return { status: response.status, code: body.error?.code, headers: response.headers };
}
