import type { Redis } from "ioredis";
import { newRedisClient, type SharedServer } from "./redis-client.ts";
import { type SharedParts, type SharedStateLogger, sharedPrefix } from "./shared-state.ts";
import { SharedStateAwayError } from "./shared-state-error.ts";

/** The options of a channel. */
export interface ChannelOptions extends SharedServer {
  shared: Pick<SharedParts, "publish" | "nextRelay">;
  /** The id of this gateway, which ignores its own messages. */
  nodeId: string;
  logger: SharedStateLogger;
}

/**
 * Messages between the gateways that share a server. A gateway never receives messages that are
 * sent while it is not connected.
 */
export class SharedChannel {
  private readonly shared: Pick<SharedParts, "publish" | "nextRelay">;
  private readonly nodeId: string;
  private readonly logger: SharedStateLogger;
  private readonly subscriber: Redis;
  private readonly listeners = new Map<string, (message: string) => void>();
  private readonly listeningCallbacks = new Set<() => void>();

  private constructor(
    subscriber: Redis,
    { shared, nodeId, logger }: Omit<ChannelOptions, keyof SharedServer>,
  ) {
    this.shared = shared;
    this.nodeId = nodeId;
    this.logger = logger;
    this.subscriber = subscriber;
    this.subscriber.on("error", () => undefined);
    // Sets the server to connect to next; the library reads its options with every attempt.
    this.subscriber.on(
      "close",
      () => void Object.assign(this.subscriber.options, shared.nextRelay?.()),
    );
    this.subscriber.on("ready", () => void this.listen());
    this.subscriber.on("message", (channel: string, message: string) =>
      this.deliver(channel.slice(sharedPrefix.length), message),
    );
  }

  /**
   * Starts listening. Resolves once the channel listens, or once the server is known to be
   * unavailable; the channel then listens when the server is back.
   */
  static async open(options: ChannelOptions): Promise<SharedChannel> {
    const channel = new SharedChannel(await newRedisClient(options), options);
    await channel.subscriber.connect().catch(() => undefined);
    return channel;
  }

  /** Whether the channel receives every message that is sent. */
  get isListening(): boolean {
    return this.subscriber.status === "ready";
  }

  /** Calls the listener with each message that another gateway sends on a channel. */
  on(channel: string, listener: (message: string) => void): void {
    this.listeners.set(channel, listener);
    if (this.isListening) void this.listen();
  }

  /**
   * Calls the listener each time the channel starts listening, since messages may have been missed
   * before.
   */
  onListening(listener: () => void): void {
    this.listeningCallbacks.add(listener);
  }

  /** Sends a message to the other gateways; the message is lost while the server is unavailable. */
  publish(channel: string, message: string): void {
    this.shared.publish(channel, `${this.nodeId} ${message}`).catch((error: unknown) => {
      if (!(error instanceof SharedStateAwayError))
        this.logger.warn({ err: error }, "a change could not be sent to the other gateways");
    });
  }

  /** Stops listening. */
  close(): void {
    this.listeners.clear();
    this.subscriber.disconnect();
  }

  private deliver(channel: string, sent: string): void {
    const end = sent.indexOf(" ");
    if (sent.slice(0, end) !== this.nodeId) this.listeners.get(channel)?.(sent.slice(end + 1));
  }

  private async listen(): Promise<void> {
    const channels = [...this.listeners.keys()].map((channel) => sharedPrefix + channel);
    try {
      if (channels.length > 0) await this.subscriber.subscribe(...channels);
      for (const listener of this.listeningCallbacks) listener();
    } catch {
      this.subscriber.disconnect(true);
    }
  }
}
