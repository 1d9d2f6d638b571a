import { asObject } from "../../dialects/shared/wire-fields.ts";
import type { RealtimeEvent } from "./realtime-session.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Names of sound formats in the beta, and their forms in GA. */
const formats: Readonly<Record<string, Fields>> = {
  pcm16: { type: "audio/pcm", rate: 24_000 },
  g711_ulaw: { type: "audio/pcmu" },
  g711_alaw: { type: "audio/pcma" },
};

const gaFormat = (format: unknown): unknown =>
  typeof format === "string" ? (formats[format] ?? format) : format;

const betaFormat = (format: unknown): unknown => {
  const type = asObject(format)?.["type"];
  return Object.keys(formats).find((name) => formats[name]?.["type"] === type) ?? format;
};

/** Returns the members that have a value. */
const present = (fields: Fields): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** Returns an object of the members that have a value; undefined where there are none. */
function group(fields: Fields): Record<string, unknown> | undefined {
  const kept = present(fields);
  return Object.keys(kept).length === 0 ? undefined : kept;
}

/** In the beta an answer in sound names its transcript, too. */
const gaModalities = (modalities: unknown): unknown =>
  Array.isArray(modalities) ? (modalities.includes("audio") ? ["audio"] : ["text"]) : undefined;

const betaModalities = (modalities: unknown): unknown =>
  Array.isArray(modalities)
    ? modalities.includes("audio")
      ? ["audio", "text"]
      : ["text"]
    : undefined;

/** Members of a beta session or response that have another place in GA. */
const movedNames: ReadonlySet<string> = new Set([
  "modalities",
  "voice",
  "speed",
  "input_audio_format",
  "output_audio_format",
  "input_audio_transcription",
  "input_audio_noise_reduction",
  "turn_detection",
  "max_response_output_tokens",
  // GA has no temperature.
  "temperature",
]);

/** Returns the settings of a beta session or response as GA has them. */
export function gaSettings(beta: Fields): Record<string, unknown> {
  const kept = Object.fromEntries(Object.entries(beta).filter(([name]) => !movedNames.has(name)));
  const input = group({
    format: gaFormat(beta["input_audio_format"]),
    transcription: beta["input_audio_transcription"],
    noise_reduction: beta["input_audio_noise_reduction"],
    turn_detection: beta["turn_detection"],
  });
  const output = group({
    format: gaFormat(beta["output_audio_format"]),
    voice: beta["voice"],
    speed: beta["speed"],
  });
  return present({
    ...kept,
    output_modalities: gaModalities(beta["modalities"]) ?? beta["output_modalities"],
    max_output_tokens: beta["max_response_output_tokens"] ?? beta["max_output_tokens"],
    audio: group({ input, output }) ?? beta["audio"],
  });
}

/** Returns the settings of a GA session or response as the beta has them. */
function betaSettings(ga: Fields): Record<string, unknown> {
  const { audio, output_modalities: modalities, max_output_tokens: cap, type: _, ...kept } = ga;
  const input = asObject(asObject(audio)?.["input"]);
  const output = asObject(asObject(audio)?.["output"]);
  return present({
    ...kept,
    modalities: betaModalities(modalities),
    max_response_output_tokens: cap,
    input_audio_format: betaFormat(input?.["format"]),
    input_audio_transcription: input?.["transcription"],
    input_audio_noise_reduction: input?.["noise_reduction"],
    turn_detection: input?.["turn_detection"],
    output_audio_format: betaFormat(output?.["format"]),
    voice: output?.["voice"],
    speed: output?.["speed"],
  });
}

/** Types of content parts in the beta, and in GA. */
const gaParts: Readonly<Record<string, string>> = { text: "output_text", audio: "output_audio" };
const betaParts: Readonly<Record<string, string>> = { output_text: "text", output_audio: "audio" };

function withParts(item: unknown, names: Readonly<Record<string, string>>): unknown {
  const fields = asObject(item);
  const content = fields?.["content"];
  if (fields === undefined || !Array.isArray(content)) return item;
  const isOwn = fields["role"] === "assistant";
  return {
    ...fields,
    content: content.map((part: unknown) => {
      const { type, ...others } = asObject(part) ?? {};
      return { ...others, type: isOwn ? (names[String(type)] ?? type) : type };
    }),
  };
}

const gaItem = (item: unknown): unknown => withParts(item, gaParts);
const betaItem = (item: unknown): unknown => withParts(item, betaParts);

const mapped = (list: unknown, map: (item: unknown) => unknown): unknown =>
  Array.isArray(list) ? list.map(map) : list;

