import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { Usage } from "../../../platform/kernel/usage.ts";
import type { InferenceDependencies } from "../../pipeline/execution.ts";
import type { CallOrigin } from "../../pipeline/inference-call.ts";
import type { Candidate } from "../../routing/candidate.ts";
import { meteredTranscript } from "../audio/transcripts/transcript.ts";
import { exhausted, RealtimeTurn, type SizedCall } from "./realtime-turn.ts";
import { soundCall, type SoundWork } from "./sound-call.ts";

/** Milliseconds of sound that are held beyond what was sent, and by which a hold grows. */
const stepMs = 10_000;

/** Milliseconds of sound after which a session that is charged by time pays. */
const stretchMs = 60_000;

/** Milliseconds by which a provider's count may differ from what was sent. */
const toleranceMs = 1_000;

/** What a meter depends on. */
export interface SoundMeterOptions {
  deps: InferenceDependencies;
  /** The model as the client named it. */
  model: string;
  work: SoundWork;
  /** Whether nothing is reported, so that the sound that was sent is charged by its time. */
  byTime: boolean;
  /**
   * Returns the origin of a next stretch, with ids of its own. Throws once the key is not valid,
   * unless the stretch was sent already (`isOwed`).
   */
  nextOrigin(isOwed: boolean): CallOrigin;
  /** Called when nothing more can be held or charged. */
  exhaust(error: GatewayError): void;
}

/**
 * Plans the work and holds its first stretch. Throws `GatewayError` where the caller may not have it
 * or cannot pay for it.
 */
export const planSound = (options: SoundMeterOptions): Promise<RealtimeTurn> =>
  RealtimeTurn.open(options.deps, sized(options, options.nextOrigin(false), stepMs));

/**
 * The money of the sound of a session that is charged beside its responses: transcriptions by what
 * their provider reports, translations by the time of what was sent. A hold covers the sound that
 * was not charged yet, and grows while more comes.
 */
export class SoundMeter {
  /** The provider and the model that serve. */
  readonly candidate: Candidate;
  private turn: RealtimeTurn | undefined;
  private work: Promise<unknown> = Promise.resolve();
  /** Milliseconds that were sent since the beginning, and up to which they were charged. */
  private heardMs = 0;
  private chargedMs = 0;
  /** Where each item that has no transcript yet begins and ends. */
  private readonly items = new Map<string, { fromMs: number; toMs: number }>();
  private committedMs = 0;
  /** The ends of items that the client asked for, and that the provider has not confirmed. */
  private readonly asked: number[] = [];
  /** Whether a transcript has begun of sound that is no item yet. */
  private isLive = false;
  private isOver = false;

  /** Begins to count on a planned turn (`planSound`), which a candidate serves. */
  constructor(
    private readonly options: SoundMeterOptions,
    { turn, candidate }: { turn: RealtimeTurn; candidate: Candidate },
  ) {
    this.turn = turn;
    this.candidate = candidate;
  }

  /** Counts sound that a client has sent. */
  heard(ms: number): void {
    this.heardMs += ms;
    // What was sent during the charge before may have been charged with it.
    if (this.owesStretch)
      this.after(async () => {
        if (this.owesStretch) await this.pay(this.timeUsage(), { estimated: false });
      });
    this.cover();
  }

  /** Notes that the client asks for an item of what was sent so far. */
  commitAsked(): void {
    this.asked.push(this.heardMs);
  }

  /** Notes that the provider refuses an item that the client asked for. */
  commitRefused(): void {
    this.asked.shift();
  }

  /** Notes that what was sent before is an item that will be transcribed. */
  committed(itemId: string): void {
    const toMs = this.asked.shift() ?? this.heardMs;
    this.items.set(itemId, { fromMs: this.committedMs, toMs });
    this.committedMs = toMs;
  }

  /** Notes that the sound that belongs to no item was thrown away. */
  cleared(): void {
    this.committedMs = this.heardMs;
    if (this.items.size === 0 && !this.options.byTime) this.chargedMs = this.heardMs;
  }

  /** Notes that a transcript is being written. */
  begun(itemId: string): void {
    this.isLive ||= !this.items.has(itemId);
  }

  /** Charges a transcript as its provider reports it; `usage` is undefined where it has failed. */
  transcribed(itemId: string, report: { text: string; usage: unknown } | undefined): void {
    const item = this.items.get(itemId) ?? { fromMs: this.chargedMs, toMs: this.heardMs };
    this.items.delete(itemId);
    this.isLive = false;
    if (report === undefined) {
      this.chargedMs = Math.max(this.chargedMs, item.toMs);
      return;
    }
    this.after(() => this.payItem(item, report));
  }

