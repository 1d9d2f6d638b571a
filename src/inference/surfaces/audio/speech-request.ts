import { badField } from "../../../platform/kernel/errors.ts";
import { isLongerThan } from "../../../platform/kernel/schema-problems.ts";
import type { Usage } from "../../../platform/kernel/usage.ts";
import { gatewayMembers, requireFields, type Fields, isAbsent, textIn } from "../read-fields.ts";
import { fieldsOf } from "../../../platform/kernel/json/json-members.ts";

/** A request to speak a text, read and checked. */
export interface SpeechRequest {
  model: string;
  input: string;
  /** A voice by its name or id. */
  voice: string;
  /** Whether it was named as an object with an id, as OpenAI's own voices of an account are. */
  isVoiceId: boolean;
  instructions: string | undefined;
  /** Such as `mp3`; undefined where none was asked for. */
  format: string | undefined;
  speed: number;
  /** Whether the client reads events in place of bytes. */
  asEvents: boolean;
  /** Other members, as they were sent. */
  fields: Fields;
}

/** The formats of OpenAI and of Groq. */
const formats = ["mp3", "opus", "aac", "flac", "wav", "pcm", "ogg", "mulaw"];

/** The most characters of a text (OpenAI's reference of `audio.speech.create`). */
const inputCharactersMax = 4_096;

/** Members that the gateway reads itself. OpenAI's audio API names no end users. */
const ownMembers: ReadonlySet<string> = new Set([
  ...gatewayMembers,
  "input",
  "instructions",
  "response_format",
  "safety_identifier",
  "speed",
  "stream_format",
  "user",
  "voice",
]);

/** Reads and checks a request. Throws `GatewayError` that names the field. */
export function readSpeechRequest(body: Fields): SpeechRequest {
  requireFields(body, ["model", "input"]);
  const input = textIn(body, "input") ?? "";
  if (isLongerThan(input, inputCharactersMax))
    throw badField("input", `may have at most ${inputCharactersMax} characters.`);
  const format = textIn(body, "response_format");
  if (format !== undefined && !formats.includes(format))
    throw badField("response_format", `must be one of ${formats.join(", ")}.`);
  const speed = body["speed"] ?? 1;
  if (typeof speed !== "number" || !(speed >= 0.25 && speed <= 4))
    throw badField("speed", "must be a number from 0.25 to 4.");
  const streamed = textIn(body, "stream_format");
  if (streamed !== undefined && streamed !== "audio" && streamed !== "sse")
    throw badField("stream_format", "must be audio or sse.");
  return {
    model: textIn(body, "model") ?? "",
    input,
    voice: voiceOf(body["voice"]),
    isVoiceId: !isAbsent(body["voice"]) && typeof body["voice"] !== "string",
    instructions: textIn(body, "instructions"),
    format,
    speed,
    asEvents: streamed === "sse",
    fields: Object.fromEntries(
      Object.entries(body).filter(([name, value]) => !ownMembers.has(name) && !isAbsent(value)),
    ),
  };
}

function voiceOf(value: unknown): string {
  if (isAbsent(value)) return "";
  if (typeof value === "string") return value;
  const { id } = fieldsOf(value);
  if (typeof id === "string") return id;
  throw badField("voice", "must be a name, or an object with an id.");
}

/** Characters that are spoken in a second: few for holds, and as many as is usual otherwise. */
const charactersPerSecondLeast = 8;
const charactersPerSecond = 15;
/** Tokens of a second of sound that OpenAI's models make. */
const tokensPerSecond = 20;

/** Returns what speaking a text uses at most, for its hold. */
export function expectedSpeech({ input, instructions = "", speed }: SpeechRequest): Usage {
  const { length } = [...input];
  const seconds =
    Math.ceil(spokenLength(input) / charactersPerSecondLeast / Math.min(1, speed)) + 2;
  return {
    characters: length,
    inputTokens: tokensOf(input) + tokensOf(instructions),
    outputAudioMs: seconds * 1_000,
    outputAudioTokens: seconds * tokensPerSecond,
  };
}

// Bytes, since a character of other scripts is about a token.
const tokensOf = (said: string): number => Math.ceil(Buffer.byteLength(said) / 3);

/** Letters that take as long to speak as one syllable of Chinese, Japanese or Korean. */
const lettersOfSyllable = 3;
/** Letters that take as long as a digit or a sign, which is spoken as a word. */
const lettersOfSign = 5;

/** Returns how long a text is when it is spoken, counted in letters of an alphabet. */
function spokenLength(said: string): number {
  let letters = 0;
  for (const character of said) {
    if (/[\p{N}\p{S}%&#@]/u.test(character)) letters += lettersOfSign;
    else letters += (character.codePointAt(0) ?? 0) >= 0x2e80 ? lettersOfSyllable : 1;
  }
  return letters;
}

/** What a provider sent, as far as it is known. */
interface Spoken {
  /** Undefined where the length of its bytes does not tell. */
  outputAudioMs: number | undefined;
  /** The provider's tokens; absent where it counted none. */
  tokens?: { input: number; output: number } | undefined;
  /** The provider's own count of characters; absent where it has none. */
  characters?: number | undefined;
}

/**
 * Returns the usage that speech is charged by. Characters count whole, since providers bill them
 * whole also where the client leaves.
 */
export function spokenUsage(
  { input, instructions = "", speed }: SpeechRequest,
  { outputAudioMs, tokens, characters }: Spoken,
): Usage {
  const { length } = [...input];
  const ms = outputAudioMs ?? Math.ceil((length / charactersPerSecond / speed) * 1_000);
  return {
    characters: characters ?? length,
    outputAudioMs: ms,
    inputTokens: tokens?.input ?? Math.ceil((input.length + instructions.length) / 4),
    outputAudioTokens: tokens?.output ?? Math.ceil((ms / 1_000) * tokensPerSecond),
  };
}
