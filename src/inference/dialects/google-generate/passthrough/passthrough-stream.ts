import { brand } from "../../../../platform/kernel/brand.ts";
import type { GatewayError } from "../../../../platform/kernel/errors.ts";
import { editMembers, memberText } from "../../../../platform/kernel/json/json-members.ts";
import type { JsonObject } from "../../../canonical/json.ts";
import type { StreamPart } from "../../../canonical/response.ts";
import { trimmed } from "../../errors.ts";
import { fallbackMembers } from "../../shared/gateway-facts.ts";
import { inOneLine, asArray, asObject, asString } from "../../shared/wire-fields.ts";
import type { RelayOptions, SseEvent } from "../../shared/stream/stream-relay.ts";
import type { AnswerReader } from "../../shared/stream/answer-reader.ts";
import type { ShownEvent, StreamWriter } from "../../shared/stream/stream-writer.ts";
import type { GenerateStreamDecoder } from "../decode-stream.ts";
import { encodeStreamError, pingFrame } from "../errors.ts";
import { pricedUsageText } from "../usage.ts";

/** Options of a writer that keeps the bytes of Google's chunks. */
interface KeptWriterOptions extends RelayOptions {
  reader: AnswerReader;
  /** Has the latest event that was read, and the latest usage. */
  decoder: Pick<GenerateStreamDecoder, "chunk" | "usageFields">;
  traceId: string;
}

/**
 * Writes a stream of chunks in its own dialect: as they came, except for id and model. Nothing in
 * the stream says that it is over, so that a chunk that names an end waits for what follows it, and
 * the last one gets the charge and the metadata.
 */
export class KeptWriter implements StreamWriter {
  readonly pingFrame = pingFrame;
  finishReason: string | null = null;
  /** The text of a chunk that names an end, until another one or the end of the stream follows. */
  private held: string | undefined;
  private latest: ShownEvent | undefined;

  constructor(private readonly options: KeptWriterOptions) {}

  write(parts: readonly StreamPart[], event?: SseEvent): string {
    this.latest = undefined;
    // The answer ends at its cap.
    if (event === undefined && parts.at(-1)?.type === "finish") {
      this.finishReason ??= "MAX_TOKENS";
      this.held = ownEnding("MAX_TOKENS");
    }
    const { chunk } = this.options.decoder;
    if (event === undefined || chunk === undefined) return "";
    const data = inOneLine(trimmed(event.data));
    const end = endOf(chunk);
    // Usage alone is shown with the chunk that names the end.
    if (end === undefined && chunk.candidates === undefined) return "";
    const before = this.held === undefined ? "" : this.frameOf(this.held, []);
    this.held = end === undefined ? undefined : data;
    this.finishReason = end ?? this.finishReason;
    if (end !== undefined) return before;
    const frame = before + this.frameOf(data, []);
    this.latest = { frame, isRewritten: false };
    return frame;
  }

  latestShown(): ShownEvent | undefined {
    return this.latest;
  }

  async end(): Promise<string> {
    const { settle, metadataText, fallback, reader, decoder } = this.options;
    const { chargedNano } = await settle();
    const data = this.held ?? ownEnding(this.finishReason ?? "STOP");
    const original =
      decoder.usageFields === undefined
        ? memberText(data, "usageMetadata")
        : JSON.stringify(decoder.usageFields);
    const usage = pricedUsageText({ original, metered: reader.metered(), chargedNano });
    return this.frameOf(data, [
      ["usageMetadata", usage],
      ...(fallback === undefined ? [] : fallbackMembers(fallback)),
      [brand.metadataKey, metadataText()],
    ]);
  }

  fail(error: GatewayError): string {
    return encodeStreamError(error, { traceId: this.options.traceId }).join("");
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

/**
 * Returns how a chunk says that a candidate ended, or that the prompt was refused; undefined where
 * it says neither.
 */
function endOf({ candidates, promptFeedback }: JsonObject): string | undefined {
  if (candidates === undefined) return asString(asObject(promptFeedback)?.blockReason);
  let end: string | undefined;
  for (const one of asArray(candidates) ?? []) end = asString(asObject(one)?.finishReason) || end;
  return end;
}
