import { brand } from "../platform/lib/brand.ts";
import { editMembers, scanMembers } from "../platform/lib/json-members.ts";
import type { FrameSource } from "../platform/lib/frame-source.ts";
import type { MeteredUsage } from "./canonical/usage.ts";
import { ChatStreamMeter, type ChatChunk } from "./chat-stream-meter.ts";
import { pricedUsageText } from "./chat-usage-text.ts";
import { fallbackMembers, type ModelFallback } from "./fallback-block.ts";
import type { KeepAliveTicker } from "./keep-alive.ts";
import type { Settled } from "./settle.ts";
import { failureOf, reportedFault, StreamFault, type ReportedDetails } from "./stream-fault.ts";
import { swappedPrefix, type SwappedPrefix } from "./swapped-prefix.ts";
import { emptyAnswer, malformedAnswer, type AttemptFailure } from "./upstream/classify-failure.ts";
import { SseDecoder, type SseEvent } from "./upstream/sse-decoder.ts";
import type { UpstreamResponse } from "./upstream/upstream-client.ts";
import { UpstreamFailure } from "./upstream/upstream-failure.ts";
import { tellsCost, withoutCost } from "./without-cost.ts";

/** How a stream ended, for its settlement. */
export type StreamEnd = "completed" | "cut" | "cancelled";

export interface ChatStreamOptions {
  response: UpstreamResponse;
  /** Id and catalog model that the client sees on every chunk. */
  shown: { id: string; model: string };
  /** The estimate of the input, for a provider that reports no usage. */
  inputTokens: number;
  /** What the model can hold, beyond which reported usage is not believed. */
  windowTokens: number;
  drainOnCancel: boolean;
  keepAlive: KeepAliveTicker;
  /** Told once, when the first content has come. */
  onFirstContent(): void;
  /** Settles what was metered; called at most once. */
  settle(metered: MeteredUsage, end: { status: StreamEnd; finishReason: string | null; upstreamId: string | null }): Promise<Settled>;
  fallback: ModelFallback | undefined;
  /** JSON text of `service_metadata` for the final frame. */
  metadataText(settled: Settled): string;
  /** The frame that ends a stream with an error in the client's dialect. */
  errorFrame(failure: AttemptFailure | unknown): string;
  onClosed(): void;
}

/** Bytes and time that a drained stream may still take after its client has left. */
const drainChunksMax = 20_000;

/** Characters that may be held back while no content has come. */
const openingCharactersMax = 4 * 1024 * 1024;

/**
 * Relays a chat stream in the dialect that it came in: every event goes on with id and model replaced,
 * the charge is shown where usage is, and a stream that was cut never looks complete.
 */
export class ChatStream implements FrameSource {
  private readonly options: ChatStreamOptions;
  private readonly decoder = new SseDecoder();
  private readonly meter: ChatStreamMeter;
  private pending = "";
  private prefix: SwappedPrefix | undefined;
  private upstreamId: string | null = null;
  private untoldFallback: ModelFallback | undefined;
  private settlement: Promise<Settled> | undefined;
  private pulled: Promise<string | undefined> | undefined;
  private ended = false;
  private endAwaited = false;
  private clientGone = false;

  constructor(options: ChatStreamOptions) {
    this.options = options;
    this.untoldFallback = options.fallback;
    this.meter = new ChatStreamMeter(options);
  }

  /**
   * Reads up to the first content, before anything is sent to the client. A failure up to here is
   * returned, so that the next candidate can be tried with nothing lost.
   */
  async prime(): Promise<AttemptFailure | undefined> {
    const { response } = this.options;
    try {
      while (!this.meter.hasContent && !this.ended) {
        await this.consume(await response.next());
        if (!this.meter.hasContent && this.pending.length > openingCharactersMax) throw this.malformed("the stream begins with too much that is no content");
      }
    } catch (error) {
      response.abort();
      return failureOf(error, response.status);
    }
    if (!this.endAwaited) response.markContent();
    this.options.onFirstContent();
    return undefined;
  }

