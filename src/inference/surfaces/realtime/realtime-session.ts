import { asObject } from "../../dialects/shared/wire-fields.ts";

/** An event of a realtime session. */
export type RealtimeEvent = Readonly<Record<string, unknown>>;

/** The members of `session.update` that the gateway reads, in the names of GA or of the beta. */
interface UpdatedSession {
  model: unknown;
  /** How what is said is transcribed; null turns that off, undefined leaves it as it is. */
  transcription: unknown;
  /** The output cap; `none` takes an earlier one away. */
  cap: number | "none" | undefined;
  inputFormat: unknown;
  outputFormat: unknown;
}

/** Reads `session.update`. */
export function readSession(event: RealtimeEvent): UpdatedSession {
  const session = asObject(event["session"]) ?? {};
  const audio = asObject(session["audio"]);
  const input = asObject(audio?.["input"]);
  const transcription =
    input?.["transcription"] === undefined
      ? session["input_audio_transcription"]
      : input["transcription"];
  const cap = session["max_output_tokens"] ?? session["max_response_output_tokens"];
  return {
    model: session["model"],
    transcription,
    cap: cap === undefined ? undefined : typeof cap === "number" ? cap : "none",
    inputFormat: input?.["format"] ?? session["input_audio_format"],
    outputFormat: asObject(audio?.["output"])?.["format"] ?? session["output_audio_format"],
  };
}

/** Returns why an update is refused; undefined where it is not. */
export function problemOf(
  { model }: UpdatedSession,
  current: string,
): { message: string; param: string } | undefined {
  if (model === undefined || model === current) return undefined;
  const message = `session.model: a session cannot change its model; this one has ${current}.`;
  return { message, param: "session.model" };
}

/** The member of a session that names the model of its transcripts. */
export const transcriptionParam = "session.audio.input.transcription.model";

/** Returns the model of a session's transcripts; undefined where none is named. */
export function transcriptionModelOf(transcription: unknown): string | undefined {
  const model = asObject(transcription)?.["model"];
  return typeof model === "string" && model !== "" ? model : undefined;
}

/** Returns an event whose session has another setting for transcripts; undefined takes it away. */
export function withTranscription(event: RealtimeEvent, transcription: unknown): RealtimeEvent {
  const { input_audio_transcription: _, ...session } = asObject(event["session"]) ?? {};
  const audio = asObject(session["audio"]);
  const { transcription: _lost, ...input } = asObject(audio?.["input"]) ?? {};
  const kept = transcription === undefined ? input : { ...input, transcription };
  return { ...event, session: { ...session, audio: { ...audio, input: kept } } };
}

/** Returns an event whose session's transcripts have their model under another name. */
export function withTranscriptionModel(event: RealtimeEvent, model: string): RealtimeEvent {
  const { transcription } = readSession(event);
  const fields = asObject(transcription);
  return fields === undefined ? event : withTranscription(event, { ...fields, model });
}

/** Returns the output cap that `response.create` names; undefined where it names none. */
export const capOfResponse = (event: RealtimeEvent): unknown =>
  asObject(event["response"])?.["max_output_tokens"];

const lowered = (asked: unknown, cap: number): number =>
  typeof asked === "number" ? Math.min(asked, cap) : cap;

/** Returns the text of an event that limits all responses of a session. */
export const capUpdate = (cap: number): string =>
  JSON.stringify({ type: "session.update", session: { type: "realtime", max_output_tokens: cap } });

/** Returns a session's update with its output cap lowered, where it names one. */
export function withCap(event: RealtimeEvent, cap: number | undefined): RealtimeEvent {
  const session = asObject(event["session"]) ?? {};
  const asked = session["max_output_tokens"];
  if (cap === undefined || asked === undefined) return event;
  return { ...event, session: { ...session, max_output_tokens: lowered(asked, cap) } };
}

/** Returns a request for a response with its output cap lowered. */
export function withResponseCap(event: RealtimeEvent, cap: number): RealtimeEvent {
  const response = asObject(event["response"]) ?? {};
  const most = lowered(response["max_output_tokens"], cap);
  return { ...event, response: { ...response, max_output_tokens: most } };
}

/** Returns an event with the model of its session replaced by another name. */
export function withModel(event: RealtimeEvent, model: string): RealtimeEvent {
  const session = asObject(event["session"]);
  return session?.["model"] === undefined ? event : { ...event, session: { ...session, model } };
}
