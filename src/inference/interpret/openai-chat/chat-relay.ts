import { brand } from "../../../platform/lib/brand.ts";
import type { GatewayError } from "../../../platform/lib/errors.ts";
import { editMembers, replaceEach, scanMembers } from "../../../platform/lib/json-members.ts";
import type { MeteredUsage } from "../../canonical/usage.ts";
import { encodeStreamError } from "../../dialects/openai-chat/encode-error.ts";
import { emptyAnswer, malformedAnswer } from "../../upstream/classify-failure.ts";
import type { EventText } from "../../upstream/event-reader.ts";
import type { SseEvent } from "../../upstream/sse-event.ts";
import type { RelayOptions, StreamRelay } from "../interpretation.ts";
import { fallbackMembers, type ModelFallback } from "../model-fallback.ts";
import { reportedFault, StreamFault, type ReportedDetails } from "../stream-fault.ts";
import { ChunkShape, type AnswerShape } from "./answer-shape.ts";
import { AlikeEvents } from "./alike-events.ts";
import { ChatStreamMeter, type ChatChunk } from "./chat-stream-meter.ts";
import { pricedUsageText } from "./chat-usage-text.ts";
import { swapped, type SwappedPrefix } from "./swapped-prefix.ts";
import { tellsCost, withoutCost } from "./without-cost.ts";

/** What a chat relay is made of. */
export interface ChatRelayOptions extends RelayOptions {
  traceId: string;
  shape: AnswerShape;
  nowSeconds(): number;
}

/**
 * Relays a chat stream in the dialect that it came in: every event goes on with id and model replaced,
 * the charge is shown where usage is, and a stream that was cut never looks complete.
 */
export class ChatRelay implements StreamRelay {
  ended = false;
  upstreamId: string | null = null;
  // A comment that ends in a single line break, so that no client mistakes it for an event.
  readonly pingFrame = ": ping\n";
  private readonly options: ChatRelayOptions;
  private readonly meter: ChatStreamMeter;
  private readonly shape: ChunkShape;
  private readonly alike = new AlikeEvents();
  private prefix: SwappedPrefix | undefined;
  private untoldFallback: ModelFallback | undefined;

  constructor(options: ChatRelayOptions) {
    this.options = options;
    this.untoldFallback = options.fallback;
    this.meter = new ChatStreamMeter(options);
    this.shape = new ChunkShape(options.shape, options);
  }

  get hasContent(): boolean {
    return this.meter.hasContent;
  }

  get finished(): boolean {
    return this.meter.finished;
  }

  get finishReason(): string | null {
    return this.meter.finishReason;
  }

  metered(): MeteredUsage {
    return this.meter.metered();
  }

  acceptAlike(events: EventText): string {
    const alike = this.alike.take(events);
    if (alike === undefined) return "";
    this.meter.observeText(alike);
    return alike.frames;
  }

  accept(event: SseEvent): string | Promise<string> {
    const { data } = event;
    const alike = event.event === undefined ? this.alike.find(data) : undefined;
    if (alike !== undefined) {
      this.meter.observeText(alike);
      return alike.frames;
    }
    if (data === "[DONE]") return this.close({ terminated: true });
    // Heartbeats that are no JSON, such as `data: : keepalive`, are nobody's content.
    if (!data.startsWith("{") && event.event !== "error") return "";
    const chunk = this.parse(event);
    this.meter.observe(chunk);
    // OpenRouter and its like report a failure as the reason of a finish.
    const { finish } = this.meter;
    if (finish?.reason === "error")
      throw reportedFault({ message: finish.explanation ?? brokenOff(this.meter.finishReason) });
    this.upstreamId ??= typeof chunk.id === "string" ? chunk.id : null;
    // Between the members of JSON a line break is a blank; the client would take it for the end of its line.
    const line = data.includes("\n") ? data.replaceAll("\n", " ") : data;
    const renamed = this.renamed(line);
    const { text, isSteady } = this.shape.shown(renamed, chunk);
    if (chunk.usage === undefined || chunk.usage === null) {
      if (isSteady) this.alike.learn(line, { chunk, prefix: this.prefix, shown: text });
      return `data: ${text}\n\n`;
    }
    return this.withUsage(text, chunk);
  }

  finish(): Promise<string> {
    return this.close({ terminated: false });
  }

  get outputCharacters(): number {
    return this.meter.outputCharacters;
  }

  endAtCap(): Promise<string> {
    const frames = this.finishFrames("length");
    return this.close({ terminated: true }).then((rest) => frames + rest);
  }

  fail(error: GatewayError): string {
    this.ended = true;
    return encodeStreamError(error, { traceId: this.options.traceId }).join("");
  }

  private parse({ data, event }: SseEvent): ChatChunk {
    let chunk: ChatChunk;
    try {
      chunk = JSON.parse(data) as ChatChunk;
    } catch {
      // Some servers end a stream with `event: error` and a sentence.
      if (event === "error") chunk = { error: data };
      else throw this.malformed("an event of the stream is not valid JSON");
    }
    const error = chunk.error ?? (event === "error" ? (chunk as ReportedDetails) : undefined);
    if (error === undefined || error === null) return chunk;
    throw reportedFault(typeof error === "object" ? error : { message: String(error) });
  }

