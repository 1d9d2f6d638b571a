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
  private readonly ears: Redis;
  private readonly listeners = new Map<string, (message: string) => void>();
  private readonly missed = new Set<() => void>();

  private constructor(
    ears: Redis,
    { shared, nodeId, logger }: Omit<ChannelOptions, keyof SharedServer>,
  ) {
    this.shared = shared;
    this.nodeId = nodeId;
    this.logger = logger;
    this.ears = ears;
    this.ears.on("error", () => undefined);
    // Sets the server to connect to next; the library reads its options with every attempt.
    this.ears.on("close", () => void Object.assign(this.ears.options, shared.nextRelay?.()));
    this.ears.on("ready", () => void this.listen());
    this.ears.on("message", (channel: string, message: string) =>
      this.hear(channel.slice(sharedPrefix.length), message),
    );
  }

  /**
   * Starts listening. Resolves once the channel listens, or once the server is known to be
   * unavailable; the channel then listens when the server is back.
   */
  static async open(options: ChannelOptions): Promise<SharedChannel> {
    const channel = new SharedChannel(await newRedisClient(options), options);
    await channel.ears.connect().catch(() => undefined);
    return channel;
  }

  /** Whether the channel receives every message that is sent. */
  get isListening(): boolean {
    return this.ears.status === "ready";
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
    this.missed.add(listener);
  }

  /** Sends a message to the other gateways; the message is lost while the server is unavailable. */
  say(channel: string, message: string): void {
    this.shared.publish(channel, `${this.nodeId} ${message}`).catch((error: unknown) => {
      if (!(error instanceof SharedStateAwayError))
        this.logger.warn({ err: error }, "a change could not be sent to the other gateways");
    });
  }

  /** Stops listening. */
  close(): void {
    this.listeners.clear();
    this.ears.disconnect();
  }

  private hear(channel: string, said: string): void {
    const end = said.indexOf(" ");
    if (said.slice(0, end) !== this.nodeId) this.listeners.get(channel)?.(said.slice(end + 1));
  }

  private async listen(): Promise<void> {
    const channels = [...this.listeners.keys()].map((channel) => sharedPrefix + channel);
    try {
      if (channels.length > 0) await this.ears.subscribe(...channels);
      for (const tell of this.missed) tell();
    } catch {
      this.ears.disconnect(true);
    }
  }
}
