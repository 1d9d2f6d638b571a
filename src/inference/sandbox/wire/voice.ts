import type { ServerWebSocket } from "bun";
import { tonePcm } from "./pictures.ts";

/** The state of a simulated session. */
export interface VoiceSession {
  model: string;
  settings: Record<string, unknown>;
  /** What the user has written since the last response. */
  texts: string[];
  soundBytes: number;
  /** The number of ids so far, which makes answers deterministic. */
  count: number;
}

type VoiceSocket = ServerWebSocket<VoiceSession>;
type Event = Record<string, unknown>;

/** Begins a session of a model. */
export const newVoiceSession = (model: string): VoiceSession => ({
  model,
  settings: {},
  texts: [],
  soundBytes: 0,
  count: 0,
});

const fieldsOf = (value: unknown): Event => Object(value) as Event;

const nextId = (session: VoiceSession, prefix: string): string =>
  `${prefix}_sandbox_${(session.count += 1)}`;

const send = (socket: VoiceSocket, type: string, members: Event = {}): void =>
  void socket.send(JSON.stringify({ type, event_id: nextId(socket.data, "event"), ...members }));

const shownSession = ({ model, settings }: VoiceSession): Event => ({
  type: "realtime",
  object: "realtime.session",
  id: "sess_sandbox",
  model,
  output_modalities: ["audio"],
  ...settings,
});

/** Greets a client. */
export const voiceOpened = (socket: VoiceSocket): void =>
  send(socket, "session.created", { session: shownSession(socket.data) });

/** Answers an event of OpenAI's Realtime API (GA), in text or with a tone for each character. */
export function voiceReceived(socket: VoiceSocket, text: string): void {
  const { data: session } = socket;
  const event = fieldsOf(JSON.parse(text));
  switch (event["type"]) {
    case "session.update":
      session.settings = { ...session.settings, ...fieldsOf(event["session"]) };
      return send(socket, "session.updated", { session: shownSession(session) });
    case "conversation.item.create":
      return addItem(socket, fieldsOf(event["item"]));
    case "input_audio_buffer.append":
      session.soundBytes += Math.floor((String(event["audio"]).length * 3) / 4);
      return undefined;
    case "input_audio_buffer.commit":
      return send(socket, "input_audio_buffer.committed", { item_id: nextId(session, "item") });
    case "input_audio_buffer.clear":
      session.soundBytes = 0;
      return send(socket, "input_audio_buffer.cleared");
    case "response.create":
      return answer(socket, fieldsOf(event["response"]));
    default:
      return undefined;
  }
}

function addItem(socket: VoiceSocket, sent: Event): void {
  const item = { id: nextId(socket.data, "item"), object: "realtime.item", ...sent };
  const content = Array.isArray(sent["content"]) ? sent["content"] : [];
  for (const part of content) {
    const { text } = fieldsOf(part);
    if (typeof text === "string") socket.data.texts.push(text);
  }
  send(socket, "conversation.item.added", { previous_item_id: null, item });
  send(socket, "conversation.item.done", { previous_item_id: null, item });
}

const tokensOf = (text: string): number => Math.ceil(text.length / 4);

function answer(socket: VoiceSocket, asked: Event): void {
  const { data: session } = socket;
  const seconds = (session.soundBytes / 48_000).toFixed(1);
  const heard = session.texts.join(" ") || `${seconds} seconds of sound`;
  const said = `[simulated] You sent: ${heard}.`;
  const modalities = asked["output_modalities"] ?? session.settings["output_modalities"];
  const speaks = !Array.isArray(modalities) || !modalities.includes("text");
  const response = { id: nextId(session, "resp"), object: "realtime.response", output: [] };
  const item = { id: nextId(session, "item"), type: "message", role: "assistant", content: [] };
  const place = { response_id: response.id, item_id: item.id, output_index: 0, content_index: 0 };
  const part = speaks ? { type: "audio", transcript: said } : { type: "text", text: said };
  send(socket, "response.created", { response: { ...response, status: "in_progress" } });
  send(socket, "response.output_item.added", { response_id: response.id, output_index: 0, item });
  send(socket, "response.content_part.added", { ...place, part: { ...part, transcript: "" } });
  if (speaks) {
    const sound = Buffer.from(tonePcm(said)).toString("base64");
    send(socket, "response.output_audio_transcript.delta", { ...place, delta: said });
    send(socket, "response.output_audio.delta", { ...place, delta: sound });
    send(socket, "response.output_audio.done", place);
    send(socket, "response.output_audio_transcript.done", { ...place, transcript: said });
  } else {
    send(socket, "response.output_text.delta", { ...place, delta: said });
    send(socket, "response.output_text.done", { ...place, text: said });
  }
  // Parts of items are named otherwise than those of events.
  const kept = { ...part, type: speaks ? "output_audio" : "output_text" };
  const done = { ...item, status: "completed", content: [kept] };
  send(socket, "response.content_part.done", { ...place, part });
  send(socket, "response.output_item.done", {
    response_id: response.id,
    output_index: 0,
    item: done,
  });
  const usage = usageOf({
    heard: session.texts.join(" "),
    soundBytes: session.soundBytes,
    said,
    speaks,
  });
  session.texts = [];
  session.soundBytes = 0;
  send(socket, "response.done", {
    response: { ...response, status: "completed", output: [done], usage },
  });
}

/** Counts as OpenAI does: sound by its time, at 10 tokens a second sent and 20 made. */
function usageOf({
  heard,
  soundBytes,
  said,
  speaks,
}: {
  heard: string;
  soundBytes: number;
  said: string;
  speaks: boolean;
}): Event {
  const text = tokensOf(heard);
  const sound = Math.ceil(soundBytes / 4_800);
  const made = speaks ? Math.ceil(tonePcm(said).byteLength / 2_400) : 0;
  const written = tokensOf(said);
  return {
    total_tokens: text + sound + made + written,
    input_tokens: text + sound,
    output_tokens: made + written,
    input_token_details: { text_tokens: text, audio_tokens: sound, cached_tokens: 0 },
    output_token_details: { text_tokens: written, audio_tokens: made },
  };
}
