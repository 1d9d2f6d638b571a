import type { Loss } from "../../canonical/request.ts";
import type { AdaptedRoute } from "../../pipeline/inference-call.ts";
import type { SpeechRequest } from "./speech-request.ts";
import type { Transcript } from "./transcripts/transcript.ts";
import type { TranscriptionRequest } from "./transcripts/transcription-request.ts";
import type { MediaBody } from "../media/uploads.ts";

/** A request about sound as one provider is sent it. */
interface SoundExchange {
  /** The path and query below the provider's address. */
  path: string;
  body: MediaBody;
  losses: readonly Loss[];
}

/** A request for a transcript, and how its answer is read. */
interface TranscriptExchange extends SoundExchange {
  /** Reads an answer; undefined where it is none of the dialect's. */
  read(body: object): Transcript | undefined;
}

/** What a provider sends in place of plain sound. */
export type SpeechAnswer =
  /** The sound itself, of the named media type. */
  | { form: "bytes"; type: string }
  /** Samples without a header: 24 kHz, 16 bits, one channel. */
  | { form: "pcm"; wrap: boolean }
  /** OpenAI's events with base64, which end with the usage. */
  | { form: "events"; type: string }
  /** Gemini's JSON with base64 samples. */
  | { form: "gemini"; wrap: boolean };

/** A request to speak, and the form of its answer. */
export interface SpeechExchange extends SoundExchange {
  answer: SpeechAnswer;
}

/** The wire format of one vendor's transcriptions and speech. */
export interface SoundDialect {
  /** Encodes a request. Throws `GatewayError` for what the provider cannot be asked for. */
  transcribe(request: TranscriptionRequest, route: AdaptedRoute): TranscriptExchange;
  speak(request: SpeechRequest, route: AdaptedRoute): SpeechExchange;
}

/** Names the members of a request that a vendor has no form for. */
export const lossesOf = (
  fields: Readonly<Record<string, unknown>>,
  { known, vendor }: { known: readonly string[]; vendor: string },
): Loss[] =>
  Object.keys(fields)
    .filter((field) => !known.includes(field))
    .map((field) => ({ field, reason: `${vendor} has no such field` }));

/** The media types of sound by the names that OpenAI gives them. */
export const soundTypes: Readonly<Record<string, string>> = {
  mp3: "audio/mpeg",
  opus: "audio/ogg",
  aac: "audio/aac",
  flac: "audio/flac",
  wav: "audio/wav",
  pcm: "audio/pcm",
  ogg: "audio/ogg",
  mulaw: "audio/basic",
};
