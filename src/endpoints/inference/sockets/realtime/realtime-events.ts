import { asObject } from "../../../../inference/dialects/shared/wire-fields.ts";
import type { RealtimeEvent } from "../../../../inference/surfaces/realtime/realtime-session.ts";
import type { GatewayError } from "../../../../platform/kernel/errors.ts";

/** Matches frames of sound, whose type comes before anything nested; they are not parsed. */
const soundPattern =
  /^\s*\{[^{}[\]]{0,300}"type"\s*:\s*"((?:response|session)\.(?:output_)?audio\.delta|(?:session\.)?input_audio_buffer\.append)"/;

/** Matches the types of events that carry sound. */
const soundTypes =
  /^(?:(?:response|session)\.(?:output_)?audio\.delta|(?:session\.)?input_audio_buffer\.append)$/;

/** Characters from which a frame is tried as sound before it is parsed. */
const soundFrom = 512;

/** Returns the bytes of a text in base64. */
const decodedBytes = (characters: number, padding: number): number =>
  Math.floor((characters * 3) / 4) - padding;

const paddingOf = (text: string, end = text.length): number =>
  text.endsWith("==", end) ? 2 : text.endsWith("=", end) ? 1 : 0;

/**
 * Returns the bytes of sound of a frame that ends with its sound; undefined for every other frame,
 * which has to be parsed: one that names a second type, for one, could be read as another event.
 */
function soundBytesOf(text: string): number | undefined {
  if (!soundPattern.test(text)) return undefined;
  const end = text.lastIndexOf('"');
  const start = text.lastIndexOf('"', end - 1) + 1;
  if (!/"(?:audio|delta)"\s*:\s*"$/.test(text.slice(Math.max(0, start - 16), start)))
    return undefined;
  if (text.slice(end + 1).trim() !== "}") return undefined;
  const head = text.slice(0, start);
  if (head.indexOf('"type"') !== head.lastIndexOf('"type"') || text.includes("\\"))
    return undefined;
  return decodedBytes(end - start, paddingOf(text, end));
}

/** A frame: an event, or sound of a length in bytes. */
export type RealtimeFrame =
  | { soundBytes: number }
  | { event: RealtimeEvent; type: string }
  | { invalid: string };

/** Reads a frame of either side. */
export function readRealtimeFrame(text: string): RealtimeFrame {
  const soundBytes = text.length >= soundFrom ? soundBytesOf(text) : undefined;
  if (soundBytes !== undefined) return { soundBytes };
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
  const isSound = soundTypes.test(type);
  const sent = audio ?? delta;
  if (isSound && typeof sent === "string")
    return { soundBytes: decodedBytes(sent.length, paddingOf(sent)) };
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
