import type { MeteredUsage } from "../../canonical/response.ts";
import { malformedStream, reportedFault } from "../../dialects/shared/stream/stream-fault.ts";
import type { BytesDecoder } from "../../pipeline/inference-call.ts";
import { fieldsOf } from "../../../platform/kernel/json/json-members.ts";
import { spokenByGemini } from "./google-audio.ts";
import { soundTypes, type SpeechAnswer } from "./sound-dialect.ts";
import { spokenUsage, type SpeechRequest } from "./speech-request.ts";

/** Samples in a second of the PCM that vendors make, in 16 bits each. */
const sampleRate = 24_000;
const bytesPerMs = (sampleRate * 2) / 1_000;

/** The length that a streamed WAV tells, since its end is not known (as OpenAI writes it). */
const openLength = 0xffffffff;

/** Returns the header of a WAV of one channel; of unknown length where it is streamed. */
export function wavHead(pcmBytes: number | undefined): Uint8Array {
  const head = Buffer.alloc(44);
  head.write("RIFF", 0, "latin1");
  head.writeUInt32LE(pcmBytes === undefined ? openLength : 36 + pcmBytes, 4);
  head.write("WAVEfmt ", 8, "latin1");
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(sampleRate, 24);
  head.writeUInt32LE(sampleRate * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36, "latin1");
  head.writeUInt32LE(pcmBytes ?? openLength, 40);
  return head;
}

const none = new Uint8Array();

/** Counts sound as it passes, and meters it by its characters, its length and its tokens. */
abstract class SpeechDecoder implements BytesDecoder {
  abstract readonly type: string;
  protected pcmBytes = 0;
  protected tokens: { input: number; output: number } | undefined;

  constructor(
    protected readonly request: SpeechRequest,
    private readonly counts: SpeechMetering,
  ) {}

  abstract push(piece: Uint8Array): Uint8Array;
  abstract end(): Uint8Array;

  /** The characters that the provider says it bills; absent where it does not. */
  protected get characters(): number | undefined {
    return this.counts.characters;
  }

  metered(): MeteredUsage {
    const isKnown = this.pcmBytes > 0;
    const usage = spokenUsage(this.request, {
      outputAudioMs: isKnown ? Math.ceil(this.pcmBytes / bytesPerMs) : undefined,
      tokens: this.tokens,
      characters: this.characters,
    });
    const { inputTokens, outputAudioTokens, ...pieces } = usage;
    // Where pieces have a price, tokens that the provider has not counted are not charged.
    const isByPiece = this.tokens === undefined && this.counts.byPiece;
    return {
      usage: isByPiece ? pieces : usage,
      estimated: !isKnown && this.tokens === undefined,
      clamped: false,
    };
  }
}

/** How speech is metered at a route. */
interface SpeechMetering {
  /** Whether the route has a price of characters or of time, so that no tokens are estimated. */
  byPiece: boolean;
  /** The characters that the answer's head says are billed. */
  characters?: number | undefined;
}

/** Passes sound on as it comes. */
class PlainSpeech extends SpeechDecoder {
  readonly type: string;
  private readonly isPcm: boolean;
  private wrap: boolean;

  constructor(
    request: SpeechRequest,
    {
      counts,
      type,
      isPcm,
      wrap,
    }: { counts: SpeechMetering; type: string; isPcm: boolean; wrap: boolean },
  ) {
    super(request, counts);
    this.type = type;
    this.isPcm = isPcm;
    this.wrap = wrap;
  }

  push(piece: Uint8Array): Uint8Array {
    if (this.isPcm) this.pcmBytes += piece.byteLength;
    if (!this.wrap) return piece;
    this.wrap = false;
    return Buffer.concat([wavHead(undefined), piece]);
  }

  end(): Uint8Array {
    return none;
  }
}

/** The most of an answer, or of one event, that waits until it is complete. */
const wholeMax = 64 * 1024 * 1024;

const lineFeed = Buffer.from("\n");