  /** The event with the client's id and model. All events of a stream start alike, so the start is swapped as a whole. */
  private renamed(data: string): string {
    if (this.prefix !== undefined && data.startsWith(this.prefix.from)) {
      return this.prefix.to + data.slice(this.prefix.from.length);
    }
    const { id, model } = this.options.shown;
    const { text, prefix } = swapped(data, {
      id: JSON.stringify(id),
      model: JSON.stringify(model),
    });
    this.prefix = prefix;
    return text;
  }

  private async withUsage(renamed: string, chunk: ChatChunk): Promise<string> {
    let text = renamed;
    if (this.meter.showsUsage(chunk)) text = await this.withCharge(text, chunk);
    else if (tellsCost(chunk.usage)) text = withoutCost(text);
    if (this.untoldFallback !== undefined) text = this.withFallback(text, this.untoldFallback);
    return `data: ${text}\n\n`;
  }

  private async withCharge(text: string, chunk: ChatChunk): Promise<string> {
    this.assertContent();
    const { chargedNano } = await this.options.settle();
    this.meter.costShown = true;
    const priced = pricedText(text, { metered: this.meter.metered(), chargedNano });
    if (Array.isArray(chunk.choices) && chunk.choices.length > 0) return priced;
    this.meter.metadataShown = true;
    const metadata = this.options.metadataText();
    if (!Array.isArray(chunk.choices))
      return editMembers(
        priced,
        new Map([
          ["choices", "[]"],
          [brand.metadataKey, metadata],
        ]),
      );
    return withMember(priced, brand.metadataKey, metadata);
  }

  /** The first chunk that carries usage tells of a model fallback, whether or not it is the one with the charge. */
  private withFallback(text: string, fallback: ModelFallback): string {
    this.untoldFallback = undefined;
    return editMembers(text, new Map(fallbackMembers(fallback)));
  }

  private malformed(observation: string): StreamFault {
    return new StreamFault(malformedAnswer(this.options.status, observation));
  }

  /** An end without content is the provider's failure, and nothing is charged for it. */
  private assertContent(): void {
    if (!this.meter.isAcceptable) throw new StreamFault(emptyAnswer(this.options.status));
  }

  /** The upstream has said everything: complete only if it said how it finished, or that it is done. */
  private async close({ terminated }: { terminated: boolean }): Promise<string> {
    this.assertContent();
    let frames = "";
    if (!this.meter.finished) {
      if (!terminated) throw this.malformed("the stream ended before the answer was finished");
      frames = this.finishFrames();
    }
    const { chargedNano } = await this.options.settle();
    if (!this.meter.metadataShown) frames += this.ownChunk("[]", this.closingMembers(chargedNano));
    this.ended = true;
    return `${frames}data: [DONE]\n\n`;
  }

  /** Frames that finish the choices which have not said how they did. */
  private finishFrames(because?: string): string {
    return this.meter
      .finishOpen(because)
      .map(({ index, reason }) =>
        this.ownChunk(`[{"index":${index},"delta":{},"finish_reason":"${reason}"}]`, ""),
      )
      .join("");
  }

  /** Members of the final frame: the metadata, and the charge where no chunk of the upstream's showed it. */
  private closingMembers(chargedNano: bigint): string {
    const usage = this.meter.costShown
      ? ""
      : `,"usage":${pricedUsageText({ original: undefined, metered: this.meter.metered(), chargedNano })}`;
    return `${usage},"${brand.metadataKey}":${this.options.metadataText()}`;
  }

  /** A frame that the upstream did not send. */
  private ownChunk(choices: string, members: string): string {
    const { id, model } = this.options.shown;
    const head = JSON.stringify({
      id,
      object: "chat.completion.chunk",
      created: this.shape.created,
      model,
    });
    return `data: ${head.slice(0, -1)},"choices":${choices}${members}}\n\n`;
  }
}

const brokenOff = (word: string | null): string =>
  `The provider broke off the answer (finish reason ${JSON.stringify(word)}).`;

/** A chunk whose usage tells of the charge. */
function pricedText(text: string, charge: { metered: MeteredUsage; chargedNano: bigint }): string {
  const pricedOf = (original: string | undefined): string =>
    pricedUsageText({ original, ...charge });
  const priced = replaceEach(text, ["usage"], (_, start, end) => pricedOf(text.slice(start, end)));
  if (priced !== undefined) return priced;
  const usage = scanMembers(text).find((member) => member.key === "usage");
  return editMembers(
    text,
    new Map([
      [
        "usage",
        pricedOf(usage === undefined ? undefined : text.slice(usage.valueStart, usage.valueEnd)),
      ],
    ]),
  );
}

/** An object with a member set. One that ends with its last value, as nearly all do, and does not name the member is not walked through. */
function withMember(text: string, name: string, value: string): string {
  const quoted = JSON.stringify(name);
  if (!/[^\s{]\}$/.test(text.slice(-2)) || text.includes(quoted) || text.includes("\\"))
    return editMembers(text, new Map([[name, value]]));
  return `${text.slice(0, -1)},${quoted}:${value}}`;
}
