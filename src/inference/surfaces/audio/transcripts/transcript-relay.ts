import type { GatewayError } from "../../../../platform/kernel/errors.ts";
import { usdFromNano } from "../../../../platform/kernel/money.ts";
import type { MeteredUsage } from "../../../canonical/response.ts";
import {
  malformedStream,
  reportedFault,
  unfinishedStream,
} from "../../../dialects/shared/stream/stream-fault.ts";
import type {
  RelayOptions,
  SseEvent,
  StreamRelay,
} from "../../../dialects/shared/stream/stream-relay.ts";
import { withoutUndefined } from "../../../dialects/shared/wire-fields.ts";
import type { Fields } from "../../read-fields.ts";
import {
  meteredTranscript,
  spokenSegment,
  transcriptUsage,
  type SoundMetering,
  type Transcript,
} from "./transcript.ts";
import type { TranscriptionRequest } from "./transcription-request.ts";
import { fieldsOf } from "../../../../platform/kernel/json/json-members.ts";

const frame = (event: Fields): string => `data: ${JSON.stringify(event)}\n\n`;

/** Returns the events of a whole transcript, for a client that asked for a stream. */
export function eventsOfTranscript(
  { format }: Pick<TranscriptionRequest, "format">,
  { text, segments, usage }: Transcript,
): string {
  const pieces =
    format === "diarized_json"
      ? (segments ?? []).map((segment, index) => frame(spokenSegment(segment, index)))
      : [frame({ type: "transcript.text.delta", delta: text })];
  return [...pieces, frame({ type: "transcript.text.done", text, usage })].join("");
}

/** OpenAI's names of Mistral's events (docs.mistral.ai/api, audio.transcriptions.stream). */
const namesAtMistral: Readonly<Record<string, string>> = {
  "transcription.text.delta": "transcript.text.delta",
  "transcription.segment": "transcript.text.segment",
  "transcription.done": "transcript.text.done",
};

/** Returns an event of a provider in OpenAI's form. */
function inOpenaiForm(event: Fields): Fields {
  const { type, text, speaker_id: speaker, ...rest } = event;
  const name = namesAtMistral[String(type)];
  if (name === undefined) return event;
  const said = name === "transcript.text.delta" ? { delta: text } : { text };
  return withoutUndefined<Fields>({ type: name, ...rest, ...said, speaker });
}

/** Relays a stream of a transcript in OpenAI's form, whose last event shows the charge. */
export class TranscriptRelay implements StreamRelay {
  ended = false;
  hasContent = false;
  finished = false;
  outputCharacters = 0;
  readonly finishReason = null;
  readonly upstreamId = null;
  readonly pingFrame = ": ping\n\n";
  private said = "";
  private done: Fields | undefined;

  constructor(
    private readonly options: RelayOptions,
    private readonly metering: { request: TranscriptionRequest } & SoundMetering,
  ) {}

  accept({ data }: SseEvent): string | Promise<string> {
    if (!data.startsWith("{")) return "";
    const event = inOpenaiForm(this.read(data));
    const { type, delta, text, error } = event;
    if (type === "error" || error !== undefined)
      throw reportedFault({ ...fieldsOf(error ?? event) });
    // Others of Mistral's events have no name at OpenAI.
    if (String(type).startsWith("transcription.")) return "";
    this.hasContent = true;
    if (type !== "transcript.text.done") {
      const piece = delta ?? text;
      if (typeof piece === "string") {
        this.said += piece;
        this.outputCharacters += piece.length;
      }
      return frame(event);
    }
    this.done = event;
    this.finished = true;
    return this.settleLast(event);
  }

  async finish(): Promise<string> {
    if (this.ended) return "";
    if (!this.hasContent) throw unfinishedStream();
    // Some servers end without the event; all that was said has come.
    return this.settleLast({ type: "transcript.text.done", text: this.said });
  }

  endAtCap(): Promise<string> {
    return this.finish();
  }

  fail({ code, message, param }: GatewayError): string {
    this.ended = true;
    return frame({
      type: "error",
      error: { message, type: "server_error", code, param: param ?? null },
    });
  }

  metered(): MeteredUsage {
    const { text = this.said, usage } = this.done ?? {};
    return meteredTranscript({ text: String(text), usage }, this.metering);
  }

  private async settleLast(event: Fields): Promise<string> {
    const { chargedNano } = await this.options.settle();
    this.ended = true;
    const usage = transcriptUsage(this.metered().usage, {
      costUsd: usdFromNano(chargedNano),
      form: this.metering.request.form,
    });
    return `${frame({ ...event, usage })}data: [DONE]\n\n`;
  }

  private read(data: string): Fields {
    try {
      return fieldsOf(JSON.parse(data));
    } catch {
      throw malformedStream("an event of the stream is not valid JSON");
    }
  }
}
