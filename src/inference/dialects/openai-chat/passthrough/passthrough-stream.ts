import { brand } from "../../../../platform/kernel/brand.ts";
import type { GatewayError } from "../../../../platform/kernel/errors.ts";
import {
  editMembers,
  replaceEach,
  scanMembers,
} from "../../../../platform/kernel/json/json-members.ts";
import type { JsonObject } from "../../../canonical/json.ts";
import type { MeteredUsage, StreamPart, ModelFallback } from "../../../canonical/response.ts";
import { trimmed } from "../../errors.ts";
import { fallbackMembers } from "../../shared/gateway-facts.ts";
import { inOneLine } from "../../shared/wire-fields.ts";
import type { RelayOptions, SseEvent } from "../../shared/stream/stream-relay.ts";
import type { AnswerReader } from "../../shared/stream/answer-reader.ts";
import type { ShownEvent, StreamWriter } from "../../shared/stream/stream-writer.ts";
import { encodeFinish, hasFinished, providerMember } from "../answer-fields.ts";
import { encodeStreamError } from "../errors.ts";
import { pricedUsageText, reportsCost, withoutCost } from "../usage.ts";
import { type AnswerShape, ChunkShape } from "./answer-shape.ts";
import { fieldsOf } from "./kept-calls.ts";
import { swapped, type SwappedPrefix } from "./swapped-prefix.ts";

/** Options of a writer that keeps a chat stream's bytes. */
interface KeptWriterOptions extends RelayOptions {
  reader: AnswerReader;
  /** Has the latest event that was read. */
  decoder: { readonly chunk: JsonObject | undefined };
  traceId: string;
  shape: AnswerShape;
  /** The provider's slug. */
  providerId: string;
  nowSeconds(): number;
}

/**
 * Writes a chat stream in its own dialect: every event as it came, with id and model replaced and
 * in the contract's form, and the charge in the usage.
 */
export class KeptWriter implements StreamWriter {
  // A comment that ends in a single line break, so that no client mistakes it for an event.
  readonly pingFrame = ": ping\n";
  finishReason: string | null = null;
  private readonly shape: ChunkShape;
  private prefix: SwappedPrefix | undefined;
  private untoldFallback: ModelFallback | undefined;
  /** Usage that came before any finish; clients look for the finish first. */
  private earlyUsage: { text: string; chunk: JsonObject } | undefined;
  /** Whether a chunk of the upstream already carried the charge, and the final metadata. */
  private costShown = false;
  private metadataShown = false;
  private latest: ShownEvent | undefined;

  constructor(private readonly options: KeptWriterOptions) {
    this.untoldFallback = options.fallback;
    this.shape = new ChunkShape(options.shape, options);
  }

  write(parts: readonly StreamPart[], event?: SseEvent): string | Promise<string> {
    this.latest = undefined;
    const chunk = event === undefined ? undefined : this.options.decoder.chunk;
    if (event === undefined || chunk === undefined) return this.ownFrames(parts);
    const data = trimmed(event.data);
    // Servers send errors in lists, which were read, and nothing else.
    if (!data.startsWith("{")) return "";
    this.noteFinish(chunk);
    const renamed = this.renamed(inOneLine(data));
    const { text, isRewritten } = this.shape.shown(renamed, chunk);
    if (chunk.usage === undefined || chunk.usage === null) {
      const frame = `data: ${text}\n\n`;
      this.latest = { frame, isRewritten };
      return frame;
    }
    if (!this.options.reader.finished && isEmptyList(chunk.choices)) {
      this.earlyUsage = { text, chunk };
      return "";
    }
    return this.withUsage(text, chunk);
  }

  latestShown(): ShownEvent | undefined {
    return this.latest;
  }

  async end(): Promise<string> {
    let frames = "";
    if (this.earlyUsage !== undefined && !this.costShown)
      frames += await this.withUsage(this.earlyUsage.text, this.earlyUsage.chunk);
    const { chargedNano } = await this.options.settle();
    if (!this.metadataShown) frames += this.ownChunk("[]", this.closingMembers(chargedNano));
    return `${frames}data: [DONE]\n\n`;
  }

  fail(error: GatewayError): string {
    return encodeStreamError(error, { traceId: this.options.traceId }).join("");
  }

  /** Keeps the latest finish reason in the upstream's own word. */
  private noteFinish({ choices }: JsonObject): void {
    for (const value of Array.isArray(choices) ? (choices as readonly unknown[]) : []) {
      const reason = fieldsOf(value)?.finish_reason;
      if (typeof reason === "string" && reason !== "") this.finishReason = reason;
    }
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

  private async withUsage(renamed: string, chunk: JsonObject): Promise<string> {
    let text = renamed;
    if (this.showsCharge(chunk)) text = await this.withCharge(text, chunk);
    else if (reportsCost(chunk.usage)) text = withoutCost(text);
    if (this.untoldFallback !== undefined) text = this.withFallback(text, this.untoldFallback);
    return `data: ${text}\n\n`;
  }

  /**
   * Returns whether the charge belongs on this chunk with usage: it is the last such chunk rather
   * than one of many.
   */
  private showsCharge({ choices }: JsonObject): boolean {
    const { reader } = this.options;
    if (reader.reported === undefined || !reader.finished) return false;
    return !Array.isArray(choices) || choices.length === 0 || choices.some(endsChoice);
  }

  private async withCharge(text: string, chunk: JsonObject): Promise<string> {
    const { reader, settle, metadataText, providerId } = this.options;
    reader.assertContent();
    const { chargedNano } = await settle();
    this.costShown = true;
    const charged = pricedText(text, { metered: reader.metered(), chargedNano });
    if (Array.isArray(chunk.choices) && chunk.choices.length > 0) return charged;
    this.metadataShown = true;
    const metadata = metadataText();
    const priced =
      typeof chunk.provider !== "string"
        ? withMember(charged, providerMember, JSON.stringify(providerId))
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
   * Returns frames that no event carried: what was held back of calls, and the ends of choices which
   * have not said how they finished.
   */
  private ownFrames(parts: readonly StreamPart[]): string {
    if (parts.length === 0) return "";
    const held = this.shape
      .heldCalls()
      .map((choice) => this.ownChunk(JSON.stringify([{ ...choice, finish_reason: null }]), ""));
    const { legacyFunctions } = this.options.shape;
    const finishes = parts.flatMap((part) => {
      if (part.type !== "finish") return [];
      const { finish_reason: reason } = encodeFinish(part.finish, { legacyFunctions });
      const choice = { index: part.choiceIndex, delta: {}, finish_reason: reason };
      return [this.ownChunk(JSON.stringify([choice]), "")];
    });
    return [...held, ...finishes].join("");
  }

  /**
   * Returns the members of the final frame: the provider and the metadata, and the charge where no
   * chunk of the upstream carried it.
   */
  private closingMembers(chargedNano: bigint): string {
    const { reader, providerId, metadataText } = this.options;
    const usage = this.costShown
      ? ""
      : `,"usage":${pricedUsageText({ original: undefined, metered: reader.metered(), chargedNano })}`;
    const provider = `,"${providerMember}":${JSON.stringify(providerId)}`;
    return `${usage}${provider},"${brand.metadataKey}":${metadataText()}`;
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

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

const endsChoice = (value: unknown): boolean => {
  const choice = fieldsOf(value);
  return choice !== undefined && hasFinished(choice as JsonObject);
};

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