  /** The number of items whose transcripts have not come. */
  get waitingCount(): number {
    return this.items.size + this.asked.length;
  }

  /** Charges what is left, and frees the hold. Resolves when the charge is durable. */
  async end(): Promise<void> {
    if (this.isOver) return this.work.then(() => undefined);
    this.isOver = true;
    this.after(async () => {
      for (const item of this.items.values()) await this.payItem(item, { text: "", usage: null });
      this.items.clear();
      for (const toMs of this.asked.splice(0)) {
        await this.payItem({ fromMs: this.committedMs, toMs }, { text: "", usage: null });
        this.committedMs = toMs;
      }
      if (this.isLive)
        await this.payItem(
          { fromMs: this.committedMs, toMs: this.heardMs },
          { text: "", usage: null },
        );
      if (this.options.byTime && Math.round(this.heardMs - this.chargedMs) > 0)
        await this.pay(this.timeUsage(), { estimated: false });
      this.turn?.free();
      this.turn = undefined;
    });
    await this.work;
  }

  /** Whether a stretch of sound that is charged by time is complete. */
  private get owesStretch(): boolean {
    return this.options.byTime && this.heardMs - this.chargedMs >= stretchMs;
  }

  private after(step: () => Promise<void>): void {
    this.work = this.work.then(step).catch((error: unknown) => this.options.exhaust(endOf(error)));
  }

  /** Returns the usage of the sound that was not charged, and counts it as charged. */
  private timeUsage(): Usage {
    const ms = Math.round(this.heardMs - this.chargedMs);
    this.chargedMs += ms;
    const speaks =
      this.options.work === "translation" &&
      this.candidate.route.price?.base.outputAudioMs !== undefined;
    return { inputAudioMs: ms, ...(speaks && { outputAudioMs: ms }) };
  }

  private async payItem(
    { fromMs, toMs }: { fromMs: number; toMs: number },
    { text, usage: written }: { text: string; usage: unknown },
  ): Promise<void> {
    const heldMs = Math.ceil(toMs - fromMs);
    const { usage, estimated } = meteredTranscript(
      { text, usage: written },
      {
        request: { length: { heldMs, mostMs: heldMs + toleranceMs } },
        byTime: this.candidate.route.price?.base.inputAudioMs !== undefined,
      },
    );
    this.chargedMs = Math.max(this.chargedMs, toMs);
    await this.pay(usage, { estimated });
  }

  /**
   * Settles the hold with a usage, and takes the next. What is sent meanwhile is covered by the next:
   * a hold that is being settled does not grow.
   */
  private async pay(usage: Usage, { estimated }: { estimated: boolean }): Promise<void> {
    await this.turn?.settle({
      usage,
      estimated,
      status: "completed",
      finishReason: null,
      upstreamId: null,
      firstContentMs: null,
    });
    const turn = await this.openNext();
    if (turn.serveByProvider(this.candidate.route.provider.id) === undefined) {
      turn.free();
      throw exhausted();
    }
    this.turn = turn;
    this.cover();
  }

  /**
   * Holds the sound that was not charged and some more; where that cannot be paid or the key was
   * revoked, what was sent alone, after which the session ends.
   */
  private async openNext(): Promise<RealtimeTurn> {
    const { options } = this;
    const open = (soundMs: number, isOwed: boolean): Promise<RealtimeTurn> =>
      RealtimeTurn.open(options.deps, sized(options, options.nextOrigin(isOwed), soundMs));
    try {
      return await open(this.wantedMs(), false);
    } catch (error) {
      const leftMs = Math.ceil(this.heardMs - this.chargedMs);
      if (leftMs <= 0) throw error;
      const turn = await open(leftMs, true);
      options.exhaust(endOf(error));
      return turn;
    }
  }

  private wantedMs(): number {
    return (Math.floor((this.heardMs - this.chargedMs) / stepMs) + 2) * stepMs;
  }

  private cover(): void {
    const { turn, options } = this;
    if (turn === undefined) return;
    const soundMs = this.wantedMs();
    const callOf = (origin: CallOrigin) => sized(options, origin, soundMs).call;
    void turn.cover(soundMs, callOf).then(
      (isCovered) => void (isCovered || options.exhaust(exhausted())),
      () => options.exhaust(exhausted()),
    );
  }
}

/** Returns the error that ends a session whose next stretch could not be held. */
const endOf = (error: unknown): GatewayError =>
  error instanceof GatewayError && error.code === "invalid_api_key" ? error : exhausted();

/** Returns the call of a stretch of sound. */
const sized = (
  { model, work }: SoundMeterOptions,
  origin: CallOrigin,
  soundMs: number,
): SizedCall => ({ call: soundCall(origin, { model, work, soundMs }), size: soundMs });
