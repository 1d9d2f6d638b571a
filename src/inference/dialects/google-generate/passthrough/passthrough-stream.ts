import { brand } from "../../../../platform/kernel/brand.ts";
import type { GatewayError } from "../../../../platform/kernel/errors.ts";
import { editMembers, memberText } from "../../../../platform/kernel/json/json-members.ts";
import type { JsonObject } from "../../../canonical/json.ts";
import { coveringDelivered, type MeteredUsage } from "../../../canonical/response.ts";
import { fallbackMembers } from "../../shared/gateway-facts.ts";
import {
  boundOrEstimated,
  inOneLine,
  KeptRelay,
  reportedFault,
  type RelayOptions,
  type SseEvent,
  unfinishedStream,
} from "../../shared/passthrough.ts";
import { asArray, asNumber, asObject, asString, objectsIn } from "../../shared/wire-fields.ts";
import { encodeStreamError, pingFrame, readStreamError } from "../errors.ts";
import { hasUsage, pricedUsageText, readUsage } from "../usage.ts";

/** Options of a relay between Google's clients and models. */
interface GenerateRelayOptions extends RelayOptions {
  traceId: string;
}

/**
 * Relays a stream of chunks in its own dialect. Chunks are passed on as they came, except for id
 * and model. Nothing in the stream says that it is over, so that a chunk that names an end waits
 * for what follows it, and the last one gets the charge and the metadata.
 */
export class GenerateRelay extends KeptRelay<JsonObject, GenerateMeter> {
  override readonly pingFrame = pingFrame;
  protected readonly meter: GenerateMeter;
  private readonly options: GenerateRelayOptions;
  /** The text of a chunk that names an end, until another one or the end of the stream follows. */
  private held: string | undefined;

  constructor(options: GenerateRelayOptions) {
    super();
    this.options = options;
    this.meter = new GenerateMeter(options);
  }

  get finished(): boolean {
    return this.meter.finished;
  }

  get upstreamId(): string | null {
    return this.meter.upstreamId;
  }

  metered(): MeteredUsage {
    return this.meter.metered();
  }

  accept(sse: SseEvent): string {
    const chunk = this.eventOf(sse);
    if (chunk === undefined) return "";
    if (chunk.error !== undefined && chunk.error !== null)
      throw reportedFault(readStreamError(chunk) ?? {});
    this.meter.observe(chunk);
    const data = inOneLine(sse.data);
    const isEnd = namesEnd(chunk);
    // Usage alone is shown with the chunk that names the end.
    if (!isEnd && chunk.candidates === undefined) return "";
    const before = this.held === undefined ? "" : this.frameOf(this.held, []);
    this.held = isEnd ? data : undefined;
    return isEnd ? before : before + this.frameOf(data, []);
  }

  finish(): Promise<string> {
    this.assertContent();
    if (!this.finished) throw unfinishedStream();
    return this.last(this.held ?? ownEnding(this.finishReason ?? "STOP"));
  }

  endAtCap(): Promise<string> {
    this.meter.finishReason ??= "MAX_TOKENS";
    return this.last(ownEnding("MAX_TOKENS"));
  }

  fail(error: GatewayError): string {
    this.ended = true;
    return encodeStreamError(error, { traceId: this.options.traceId }).join("");
  }

  private async last(data: string): Promise<string> {
    const { settle, metadataText, fallback } = this.options;
    const { chargedNano } = await settle();
    const original = this.meter.usageText ?? memberText(data, "usageMetadata");
    const usage = pricedUsageText({ original, metered: this.metered(), chargedNano });
    this.ended = true;
    return this.frameOf(data, [
      ["usageMetadata", usage],
      ...(fallback === undefined ? [] : fallbackMembers(fallback)),
      [brand.metadataKey, metadataText()],
    ]);
  }

  /** Returns the frame of a chunk with the client's id and model. */
  private frameOf(data: string, members: readonly (readonly [string, string])[]): string {
    const { id, model } = this.options.shown;
    const edits = new Map([
      ["modelVersion", JSON.stringify(model)],
      ["responseId", JSON.stringify(id)],
      ...members,
    ]);
    return `data: ${editMembers(data, edits)}\n\n`;
  }
}