  /** The next frames; pings while the upstream is silent. */
  async next(): Promise<string | undefined> {
    // A client that left before its answer began leaves the upstream to whoever drains it.
    if (this.clientGone) return undefined;
    if (this.pulled === undefined) {
      if (this.pending !== "") return this.take();
      if (this.ended) return undefined;
    }
    // Frames that came while a ping was on its way are still in here, the last ones of the stream too.
    this.pulled ??= this.pull();
    const frames = await this.options.keepAlive.until(this.pulled);
    if (frames !== this.options.keepAlive.pingFrame) this.pulled = undefined;
    return frames;
  }

  /** The client has left. */
  cancel(): void {
    if (this.clientGone) return;
    this.clientGone = true;
    if (this.ended) return;
    if (this.options.drainOnCancel) void this.drain();
    else {
      this.options.response.abort();
      void this.close("cancelled");
    }
  }

  private take(): string {
    const frames = this.pending;
    this.pending = "";
    return frames;
  }

  private async pull(): Promise<string | undefined> {
    try {
      while (this.pending === "" && !this.ended) {
        const pulled = this.options.response.next();
        await this.consume(pulled instanceof Promise ? await pulled : pulled);
      }
    } catch (error) {
      await this.breakOff(error);
    }
    return this.pending === "" ? undefined : this.take();
  }

  private async consume(chunk: Uint8Array | undefined): Promise<void> {
    const events = chunk === undefined ? this.decoder.end() : this.decoder.push(chunk);
    for (const event of events) {
      if (this.ended) return;
      if (event.data === "[DONE]") await this.finish({ terminated: true });
      // Heartbeats that are no JSON, such as `data: : keepalive`, are nobody's content.
      else if (event.data.startsWith("{") || event.event === "error") await this.onEvent(event);
    }
    if (chunk === undefined && !this.ended) await this.finish({ terminated: false });
  }

  private async onEvent({ event, data }: SseEvent): Promise<void> {
    const chunk = this.parse(data, event);
    this.meter.observe(chunk);
    if (this.meter.finished !== this.endAwaited) this.noteFinished(this.meter.finished);
    // OpenRouter and its like report a failure as the reason of a finish.
    if (this.meter.finishReason === "error") throw reportedFault({ message: "the provider broke off the answer" });
    this.upstreamId ??= typeof chunk.id === "string" ? chunk.id : null;
    let text = this.renamed(data);
    if (this.meter.showsUsage(chunk)) text = await this.withCharge(text, chunk);
    else if (tellsCost(chunk.usage)) text = withoutCost(text);
    if (this.untoldFallback !== undefined && chunk.usage !== undefined && chunk.usage !== null) text = this.withFallback(text, this.untoldFallback);
    this.pending += `data: ${text}\n\n`;
  }

  /** After the last finish heartbeats keep a stream open no longer; another choice that begins does. */
  private noteFinished(finished: boolean): void {
    this.endAwaited = finished;
    if (finished) this.options.response.expectEnd();
    else this.options.response.markContent();
  }

  private parse(data: string, event: string | undefined): ChatChunk {
    let chunk: ChatChunk;
    try {
      chunk = JSON.parse(data) as ChatChunk;
    } catch {
      // Some servers end a stream with `event: error` and a sentence.
      if (event === "error") chunk = { error: data };
      else throw this.malformed("an event of the stream is not valid JSON");
    }
    const error = chunk.error ?? (event === "error" ? chunk as ReportedDetails : undefined);
    if (error === undefined || error === null) return chunk;
    throw reportedFault(typeof error === "object" ? error : { message: String(error) });
  }

  /** The event with the client's id and model. All events of a stream start alike, so the start is swapped as a whole. */
  private renamed(data: string): string {
    if (this.prefix !== undefined && data.startsWith(this.prefix.from)) {
      return this.prefix.to + data.slice(this.prefix.from.length);
    }
    const { id, model } = this.options.shown;
    const edits = new Map([["id", JSON.stringify(id)], ["model", JSON.stringify(model)]]);
    this.prefix = swappedPrefix(data, edits);
    return editMembers(data, edits);
  }

