import type { MeteredUsage } from "../../canonical/response.ts";
import type { Settled } from "../served-answer.ts";
import type { UpstreamResponse } from "../../upstream/upstream-client.ts";
import type { StreamEnd } from "./relayed-stream.ts";
import type { BytesDecoder } from "../inference-call.ts";

/** An answer of bytes, and its callbacks. */
interface RelayedBytesOptions {
  response: UpstreamResponse;
  decoder: BytesDecoder;
  settle(metered: MeteredUsage, status: StreamEnd): Promise<Settled>;
  /** Called with bytes that the client is sent; absent where they are not kept. */
  onBytes?(bytes: Uint8Array): void;
  onFirstContent(): void;
  onClosed(): void;
  /** Called with a failure of the provider once bytes were sent, or of the settlement. */
  onBroken(error: unknown): void;
}

/**
 * An answer of bytes in progress, such as sound. It pulls from the upstream as the client reads, and
 * settles exactly once, however it ends. The client gets the last bytes only once they are charged.
 */
export class RelayedBytes {
  private first: Uint8Array | undefined;
  private isOver = false;
  private hasEnded = false;
  /** The charge, once it is durable. */
  settled: Settled | undefined;
  private settlement: Promise<Settled> | undefined;

  constructor(private readonly options: RelayedBytesOptions) {}

  get type(): string {
    return this.options.decoder.type;
  }

  /** What was consumed so far. */
  get metered(): MeteredUsage {
    return this.options.decoder.metered();
  }

  /** Reads up to the first bytes, before anything is sent. Throws the failure that came instead. */
  async prime(): Promise<void> {
    const bytes = await this.more();
    if (bytes === undefined) return;
    this.first = bytes;
    this.options.onFirstContent();
  }

  /** Returns whether bytes have come. */
  get hasContent(): boolean {
    return this.first !== undefined;
  }

  /** Returns the bytes as the client pulls them, with backpressure to the provider. */
  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          try {
            const bytes = this.first ?? (await this.more());
            this.first = undefined;
            if (bytes === undefined) controller.close();
            else controller.enqueue(bytes);
          } catch (error) {
            this.options.response.abort();
            this.options.onBroken(error);
            await this.close("cut").catch(this.options.onBroken);
            controller.error(error);
          }
        },
        cancel: async () => {
          this.options.response.abort();
          await this.close("cancelled").catch(this.options.onBroken);
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** Returns the next bytes; undefined at the end, once all is charged. */
  private async more(): Promise<Uint8Array | undefined> {
    const { response, decoder } = this.options;
    while (!this.hasEnded) {
      const piece = await response.next();
      if (piece === undefined) {
        this.hasEnded = true;
        const bytes = decoder.end();
        this.options.onBytes?.(bytes);
        await this.close("completed");
        return bytes.byteLength > 0 ? bytes : undefined;
      }
      const bytes = decoder.push(piece);
      if (bytes.byteLength === 0) continue;
      this.options.onBytes?.(bytes);
      return bytes;
    }
    return undefined;
  }

  private close(status: StreamEnd): Promise<Settled> {
    this.settlement ??= this.options
      .settle(this.options.decoder.metered(), status)
      .then((settled) => (this.settled = settled));
    if (!this.isOver) {
      this.isOver = true;
      this.options.onClosed();
    }
    return this.settlement;
  }
}
