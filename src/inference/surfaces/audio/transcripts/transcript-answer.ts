import { usdFromNano } from "../../../../platform/kernel/money.ts";
import type { MeteredUsage } from "../../../canonical/response.ts";
import type { ShownAnswer, WholeAnswer } from "../../../dialects/shared/exchange.ts";
import { withoutUndefined } from "../../../dialects/shared/wire-fields.ts";
import type { Fields } from "../../read-fields.ts";
import type { TranscriptionRequest } from "./transcription-request.ts";
import {
  type Segment,
  type Transcript,
  type SoundMetering,
  meteredTranscript,
  spokenSegment,
  transcriptUsage,
} from "./transcript.ts";

/** The answer to a request for a transcript, in the form that its client asked for. */
export class TranscriptAnswer implements WholeAnswer {
  readonly upstreamId = null;
  readonly finishReason = null;
  readonly metered: MeteredUsage;
  readonly outputCharacters = 0;
  // Silence has an empty transcript.
  readonly hasContent = true;
  readonly spentOnReasoning = false;
  private readonly request: TranscriptionRequest;

  constructor(
    readonly transcript: Transcript,
    { request, byTime }: { request: TranscriptionRequest } & SoundMetering,
  ) {
    this.request = request;
    this.metered = meteredTranscript(transcript, { request, byTime });
  }

  render(shown: ShownAnswer): string {
    const { format } = this.request;
    const { transcript } = this;
    if (format === "text") return `${transcript.text}\n`;
    if (format === "srt") return captions(this.segments, srtCaption).join("\n");
    if (format === "vtt") return `WEBVTT\n\n${captions(this.segments, vttCaption).join("\n")}`;
    const usage = this.usageOf(shown);
    if (format === "json")
      return JSON.stringify({ ...transcript.more, text: transcript.text, usage });
    return JSON.stringify(format === "verbose_json" ? this.verbose(usage) : this.diarized(usage));
  }

  /** Returns the usage with what it cost, as the answer shows it. */
  usageOf({ metered, chargedNano, free }: Pick<ShownAnswer, "metered" | "chargedNano" | "free">) {
    const costUsd = free === true ? undefined : usdFromNano(chargedNano);
    return transcriptUsage(metered.usage, { costUsd, form: this.request.form });
  }

  private get seconds(): number {
    return this.transcript.seconds ?? this.request.length.heldMs / 1_000;
  }

  /** The segments; where the provider has none, one that is as long as the sound. */
  private get segments(): readonly Segment[] {
    const { segments, text } = this.transcript;
    if (segments !== undefined && segments.length > 0) return segments;
    return [{ start: 0, end: this.seconds, text }];
  }

  private verbose(usage: Fields): Fields {
    const { language, text, words, more } = this.transcript;
    const { granularities } = this.request;
    const wantsWords = granularities.includes("word");
    // OpenAI tells no segments where the times of words alone are asked for.
    const isByWord = wantsWords && !granularities.includes("segment") && words !== undefined;
    const tellsSegments = !isByWord || this.transcript.segments !== undefined;
    return withoutUndefined<Fields>({
      ...more,
      task: this.request.task,
      language: language ?? this.request.language ?? "",
      duration: this.seconds,
      text,
      segments: tellsSegments ? this.segments.map(verboseSegment) : undefined,
      words: wantsWords ? words : undefined,
      usage,
    });
  }

  private diarized(usage: Fields): Fields {
    const { text } = this.transcript;
    return {
      task: this.request.task,
      duration: this.seconds,
      text,
      segments: this.segments.map(spokenSegment),
      usage,
    };
  }
}

const verboseSegment = ({ start, end, text, more }: Segment, id: number): Fields => ({
  id,
  seek: 0,
  start,
  end,
  text,
  tokens: [],
  temperature: 0,
  avg_logprob: 0,
  compression_ratio: 0,
  no_speech_prob: 0,
  ...more,
});

const captions = (
  segments: readonly Segment[],
  caption: (segment: Segment, index: number) => string,
): string[] => segments.map(caption);

const srtCaption = ({ start, end, text }: Segment, index: number): string =>
  `${index + 1}\n${clock(start, ",")} --> ${clock(end, ",")}\n${text.trim()}\n`;

const vttCaption = ({ start, end, text }: Segment): string =>
  `${clock(start, ".")} --> ${clock(end, ".")}\n${text.trim()}\n`;

/** Returns a time as captions write it: hours, minutes, seconds and thousandths. */
function clock(seconds: number, point: string): string {
  const ms = Math.max(0, Math.round(seconds * 1_000));
  const two = (value: number): string => String(Math.floor(value)).padStart(2, "0");
  const rest = String(ms % 1_000).padStart(3, "0");
  return `${two(ms / 3_600_000)}:${two((ms / 60_000) % 60)}:${two((ms / 1_000) % 60)}${point}${rest}`;
}