/** Returns the event of GA that a client of the beta means. */
export function gaClientEvent(event: RealtimeEvent): RealtimeEvent {
  const session = asObject(event["session"]);
  const response = asObject(event["response"]);
  switch (event["type"]) {
    case "session.update":
      return { ...event, session: { ...gaSettings(session ?? {}), type: "realtime" } };
    case "transcription_session.update":
      return {
        ...event,
        type: "session.update",
        session: { ...gaSettings(session ?? {}), type: "transcription" },
      };
    case "conversation.item.create":
      return { ...event, item: gaItem(event["item"]) };
    case "response.create":
      return response === undefined
        ? event
        : {
            ...event,
            response: present({
              ...gaSettings(response),
              input: mapped(response["input"], gaItem),
            }),
          };
    default:
      return event;
  }
}

/** Returns the event of the beta for what a client of GA has sent. */
export function betaClientEvent(event: RealtimeEvent): RealtimeEvent {
  const session = asObject(event["session"]);
  const response = asObject(event["response"]);
  switch (event["type"]) {
    case "session.update":
      return session?.["type"] === "transcription"
        ? { ...event, type: "transcription_session.update", session: betaSettings(session) }
        : { ...event, session: betaSettings(session ?? {}) };
    case "conversation.item.create":
      return { ...event, item: betaItem(event["item"]) };
    case "response.create": {
      if (response === undefined) return event;
      const { max_response_output_tokens: cap, ...settings } = betaSettings(response);
      const input = mapped(response["input"], betaItem);
      // Responses name their cap as GA does; sessions do not.
      return { ...event, response: present({ ...settings, max_output_tokens: cap, input }) };
    }
    default:
      return event;
  }
}

/** Names of events in GA, and in the beta. */
const betaNames: Readonly<Record<string, string>> = {
  "conversation.item.added": "conversation.item.created",
  "response.output_text.delta": "response.text.delta",
  "response.output_text.done": "response.text.done",
  "response.output_audio.delta": "response.audio.delta",
  "response.output_audio.done": "response.audio.done",
  "response.output_audio_transcript.delta": "response.audio_transcript.delta",
  "response.output_audio_transcript.done": "response.audio_transcript.done",
};
const gaNames: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(betaNames).map(([ga, beta]) => [beta, ga]),
);

/** Returns the event of the beta for one of GA; undefined where the beta has none. */
export function betaServerEvent(event: RealtimeEvent): RealtimeEvent | undefined {
  const type = String(event["type"]);
  if (type === "conversation.item.done") return undefined;
  const session = asObject(event["session"]);
  if (session !== undefined) {
    const isTranscription = session["type"] === "transcription";
    const name = isTranscription ? `transcription_${type}` : type;
    return { ...event, type: name, session: betaSettings(session) };
  }
  return withMembers({ ...event, type: betaNames[type] ?? type }, betaParts, betaSettings);
}

/** Returns the events of GA for one of the beta. */
export function gaServerEvents(event: RealtimeEvent): readonly RealtimeEvent[] {
  const sent = String(event["type"]);
  const type = (gaNames[sent] ?? sent).replace(/^transcription_session\./, "session.");
  const session = asObject(event["session"]);
  if (session !== undefined) {
    const kind = sent.startsWith("transcription_session.") ? "transcription" : "realtime";
    return [{ ...event, type, session: { ...gaSettings(session), type: kind } }];
  }
  const named = withMembers({ ...event, type }, gaParts, gaSettings);
  const item = asObject(named["item"]);
  const isWhole = sent === "conversation.item.created" && item?.["status"] !== "in_progress";
  if (!isWhole && sent !== "response.output_item.done") return [named];
  const { event_id: eventId, response_id: _, output_index: __, ...others } = named;
  const done = { ...others, type: "conversation.item.done", event_id: `${String(eventId)}_done` };
  return [named, done];
}

/** Returns an event with its items, parts and response in the other form. */
function withMembers(
  event: RealtimeEvent,
  parts: Readonly<Record<string, string>>,
  settings: (fields: Fields) => Record<string, unknown>,
): RealtimeEvent {
  const changes: Record<string, unknown> = {};
  if (event["item"] !== undefined) changes["item"] = withParts(event["item"], parts);
  const response = asObject(event["response"]);
  if (response !== undefined) {
    const output = mapped(response["output"], (item) => withParts(item, parts));
    changes["response"] = present({ ...settings(response), output });
  }
  return { ...event, ...changes };
}
