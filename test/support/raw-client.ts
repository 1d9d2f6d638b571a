import { connect, type Socket } from "node:net";

/**
 * A client that writes bytes and reads text; `until` resolves once the text contains what is
 * awaited, or the connection has ended.
 */
export class RawClient {
  text = "";
  over = false;
  readonly socket: Socket;
  private readonly waiting: (() => void)[] = [];

  constructor(port: number) {
    this.socket = connect(port, "127.0.0.1");
    this.socket.setNoDelay(true);
    this.socket.on("data", (bytes: Buffer) => {
      this.text += bytes.toString("latin1");
      this.wake();
    });
    const end = (): void => {
      this.over = true;
      this.wake();
    };
    this.socket.on("end", end).on("close", end).on("error", end);
  }

  write(text: string | Buffer): this {
    this.socket.write(text);
    return this;
  }

  async until(isThere: (text: string) => boolean): Promise<string> {
    while (!isThere(this.text) && !this.over)
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    return this.text;
  }

  untilOver(): Promise<string> {
    return this.until(() => false);
  }

  private wake(): void {
    for (const resolve of this.waiting.splice(0)) resolve();
  }
}
