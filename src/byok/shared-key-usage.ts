import type { Clock } from "../platform/kernel/clock.ts";
import type { SharedChannel } from "../platform/shared-state/shared-channel.ts";
import type {
  HeldElsewhere,
  HeldOfKey,
  ProviderKeyUsage,
  UsageNews,
  UsedOfKey,
} from "./provider-key-usage.ts";

const [usedChannel, heldChannel] = ["key-used", "key-held"];

/** What a gateway says that it holds is believed for this long; it says so again meanwhile. */
export const heldMs = 60_000;

interface Statement extends HeldOfKey {
  untilMs: number;
}

/** What it is built from. */
export interface SharedKeyUsageOptions {
  usage: ProviderKeyUsage;
  channel: Pick<SharedChannel, "on" | "say" | "onListening">;
  /** Tells gateways apart. */
  nodeId: string;
  clock: Clock;
  /** Puts back what was used as the database has it, once what is on its way there has come. */
  reload(usage: ProviderKeyUsage): Promise<void>;
  /** Called when that could not be read; it is counted on without it. */
  onError(error: unknown): void;
}

/**
 * What each of several gateways uses and holds of callers' own provider keys, said to the others as
 * it happens. A quota is exceeded by what they admit before they hear of each other, which takes
 * some milliseconds; a gateway that missed it reads the database.
 */
export class SharedKeyUsage implements UsageNews, HeldElsewhere {
  private readonly options: SharedKeyUsageOptions;
  /** By key and gateway. */
  private readonly statements = new Map<string, Map<string, Statement>>();
  /** What was used here and elsewhere while the database is read; undefined while it is not. */
  private meanwhile: UsedOfKey[] | undefined;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: SharedKeyUsageOptions) {
    this.options = options;
  }

  /** Says and hears from now on. */
  start(): void {
    const { usage, channel } = this.options;
    usage.share(this, this);
    channel.on(usedChannel, (message) => this.hearUsed(message));
    channel.on(heldChannel, (message) => this.hearHeld(message));
    channel.onListening(() => void this.readAgain());
    this.timer = setInterval(() => this.sayHeld(), heldMs / 3);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  used(used: UsedOfKey): void {
    this.meanwhile?.push(used);
    this.options.channel.say(
      usedChannel,
      [used.keyId, used.atMs, used.totalNano, used.poolNano].join(" "),
    );
  }

  held(keyId: string, { totalNano, poolNano }: HeldOfKey): void {
    this.options.channel.say(
      heldChannel,
      [this.options.nodeId, keyId, totalNano, poolNano].join(" "),
    );
  }

  heldOf(keyId: string): HeldOfKey {
    const sum = { totalNano: 0n, poolNano: 0n };
    const nowMs = this.options.clock.monotonicMs();
    for (const { totalNano, poolNano, untilMs } of this.statements.get(keyId)?.values() ?? []) {
      if (untilMs <= nowMs) continue;
      sum.totalNano += totalNano;
      sum.poolNano += poolNano;
    }
    return sum;
  }

  /** Says again what is held, so that it is believed on. */
  sayHeld(): void {
    for (const [keyId, held] of this.options.usage.heldHere()) this.held(keyId, held);
  }

  /** What was said before it was listened is in the database, or on its way there. */
  async readAgain(): Promise<void> {
    if (this.meanwhile !== undefined) return;
    this.meanwhile = [];
    try {
      await this.options.reload(this.options.usage);
      // What came to stand while it was read may be counted twice: too much rather than too little.
      for (const used of this.meanwhile) this.options.usage.heard(used);
    } catch (error) {
      this.options.onError(error);
    } finally {
      this.meanwhile = undefined;
    }
  }

  private hearUsed(message: string): void {
    const [keyId = "", atMs, totalNano = "0", poolNano = "0"] = message.split(" ");
    const used = {
      keyId,
      atMs: Number(atMs),
      totalNano: BigInt(totalNano),
      poolNano: BigInt(poolNano),
    };
    this.meanwhile?.push(used);
    this.options.usage.heard(used);
  }

  private hearHeld(message: string): void {
    const [nodeId = "", keyId = "", totalNano = "0", poolNano = "0"] = message.split(" ");
    const ofKey = this.statements.get(keyId) ?? new Map<string, Statement>();
    const statement = {
      totalNano: BigInt(totalNano),
      poolNano: BigInt(poolNano),
      untilMs: this.options.clock.monotonicMs() + heldMs,
    };
    if (statement.totalNano === 0n) ofKey.delete(nodeId);
    else ofKey.set(nodeId, statement);
    if (ofKey.size === 0) this.statements.delete(keyId);
    else this.statements.set(keyId, ofKey);
  }
}
