import { asObject } from "../../../inference/dialects/shared/wire-fields.ts";
import type { RealtimeEvent } from "../../../inference/surfaces/realtime/realtime-session.ts";
import type { GatewayError } from "../../../platform/kernel/errors.ts";

/** Matches frames of sound, whose type comes before anything nested; they are not parsed. */
const soundPattern =
  /^\s*\{[^{}[\]]{0,300}"type"\s*:\s*"(response\.(?:output_)?audio\.delta|input_audio_buffer\.append)"/;

/** Characters from which a frame is tried as sound before it is parsed. */
const soundFrom = 512;

/** Characters of a frame of sound that are no sound. */
const soundOverhead = 160;

/** A frame: an event, or sound of a length in bytes. */
export type RealtimeFrame =
  | { soundBytes: number; isInput: boolean }
  | { event: RealtimeEvent; type: string }
  | { invalid: string };

/** Reads a frame of either side. */
export function readRealtimeFrame(text: string): RealtimeFrame {
  const sound = text.length >= soundFrom ? soundPattern.exec(text) : null;
  if (sound !== null)
    return {
      soundBytes: Math.max(0, Math.floor(((text.length - soundOverhead) * 3) / 4)),
      isInput: sound[1] === "input_audio_buffer.append",
    };
  let event: unknown;
  try {
    event = JSON.parse(text);
  } catch {
    return { invalid: "The frame is not valid JSON." };
  }
  const fields = asObject(event);
  if (fields === undefined || typeof fields["type"] !== "string")
    return { invalid: "The frame has to be a JSON object with a type." };
  const { type, audio, delta } = fields;
  if (type === "input_audio_buffer.append" && typeof audio === "string")
    return { soundBytes: Math.floor((audio.length * 3) / 4), isInput: true };
  if (/^response\.(?:output_)?audio\.delta$/.test(type) && typeof delta === "string")
    return { soundBytes: Math.floor((delta.length * 3) / 4), isInput: false };
  return { event: fields, type };
}

/** Returns an `error` event, after which a session goes on unless its socket is closed. */
export const realtimeError = (
  { code, message, param }: Pick<GatewayError, "code" | "message" | "param">,
  { type, eventId }: { type?: string | undefined; eventId?: unknown } = {},
): string =>
  JSON.stringify({
    type: "error",
    event_id: `event_${crypto.randomUUID().replaceAll("-", "")}`,
    error: {
      type: type ?? "invalid_request_error",
      code,
      message,
      param: param ?? null,
      event_id: typeof eventId === "string" ? eventId : null,
    },
  });

/** Bytes of one second of sound, by its format. */
const bytesPerSecond: Readonly<Record<string, number>> = {
  "audio/pcm": 48_000,
  pcm16: 48_000,
  "audio/pcmu": 8_000,
  "audio/pcma": 8_000,
  g711_ulaw: 8_000,
  g711_alaw: 8_000,
};

/** Returns the milliseconds of sound in a format; a rate other than 24 kHz is taken into account. */
export function soundMs(bytes: number, format: unknown): number {
  const fields = asObject(format);
  const type = String(fields?.["type"] ?? (typeof format === "string" ? format : "audio/pcm"));
  const rate = fields?.["rate"];
  const perSecond =
    type === "audio/pcm" && typeof rate === "number" && rate > 0
      ? rate * 2
      : (bytesPerSecond[type] ?? 8_000);
  return Math.ceil((bytes * 1000) / perSecond);
}

/** Tokens of a second of sound that is sent (OpenAI: one for each 100 ms), and of one that is made. */
const inputTokensPerSecond = 10;
const outputTokensPerSecond = 20;

/** Returns the tokens of sound that is sent. */
export const inputSoundTokens = (ms: number): number =>
  Math.ceil((ms * inputTokensPerSecond) / 1000);
/** Returns the tokens of sound that is made. */
export const outputSoundTokens = (ms: number): number =>
  Math.ceil((ms * outputTokensPerSecond) / 1000);