/** Decodes OpenAI's events to sound, and reads the usage of the last one. */
class SpeechOfEvents extends SpeechDecoder {
  readonly type: string;
  private readonly text = new TextDecoder();
  private rest = "";
  private isDone = false;
  /** The error that the provider reported, once the sound before it was passed on. */
  private fault: Error | undefined;

  constructor(request: SpeechRequest, { counts, type }: { counts: SpeechMetering; type: string }) {
    super(request, counts);
    this.type = type;
  }

  push(piece: Uint8Array): Uint8Array {
    if (this.fault !== undefined) throw this.fault;
    const text = this.text.decode(piece, { stream: true });
    this.rest += text;
    if (this.rest.length > wholeMax) throw malformedStream("an event of speech is too large");
    if (!text.includes("\n")) return none;
    const lines = this.rest.split("\n");
    this.rest = lines.pop() ?? "";
    const sound = lines.flatMap((line) =>
      line.startsWith("data:") && this.fault === undefined ? this.read(line.slice(5)) : [],
    );
    if (this.fault !== undefined && sound.length === 0) throw this.fault;
    if (this.type === soundTypes["pcm"])
      for (const bytes of sound) this.pcmBytes += bytes.byteLength;
    return sound.length === 1 ? (sound[0] ?? none) : Buffer.concat(sound);
  }

  end(): Uint8Array {
    const last = this.push(lineFeed);
    if (!this.isDone) throw malformedStream("the stream ended before the speech was finished");
    return last;
  }

  private read(data: string): Uint8Array[] {
    if (!data.trimStart().startsWith("{")) return [];
    const { type, audio, usage, error } = fieldsOf(JSON.parse(data));
    if (type === "error" || error !== undefined) {
      this.fault = reportedFault({ ...fieldsOf(error) });
      return [];
    }
    if (type === "speech.audio.done") {
      this.isDone = true;
      const { input_tokens: input, output_tokens: output } = fieldsOf(usage);
      if (typeof input === "number" && typeof output === "number") this.tokens = { input, output };
    }
    return typeof audio === "string" ? [Buffer.from(audio, "base64")] : [];
  }
}

/** Decodes the one answer of a Gemini model to sound. */
class SpeechOfGemini extends SpeechDecoder {
  readonly type: string;
  private readonly pieces: Uint8Array[] = [];
  private readonly wrap: boolean;
  private size = 0;

  constructor(request: SpeechRequest, { counts, wrap }: { counts: SpeechMetering; wrap: boolean }) {
    super(request, counts);
    this.wrap = wrap;
    this.type = wrap ? "audio/wav" : "audio/pcm";
  }

  push(piece: Uint8Array): Uint8Array {
    this.size += piece.byteLength;
    if (this.size > wholeMax) throw malformedStream("the answer is too large");
    this.pieces.push(piece);
    return none;
  }

  end(): Uint8Array {
    let body: unknown;
    try {
      body = JSON.parse(Buffer.concat(this.pieces).toString("utf8"));
    } catch {
      throw malformedStream("the answer is not valid JSON");
    }
    const spoken = spokenByGemini(body);
    if (spoken === undefined) throw malformedStream("the answer has no sound");
    this.pcmBytes = spoken.pcm.byteLength;
    this.tokens = spoken.tokens;
    return this.wrap ? Buffer.concat([wavHead(this.pcmBytes), spoken.pcm]) : spoken.pcm;
  }
}

/** Returns the decoder of a provider's answer. */
export function speechDecoder(
  request: SpeechRequest,
  { answer, counts }: { answer: SpeechAnswer; counts: SpeechMetering },
): BytesDecoder {
  switch (answer.form) {
    case "bytes":
      return new PlainSpeech(request, {
        counts,
        type: answer.type,
        isPcm: answer.type === soundTypes["pcm"],
        wrap: false,
      });
    case "pcm":
      return new PlainSpeech(request, {
        counts,
        type: answer.wrap ? "audio/wav" : "audio/pcm",
        isPcm: true,
        wrap: answer.wrap,
      });
    case "events":
      return new SpeechOfEvents(request, { counts, type: answer.type });
    case "gemini":
      return new SpeechOfGemini(request, { counts, wrap: answer.wrap });
  }
}
