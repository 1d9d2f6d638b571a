import {
  type UsedOfKey,
  type HeldOfKey,
  type UsageListener,
  type HeldElsewhere,
  heldMs,
  type SharedKeyUsageOptions,
} from "./provider-key-usage.ts";

const [usedChannel, heldChannel] = ["key-used", "key-held"];

interface HeldReport extends HeldOfKey {
  untilMs: number;
}

/**
 * Shares what each of several gateways uses and holds of callers' own provider keys, by announcing
 * it as it happens. A quota can be exceeded by what gateways admit before they receive each other's
 * announcements, which takes some milliseconds. A gateway that missed announcements reads the
 * database.
 */
export class SharedKeyUsage implements UsageListener, HeldElsewhere {
  /** What other gateways reported, by key and gateway. */
  private readonly reports = new Map<string, Map<string, HeldReport>>();
  /**
   * Spending on any gateway that was reported while the database is being read; undefined
   * otherwise.
   */
  private meanwhile: UsedOfKey[] | undefined;
  /** Whether announcements may have been missed since the read in progress began. */
  private isOutdated = false;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly options: SharedKeyUsageOptions) {}

  /** Starts to announce and to listen. */
  start(): void {
    const { usage, channel } = this.options;
    usage.share(this, this);
    channel.on(usedChannel, (message) => this.receiveUsed(message));
    channel.on(heldChannel, (message) => this.receiveHeld(message));
    channel.onListening(() => void this.readAgain());
    this.timer = setInterval(() => this.announceHeld(), heldMs / 3);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  used(used: UsedOfKey): void {
    this.meanwhile?.push(used);
    this.options.channel.publish(
      usedChannel,
      [used.keyId, used.atMs, used.totalNano, used.poolNano].join(" "),
    );
  }

  held(keyId: string, { totalNano, poolNano }: HeldOfKey): void {
    this.options.channel.publish(
      heldChannel,
      [this.options.nodeId, keyId, totalNano, poolNano].join(" "),
    );
  }

  heldOf(keyId: string): HeldOfKey {
    const sum = { totalNano: 0n, poolNano: 0n };
    const nowMs = this.options.clock.monotonicMs();
    for (const { totalNano, poolNano, untilMs } of this.reports.get(keyId)?.values() ?? []) {
      if (untilMs <= nowMs) continue;
      sum.totalNano += totalNano;
      sum.poolNano += poolNano;
    }
    return sum;
  }

  /** Repeats what is held, so that the report stays valid. */
  announceHeld(): void {
    for (const [keyId, held] of this.options.usage.heldHere()) this.held(keyId, held);
  }

  /**
   * Reads the usage again: what was announced before this gateway listened is in the database, or
   * on its way there.
   */
  async readAgain(): Promise<void> {
    if (this.meanwhile !== undefined) {
      this.isOutdated = true;
      return;
    }
    this.isOutdated = false;
    this.meanwhile = [];
    try {
      await this.options.reload(this.options.usage);
      // What was written during the read may be counted twice, which errs on the safe side.
      for (const used of this.meanwhile) this.options.usage.countUsed(used);
    } catch (error) {
      this.options.onError(error);
    } finally {
      this.meanwhile = undefined;
    }
    if (this.isOutdated) await this.readAgain();
  }

  private receiveUsed(message: string): void {
    const [keyId = "", atMs, totalNano = "0", poolNano = "0"] = message.split(" ");
    const used = {
      keyId,
      atMs: Number(atMs),
      totalNano: BigInt(totalNano),
      poolNano: BigInt(poolNano),
    };
    this.meanwhile?.push(used);
    this.options.usage.countUsed(used);
  }

  private receiveHeld(message: string): void {
    const [nodeId = "", keyId = "", totalNano = "0", poolNano = "0"] = message.split(" ");
    const ofKey = this.reports.get(keyId) ?? new Map<string, HeldReport>();
    const report = {
      totalNano: BigInt(totalNano),
      poolNano: BigInt(poolNano),
      untilMs: this.options.clock.monotonicMs() + heldMs,
    };
    if (report.totalNano === 0n) ofKey.delete(nodeId);
    else ofKey.set(nodeId, report);
    if (ofKey.size === 0) this.reports.delete(keyId);
    else this.reports.set(keyId, ofKey);
  }
}
