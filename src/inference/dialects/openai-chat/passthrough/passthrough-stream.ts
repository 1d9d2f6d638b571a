import { brand } from "../../../../platform/kernel/brand.ts";
import type { GatewayError } from "../../../../platform/kernel/errors.ts";
import {
  editMembers,
  replaceEach,
  scanMembers,
} from "../../../../platform/kernel/json/json-members.ts";
import {
  coveringDelivered,
  type Finish,
  type FinishReason,
  type MeteredUsage,
} from "../../../canonical/response.ts";
import type { JsonObject } from "../../../canonical/json.ts";
import {
  boundOrEstimated,
  type EventText,
  inOneLine,
  KeptRelay,
  type RelayOptions,
  type ReportedDetails,
  type SseEvent,
  reportedFault,
  unfinishedStream,
} from "../../shared/passthrough.ts";
import { fallbackMembers, type ModelFallback } from "../../shared/gateway-facts.ts";
import { indexOf, AlikeEvents, swapped, type SwappedPrefix } from "./alike-events.ts";
import { decodeFinish, providerMember } from "../answer-fields.ts";
import { encodeStreamError } from "../errors.ts";
import type { AnswerShape } from "./answer-shape.ts";
import { ChunkShape } from "./passthrough-answer.ts";
import { pricedUsageText, readChatUsage, reportsCost, withoutCost, withTier } from "../usage.ts";

/** Options of a chat relay. */
interface ChatRelayOptions extends RelayOptions {
  traceId: string;
  shape: AnswerShape;
  /** The provider's slug. */
  providerId: string;
  nowSeconds(): number;
}

/**
 * Relays a chat stream in its own dialect: every event is passed on with id and model replaced, the
 * charge is added to the usage, and a stream that was cut never looks complete.
 */
export class ChatRelay extends KeptRelay<ChatChunk, ChatStreamMeter> {
  upstreamId: string | null = null;
  private readonly options: ChatRelayOptions;
  protected readonly meter: ChatStreamMeter;
  private readonly shape: ChunkShape;
  private readonly alike = new AlikeEvents();
  private prefix: SwappedPrefix | undefined;
  private untoldFallback: ModelFallback | undefined;
  /** Usage that came before any finish; clients look for the finish first. */
  private earlyUsage: { text: string; chunk: ChatChunk } | undefined;

  constructor(options: ChatRelayOptions) {
    super();
    this.options = options;
    this.untoldFallback = options.fallback;
    this.meter = new ChatStreamMeter(options);
    this.shape = new ChunkShape(options.shape, options);
  }

  get finished(): boolean {
    return this.meter.finished;
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
    const chunk = this.eventOf(event);
    if (chunk === undefined) return "";
    const error = chunk.error ?? (event.event === "error" ? (chunk as ReportedDetails) : undefined);
    if (error !== undefined && error !== null)
      throw reportedFault(typeof error === "object" ? error : { message: error });
    this.meter.observe(chunk);
    // OpenRouter and similar gateways report a failure as a finish reason.
    const { finish } = this.meter;
    if (finish?.reason === "error")
      throw reportedFault({ message: finish.explanation ?? brokenOff(this.meter.finishReason) });
    this.upstreamId ??= typeof chunk.id === "string" ? chunk.id : null;
    const line = inOneLine(data);
    const renamed = this.renamed(line);
    const { text, isSteady } = this.shape.shown(renamed, chunk);
    if (chunk.usage === undefined || chunk.usage === null) {
      if (isSteady) this.alike.learn(line, { chunk, prefix: this.prefix, shown: text });
      return `data: ${text}\n\n`;
    }
    if (!this.meter.finished && chunk.choices?.length === 0) {
      this.earlyUsage = { text, chunk };
      return "";
    }
    return this.withUsage(text, chunk);
  }

  finish(): Promise<string> {
    return this.close({ terminated: false });
  }

  endAtCap(): Promise<string> {
    const frames = this.finishFrames("length");
    return this.close({ terminated: true }).then((rest) => frames + rest);
  }

  fail(error: GatewayError): string {
    this.ended = true;
    return encodeStreamError(error, { traceId: this.options.traceId }).join("");
  }

