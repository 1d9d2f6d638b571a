import type { Socket } from "bun";

/** Writes to a socket, and keeps what it does not take at once. One writer at a time waits for room. */
export class SocketWriter {
  private readonly socket: Pick<Socket<unknown>, "write">;
  private unsent: Uint8Array[] = [];
  private room: (() => void) | undefined;

  constructor(socket: Pick<Socket<unknown>, "write">) {
    this.socket = socket;
  }

  /** Whether the socket has everything. */
  get isDrained(): boolean {
    return this.unsent.length === 0;
  }

  /** Takes text of so many bytes in UTF-8, or bytes; a promise of room where the socket did not take all of it. */
  write(data: string | Uint8Array, byteLength: number): Promise<void> | undefined {
    if (this.unsent.length > 0) this.unsent.push(Buffer.from(data));
    else {
      const written = Math.max(0, this.socket.write(data));
      if (written >= byteLength) return undefined;
      // Bytes are made of the text only when the socket did not take it at once.
      this.unsent.push(Buffer.from(data).subarray(written));
    }
    return new Promise((resolve) => {
      this.room = resolve;
    });
  }

  /** The socket has room again. */
  drain(): void {
    while (this.unsent.length > 0) {
      const [bytes] = this.unsent as [Uint8Array];
      const written = Math.max(0, this.socket.write(bytes));
      if (written < bytes.byteLength) {
        this.unsent[0] = bytes.subarray(written);
        return;
      }
      this.unsent.shift();
    }
    this.tellRoom();
  }

  /** The socket is gone: nothing will be sent, and nobody waits any longer. */
  drop(): void {
    this.unsent = [];
    this.tellRoom();
  }

  private tellRoom(): void {
    const { room } = this;
    this.room = undefined;
    room?.();
  }
}