/** Returns a chunk that names an end which the upstream did not send. */
const ownEnding = (finishReason: string): string =>
  JSON.stringify({
    candidates: [{ content: { parts: [{ text: "" }], role: "model" }, finishReason, index: 0 }],
  });

const blockOf = (chunk: JsonObject): string | undefined =>
  asString(asObject(chunk.promptFeedback)?.blockReason);

/** Returns whether a chunk says how a candidate ended, or that the prompt was refused. */
const namesEnd = (chunk: JsonObject): boolean =>
  (asArray(chunk.candidates) ?? []).some((one) => asString(asObject(one)?.finishReason)) ||
  (chunk.candidates === undefined && blockOf(chunk) !== undefined);

/** Returns the characters of candidates: what is visible, and thoughts. */
export function spokenCharacters(candidates: readonly JsonObject[]): {
  visible: number;
  thought: number;
} {
  let visible = 0;
  let thought = 0;
  for (const { content } of candidates)
    for (const value of asArray(asObject(content)?.parts) ?? []) {
      const part = asObject(value);
      if (part === undefined) continue;
      const text = asString(part.text);
      if (part.thought === true) thought += text?.length ?? 0;
      else if (text !== undefined) visible += text.length;
      else if (Object.keys(part).some((key) => key !== "thoughtSignature"))
        visible += part.functionCall === undefined ? 1 : JSON.stringify(part.functionCall).length;
    }
  return { visible, thought };
}

/** Follows a stream of chunks for its settlement. */
class GenerateMeter {
  finishReason: string | null = null;
  upstreamId: string | null = null;
  outputCharacters = 0;
  /** The latest usage as JSON text. */
  usageText: string | undefined;
  private usageFields: JsonObject | undefined;
  private readonly searches = new Map<number, number>();
  private readonly open = new Set<number>();
  private readonly options: { inputTokens: number; windowTokens: number };

  constructor(options: { inputTokens: number; windowTokens: number }) {
    this.options = options;
  }

  /** Whether every candidate has named its end. */
  get finished(): boolean {
    return this.finishReason !== null && this.open.size === 0;
  }

  /** Whether there is content, or an end without any that is meaningful to the client. */
  get isAcceptable(): boolean {
    return (
      this.outputCharacters > 0 || (this.finishReason !== null && this.finishReason !== "STOP")
    );
  }

  observe(chunk: JsonObject): void {
    this.upstreamId ??= asString(chunk.responseId) ?? null;
    const usage = asObject(chunk.usageMetadata);
    if (usage !== undefined && hasUsage(usage)) {
      this.usageFields = usage;
      this.usageText = JSON.stringify(usage);
    }
    const candidates = objectsIn(chunk.candidates);
    for (const candidate of candidates) this.observeCandidate(candidate);
    if (candidates.length === 0) this.finishReason ??= blockOf(chunk) ?? null;
    const { visible, thought } = spokenCharacters(candidates);
    this.outputCharacters += visible + thought;
  }

  /** Returns the provider's usage, or an estimate from what was delivered. */
  metered(): MeteredUsage {
    const reported = readUsage(this.usageFields);
    const covered =
      reported === undefined || this.finished
        ? reported
        : coveringDelivered(reported, this.outputCharacters);
    const bound = boundOrEstimated(covered, {
      ...this.options,
      outputCharacters: this.outputCharacters,
    });
    let searches = 0;
    for (const count of this.searches.values()) searches += count;
    return searches === 0 ? bound : { ...bound, usage: { ...bound.usage, searches } };
  }

  private observeCandidate(candidate: JsonObject): void {
    const index = asNumber(candidate.index) ?? 0;
    const queries = asArray(asObject(candidate.groundingMetadata)?.webSearchQueries);
    if (queries !== undefined) this.searches.set(index, queries.length);
    const reason = asString(candidate.finishReason);
    if (reason) {
      this.finishReason = reason;
      this.open.delete(index);
    } else this.open.add(index);
  }
}