  /**
   * Returns the event with the client's id and model. All events of a stream have the same prefix,
   * so it is replaced as a whole.
   */
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
    else if (reportsCost(chunk.usage)) text = withoutCost(text);
    if (this.untoldFallback !== undefined) text = this.withFallback(text, this.untoldFallback);
    return `data: ${text}\n\n`;
  }

  private async withCharge(text: string, chunk: ChatChunk): Promise<string> {
    this.assertContent();
    const { chargedNano } = await this.options.settle();
    this.meter.costShown = true;
    const charged = pricedText(text, { metered: this.meter.metered(), chargedNano });
    if (Array.isArray(chunk.choices) && chunk.choices.length > 0) return charged;
    this.meter.metadataShown = true;
    const metadata = this.options.metadataText();
    const priced =
      typeof chunk.provider !== "string"
        ? withMember(charged, providerMember, JSON.stringify(this.options.providerId))
        : charged;
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

  /**
   * Adds a model fallback to the first chunk with usage, whether or not it is the one with the
   * charge.
   */
  private withFallback(text: string, fallback: ModelFallback): string {
    this.untoldFallback = undefined;
    return editMembers(text, new Map(fallbackMembers(fallback)));
  }

  /**
   * Ends the stream: it is complete only if the upstream said how it finished, or that it is done.
   */
  private async close({ terminated }: { terminated: boolean }): Promise<string> {
    this.assertContent();
    let frames = "";
    if (!this.meter.finished) {
      if (!terminated) throw unfinishedStream();
      frames = this.finishFrames();
    }
    if (this.earlyUsage !== undefined && !this.meter.costShown)
      frames += await this.withUsage(this.earlyUsage.text, this.earlyUsage.chunk);
    const { chargedNano } = await this.options.settle();
    if (!this.meter.metadataShown) frames += this.ownChunk("[]", this.closingMembers(chargedNano));
    this.ended = true;
    return `${frames}data: [DONE]\n\n`;
  }

  /**
   * Returns frames with what was held back of calls, and those that finish the choices which have
   * not said how they finished.
   */
  private finishFrames(because?: string): string {
    const held = this.shape
      .heldCalls()
      .map((choice) => this.ownChunk(JSON.stringify([{ ...choice, finish_reason: null }]), ""));
    const finishes = this.meter
      .finishOpen(because)
      .map(({ index, reason }) =>
        this.ownChunk(`[{"index":${index},"delta":{},"finish_reason":"${reason}"}]`, ""),
      );
    return [...held, ...finishes].join("");
  }

  /**
   * Returns the members of the final frame: the provider and the metadata, and the charge where no
   * chunk of the upstream carried it.
   */
  private closingMembers(chargedNano: bigint): string {
    const usage = this.meter.costShown
      ? ""
      : `,"usage":${pricedUsageText({ original: undefined, metered: this.meter.metered(), chargedNano })}`;
    const provider = `,"${providerMember}":${JSON.stringify(this.options.providerId)}`;
    return `${usage}${provider},"${brand.metadataKey}":${this.options.metadataText()}`;
  }

  /** Returns a frame that the upstream did not send. */
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

/** Returns a chunk whose usage reports the charge. */
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

/**
 * Sets a member of an object. One that ends with its last value, as nearly all do, and does not
 * contain the member is not scanned.
 */
function withMember(text: string, name: string, value: string): string {
  const quoted = JSON.stringify(name);
  if (!/[^\s{]\}$/.test(text.slice(-2)) || text.includes(quoted) || text.includes("\\"))
    return editMembers(text, new Map([[name, value]]));
  return `${text.slice(0, -1)},${quoted}:${value}}`;
}

/** The parts of a chat chunk that are read while it is relayed. */
export interface ChatChunk {
  service_tier?: unknown;
  id?: unknown;
  created?: unknown;
  choices?: (ChatChoice | null)[];
  usage?: unknown;
  object?: unknown;
  system_fingerprint?: unknown;
  provider?: unknown;
  x_groq?: { usage?: unknown };
  error?: { message?: unknown; code?: unknown; type?: unknown } | string | null;
}

interface ChatChoice {
  index?: unknown;
  delta?: ChatDelta | null;
  finish_reason?: unknown;
  error?: { message?: unknown } | null;
}

interface ChatDelta {
  content?: unknown;
  refusal?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  tool_calls?:
    | ({
        function?: { name?: unknown; arguments?: unknown };
        custom?: { input?: unknown };
      } | null)[]
    | null;
  function_call?: { arguments?: unknown } | null;
  audio?: unknown;
}

const textLength = (value: unknown): number => {
  if (typeof value === "string") return value.length;
  return Array.isArray(value)
    ? value.reduce<number>(
        (sum, part: { text?: unknown } | null) => sum + textLength(part?.text),
        0,
      )
    : 0;
};

function deltaLength(delta: ChatDelta): number {
  let length =
    textLength(delta.content) +
    textLength(delta.refusal) +
    textLength(delta.reasoning_content ?? delta.reasoning);
  for (const call of Array.isArray(delta.tool_calls) ? delta.tool_calls : []) {
    length +=
      1 +
      textLength(call?.function?.name) +
      textLength(call?.function?.arguments) +
      textLength(call?.custom?.input);
  }
  if (delta.function_call) length += 1 + textLength(delta.function_call.arguments);
  return delta.audio ? length + 1 : length;
}

/** Ends that are not meaningful where nothing was said. */
const quietEnds: ReadonlySet<FinishReason> = new Set([
  "stop",
  "stop_sequence",
  "tool_calls",
  "error",
]);

const isFinish = (reason: unknown): reason is string => typeof reason === "string" && reason !== "";

/**
 * Follows a chat stream for its settlement, in one small step per event. Values of other types are
 * ignored.
 */
class ChatStreamMeter {
  /** The finish reason that the upstream wrote. */
  finishReason: string | null = null;
  /** Its meaning; undefined while there is none, and for an unknown one. */
  finish: Finish | undefined;
  /** Whether a chunk of the upstream already carried the final metadata. */
  metadataShown = false;
  /** Whether a chunk of the upstream already carried the charge. */
  costShown = false;
  readonly inputTokens: number;
  readonly windowTokens: number;
  outputCharacters = 0;
  private usage: MeteredUsage | undefined;
  /** The latest service tier that a chunk named; not every server repeats it beside the usage. */
  private tier: unknown;
  private calledTools = false;
  /** Choices that began and did not say how they finished. */
  private readonly open = new Set<number>();

  /**
   * `inputTokens` is the estimate for a provider that reports none, `windowTokens` the model's
   * context window.
   */
  constructor({ inputTokens, windowTokens }: { inputTokens: number; windowTokens: number }) {
    this.inputTokens = inputTokens;
    this.windowTokens = windowTokens;
  }

  observe(chunk: ChatChunk): void {
    for (const choice of Array.isArray(chunk.choices) ? chunk.choices : []) {
      if (typeof choice === "object" && choice !== null) this.observeChoice(choice);
    }
    const usage = chunk.usage ?? chunk.x_groq?.usage;
    this.tier = chunk.service_tier ?? this.tier;
    if (usage !== undefined && usage !== null)
      this.usage = withTier(readChatUsage(usage), this.tier) ?? this.usage;
  }

  /** Counts the text of a choice, from events that were not parsed. */
  observeText({ index, characters }: { index: number; characters: number }): void {
    this.outputCharacters += characters;
    this.open.add(index);
  }

  private observeChoice(choice: ChatChoice): void {
    const length = choice.delta ? deltaLength(choice.delta) : 0;
    if (length > 0) {
      this.outputCharacters += length;
      this.open.add(indexOf(choice));
      if (choice.delta?.tool_calls) this.calledTools = true;
    }
    if (isFinish(choice.finish_reason)) {
      this.finishReason = choice.finish_reason;
      this.finish = decodeFinish(choice as JsonObject);
      this.open.delete(indexOf(choice));
    }
  }

  /** Whether every choice that began has finished. */
  get finished(): boolean {
    return this.finishReason !== null && this.open.size === 0;
  }

  /**
   * Returns the choices that ended without a reason, with the one that a client needs for each:
   * `reason`, or what fits the content.
   */
  finishOpen(
    reason = this.calledTools ? "tool_calls" : "stop",
  ): { index: number; reason: string }[] {
    const unsaid = this.finishReason === null && this.open.size === 0 ? [0] : [...this.open];
    const closed = unsaid.map((index) => ({ index, reason }));
    this.open.clear();
    this.finishReason ??= reason;
    return closed;
  }

  /**
   * Whether there is content, or an end without any that is meaningful to the client: cut by its
   * own limit, or filtered.
   */
  get isAcceptable(): boolean {
    return (
      this.outputCharacters > 0 || (this.finish !== undefined && !quietEnds.has(this.finish.reason))
    );
  }

  /**
   * Returns whether the charge belongs on this chunk: it carries usage, and is the last such chunk
   * rather than one of many.
   */
  showsUsage(chunk: ChatChunk): boolean {
    if (chunk.usage === undefined || chunk.usage === null || this.usage === undefined) return false;
    if (!Array.isArray(chunk.choices) || chunk.choices.length === 0) return this.finished;
    return this.finished && chunk.choices.some((choice) => isFinish(choice?.finish_reason));
  }

  /** Returns the provider's usage, or an estimate from what was delivered. */
  metered(): MeteredUsage {
    const { usage, outputCharacters } = this;
    return boundOrEstimated(
      usage === undefined || this.finished ? usage : coveringDelivered(usage, outputCharacters),
      this,
    );
  }
}
