import type { GatewayError } from "../../../platform/kernel/errors.ts";
import type { Loss } from "../../canonical/request.ts";
import type { SpokenPart, StreamPart } from "../../canonical/response.ts";
import type { StreamEncoder } from "../../dialects/dialect.ts";
import { reportError } from "../../dialects/errors.ts";
import type { AnswerLosses } from "../../dialects/shared/encode-state.ts";
import { asGatewayFacts } from "../../dialects/shared/gateway-facts.ts";
import type { RelayOptions } from "../../dialects/shared/stream/stream-relay.ts";
import type { AnswerReader } from "../../dialects/shared/stream/answer-reader.ts";
import type { StreamWriter } from "../../dialects/shared/stream/stream-writer.ts";
import type { CallIds } from "../../dialects/shared/tools.ts";
import { keepSignature, type WorkspaceSignatures, type LateSeals } from "./call-signatures.ts";

/** What a writer knows of the conversation that its stream goes on with. */
export interface KnownTurns {
  /** Keeps the reasoning that the client is not sent; absent where it is sent all. */
  lateSeals: LateSeals | undefined;
  callIds: CallIds;
}

/** Options of a writer of another dialect. */
interface TranslatedWriterOptions extends RelayOptions, KnownTurns {
  reader: AnswerReader;
  encoder: StreamEncoder;
  answerLosses: AnswerLosses;
  pingFrame: string;
  traceId: string;
  signatures: WorkspaceSignatures;
  nowSeconds(): number;
}

/**
 * Writes a stream in another dialect than its upstream's: each part becomes the client's frames at
 * once. The usage waits for the charge, since the client is sent both together.
 */
export class TranslatedWriter implements StreamWriter {
  readonly pingFrame: string;

  constructor(private readonly options: TranslatedWriterOptions) {
    this.pingFrame = options.pingFrame;
  }

  get losses(): readonly Loss[] {
    return this.options.answerLosses.list;
  }

  write(parts: readonly StreamPart[]): string {
    let frames = "";
    for (const part of parts)
      if (part.type !== "usage" && part.type !== "response-end") frames += this.framesOf(part);
    return frames;
  }

  writeText(part: SpokenPart): string {
    return this.framesOf(part);
  }

  async end(): Promise<string> {
    const { encoder, settle, metadataText, fallback, reader } = this.options;
    this.keepLateSeals();
    const { chargedNano, isByok } = await settle();
    const metered = reader.metered();
    const gateway = asGatewayFacts({
      chargedNano,
      isByok,
      metered,
      fallback,
      metadataText: metadataText(),
    });
    return [
      ...encoder.encode({ type: "usage", usage: metered }),
      ...encoder.encode({ type: "response-end", gateway }),
    ].join("");
  }

  fail(error: GatewayError): string {
    const reported = reportError(error, { traceId: this.options.traceId });
    return this.options.encoder
      .encode({ type: "error", error: reported, fault: "reported" })
      .join("");
  }

  private framesOf(came: StreamPart): string {
    const { answerLosses, lateSeals, signatures, encoder, callIds } = this.options;
    const part = came.type === "tool-call-start" ? { ...came, id: callIds.take(came.id) } : came;
    answerLosses.observe(part);
    lateSeals?.observe(part);
    if (part.type === "tool-call-start") keepSignature(part, signatures);
    const frames = encoder.encode(this.dated(part));
    return frames.length === 1 ? (frames[0] ?? "") : frames.join("");
  }

  /** Returns the start with a creation time, which Messages and the Gemini API do not report. */
  private dated(part: StreamPart): StreamPart {
    if (part.type !== "response-start" || part.createdAtSeconds > 0) return part;
    return { ...part, createdAtSeconds: this.options.nowSeconds() };
  }

  private keepLateSeals(): void {
    const { lateSeals, answerLosses } = this.options;
    if (lateSeals?.keep() === true) answerLosses.lose("reasoning", lateReason);
  }
}

const lateReason = "it came after the text, which is last in answers of this dialect";