  private async withCharge(text: string, chunk: ChatChunk): Promise<string> {
    this.assertContent();
    const settled = await this.settleOnce("completed");
    const usage = scanMembers(text).find((member) => member.key === "usage");
    const original = usage === undefined ? undefined : text.slice(usage.valueStart, usage.valueEnd);
    const metered = this.meter.metered();
    this.meter.costShown = true;
    const edits = new Map<string, string | undefined>([
      ["usage", pricedUsageText({ original, metered, chargedNano: settled.chargedNano })],
    ]);
    if (!Array.isArray(chunk.choices)) edits.set("choices", "[]");
    if (!Array.isArray(chunk.choices) || chunk.choices.length === 0) {
      edits.set(brand.metadataKey, this.options.metadataText(settled));
      this.meter.metadataShown = true;
    }
    return editMembers(text, edits);
  }

  /** The first chunk that carries usage tells of a model fallback, whether or not it is the one with the charge. */
  private withFallback(text: string, fallback: ModelFallback): string {
    this.untoldFallback = undefined;
    return editMembers(text, new Map(fallbackMembers(fallback)));
  }

  private malformed(observation: string): StreamFault {
    return new StreamFault(malformedAnswer(this.options.response.status, observation));
  }

  /** An end without content is the provider's failure, and nothing is charged for it. */
  private assertContent(): void {
    if (!this.meter.isAcceptable) throw new StreamFault(emptyAnswer(this.options.response.status));
  }

  /** The upstream has said everything: complete only if it said how it finished, or that it is done. */
  private async finish({ terminated }: { terminated: boolean }): Promise<void> {
    this.assertContent();
    if (!this.meter.finished) {
      if (!terminated) {
        throw this.malformed("the stream ended before the answer was finished");
      }
      for (const { index, reason } of this.meter.finishOpen()) {
        this.pending += this.ownChunk(`[{"index":${index},"delta":{},"finish_reason":"${reason}"}]`, "");
      }
    }
    const settled = await this.settleOnce("completed");
    if (!this.meter.metadataShown) this.pending += this.ownChunk("[]", this.closingMembers(settled));
    this.pending += "data: [DONE]\n\n";
    this.end();
  }

  /** Members of the final frame: the metadata, and the charge where no chunk of the upstream's showed it. */
  private closingMembers(settled: Settled): string {
    const usage = this.meter.costShown
      ? ""
      : `,"usage":${pricedUsageText({ original: undefined, metered: this.meter.metered(), chargedNano: settled.chargedNano })}`;
    return `${usage},"${brand.metadataKey}":${this.options.metadataText(settled)}`;
  }

  /** A frame that the upstream did not send. */
  private ownChunk(choices: string, members: string): string {
    const { id, model } = this.options.shown;
    const created = this.meter.created;
    return `data: {"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(model)},"choices":${choices}${members}}\n\n`;
  }

  private async breakOff(error: unknown): Promise<void> {
    this.options.response.abort();
    if (this.clientGone) return;
    try {
      // Every choice has finished: what broke afterwards took nothing from the answer.
      if (error instanceof UpstreamFailure && this.meter.finished) {
        await this.finish({ terminated: false });
        return;
      }
      await this.settleOnce("cut");
      this.pending += this.options.errorFrame(failureOf(error, this.options.response.status));
    } catch (settlementError) {
      this.pending += this.options.errorFrame(settlementError);
    }
    this.end();
  }

  private settleOnce(status: StreamEnd): Promise<Settled> {
    this.settlement ??= this.options.settle(this.meter.metered(), {
      status: this.clientGone ? "cancelled" : status,
      finishReason: this.meter.finishReason, upstreamId: this.upstreamId,
    });
    return this.settlement;
  }

  private async close(status: StreamEnd): Promise<void> {
    // A settlement that fails was reported by the settling side; there is nobody left to tell.
    await this.settleOnce(status).catch(() => undefined);
    this.end();
  }

  /** Reads on for the upstream's own usage after the client has left. */
  private async drain(): Promise<void> {
    try {
      await this.pulled;
      for (let count = 0; count < drainChunksMax && !this.ended; count += 1) {
        await this.consume(await this.options.response.next());
        this.pending = "";
      }
    } catch {
      // What was delivered until here is what there is to settle.
    }
    if (!this.ended) this.options.response.abort();
    await this.close("cancelled");
  }

  private end(): void {
    if (this.ended) return;
    this.ended = true;
    this.options.onClosed();
  }
}
