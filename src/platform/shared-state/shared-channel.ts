import type { Redis } from "ioredis";
import { newRedisClient, type SharedServer } from "./redis-client.ts";
import { type SharedParts, type SharedStateLogger, sharedPrefix } from "./shared-state.ts";
import { SharedStateAwayError } from "./shared-state-error.ts";

/** How a channel is opened. */
export interface ChannelOptions extends SharedServer {
  shared: Pick<SharedParts, "publish" | "nextRelay">;
  /** Id of this gateway, which ignores its own messages. */
  nodeId: string;
  logger: SharedStateLogger;
}

/**
 * Words between the gateways that share a server. What is said while a listener is away it never
 * hears.
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
    // Where it connects to next; the library reads its options with every attempt.
    this.ears.on("close", () => void Object.assign(this.ears.options, shared.nextRelay?.()));
    this.ears.on("ready", () => void this.listen());
    this.ears.on("message", (channel: string, message: string) =>
      this.hear(channel.slice(sharedPrefix.length), message),
    );
  }

  /** Begins to listen; resolves once it does, or the server is away and it will. */
  static async open(options: ChannelOptions): Promise<SharedChannel> {
    const channel = new SharedChannel(await newRedisClient(options), options);
    await channel.ears.connect().catch(() => undefined);
    return channel;
  }

  /** Whether everything that is said is heard. */
  get isListening(): boolean {
    return this.ears.status === "ready";
  }

  /** Hears what the others say on a channel. */
  on(channel: string, listener: (message: string) => void): void {
    this.listeners.set(channel, listener);
    if (this.isListening) void this.listen();
  }

  /** Told whenever listening begins: before that, something may have been missed. */
  onListening(listener: () => void): void {
    this.missed.add(listener);
  }

  /** Sends a message to the other gateways; while the server is away it is lost. */
  say(channel: string, message: string): void {
    this.shared.publish(channel, `${this.nodeId} ${message}`).catch((error: unknown) => {
      if (!(error instanceof SharedStateAwayError))
        this.logger.warn({ err: error }, "a change could not be sent to the other gateways");
    });
  }

  /** Listens no more. */
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
