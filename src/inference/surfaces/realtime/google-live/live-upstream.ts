import { parseEventObject } from "../../../dialects/errors.ts";
import { asObject } from "../../../dialects/shared/wire-fields.ts";
import type { Fields } from "../../read-fields.ts";
import type { RealtimeEvent } from "../realtime-session.ts";
import type { RealtimeUpstream, RealtimeUpstreamEvents } from "../realtime-upstream.ts";
import { liveItem } from "./live-items.ts";
import { LiveResponse, liveId } from "./live-response.ts";
import { endsOwnTurns, type LiveLoss, liveSetup, lossesOf, lost, speaks } from "./live-setup.ts";
import { liveUsage } from "./live-usage.ts";

/** Characters of sound of a turn that may wait until its client ends the turn. */
const turnCharactersMax = 32 * 1024 * 1024;

/** Returns one object with the members of another merged into it, level by level. */
function merged(base: Fields, change: Fields): Record<string, unknown> {
  const result: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(change)) {
    const [before, after] = [asObject(result[name]), asObject(value)];
    result[name] = before !== undefined && after !== undefined ? merged(before, after) : value;
  }
  return result;
}

/**
 * A session of Gemini Live in the events of OpenAI's Realtime API (ai.google.dev, "Live API"). Its
 * settings are final with the first frame, which is sent with the first event that needs it. What has
 * no counterpart is answered by an `error` event that names it.
 */
export class LiveUpstream implements RealtimeUpstream {
  private events: RealtimeUpstreamEvents | undefined;
  private session: Record<string, unknown>;
  private state: "new" | "setting-up" | "ready" = "new";
  private readonly unsent: object[] = [];
  /** The sound and the items that the next response answers. */
  private sound: string[] = [];
  private soundCharacters = 0;
  private hasCommitted = false;
  private turns: object[] = [];
  private outputs: object[] = [];
  private response: LiveResponse | undefined;
  private isInterrupted = false;
  private isCancelled = false;
  private usage: Fields | undefined;
  /** Usage that came when its response had ended: a next one reports it. */
  private readonly lateUsages: Fields[] = [];
  private readonly callNames = new Map<string, string>();
  private readonly callItems = new Map<string, string>();

  constructor(
    private readonly socket: RealtimeUpstream,
    private readonly model: string,
  ) {
    this.session = {
      type: "realtime",
      object: "realtime.session",
      id: liveId("sess"),
      model,
      output_modalities: ["audio"],
    };
  }

  listen(events: RealtimeUpstreamEvents): void {
    this.events = events;
    this.tell({ type: "session.created", session: this.session });
    this.socket.listen({
      received: (text) => this.received(text),
      closed: (code, reason) => events.closed(code, reason),
    });
  }

  get waitingBytes(): number {
    return this.socket.waitingBytes;
  }

  close(): void {
    this.socket.close();
  }

  /** Takes an event of the client. */
  send(text: string): void {
    const event = parseEventObject(text);
    // A frame of sound comes unread.
    if (event === undefined) {
      const message = "The frame is not valid JSON.";
      return this.fail({ code: "bad_request", message, param: null, event_id: null });
    }
    const facts = event["event_id"];
    const type = String(event["type"]);
    switch (type) {
      case "session.update":
        return this.update(asObject(event["session"]) ?? {}, facts);
      case "input_audio_buffer.append":
        return this.append(String(event["audio"]), facts);
      case "input_audio_buffer.commit":
        return this.commit();
      case "input_audio_buffer.clear":
        return this.clear(facts);
      case "conversation.item.create":
        return this.addItem(event["item"], facts);
      case "response.create":
        return this.createResponse(event);
      case "response.cancel":
        // It generates on; what comes is not passed on, and is charged as it is reported.
        this.isCancelled = this.response !== undefined;
        return undefined;
      default:
        return this.refuse(lost(type), facts);
    }
  }

  private update(change: Fields, eventId: unknown): void {
    if (this.state !== "new") {
      const names = Object.keys(change).filter((name) => name !== "type" && name !== "model");
      const why = "settings are final once a session has begun";
      for (const name of names) this.refuse(lost(`session.${name}`, why), eventId);
      return this.tell({ type: "session.updated", session: this.session });
    }
    for (const loss of lossesOf(change)) this.refuse(loss, eventId);
    this.session = merged(this.session, change);
    this.tell({ type: "session.updated", session: this.session });
  }

  private append(audio: string, eventId: unknown): void {
    if (!endsOwnTurns(this.session)) return this.pass(soundFrame(audio));
    this.soundCharacters += audio.length;
    if (this.soundCharacters > turnCharactersMax)
      return this.refuse(lost("audio", "a turn has too much sound"), eventId);
    this.sound.push(audio);
  }

  private commit(): void {
    if (endsOwnTurns(this.session)) this.hasCommitted = true;
    else this.pass({ realtimeInput: { audioStreamEnd: true } });
    const id = liveId("item");
    this.tell({ type: "input_audio_buffer.committed", previous_item_id: null, item_id: id });
    this.confirm({ id, type: "message", role: "user", content: [{ type: "input_audio" }] });
  }

  private clear(eventId: unknown): void {
    if (!endsOwnTurns(this.session))
      return this.refuse(lost("input_audio_buffer.clear", "its sound was heard already"), eventId);
    this.sound = [];
    this.soundCharacters = 0;
    this.tell({ type: "input_audio_buffer.cleared" });
  }

  private addItem(sent: unknown, eventId: unknown): void {
    const item = liveItem(sent, this.callNames);
    if ("lost" in item) return this.refuse(lost(item.lost), eventId);
    if ("turn" in item) this.turns.push(item.turn);
    else this.outputs.push(item.functionResponse);
    this.confirm({ id: liveId("item"), ...asObject(sent) });
  }

  private createResponse(event: RealtimeEvent): void {
    const settings = Object.keys(asObject(event["response"]) ?? {});
    for (const name of settings)
      if (name !== "metadata" && name !== "max_output_tokens")
        this.refuse(lost(`response.${name}`), event["event_id"]);
    const { turns, outputs, sound } = this;
    const hasSound = this.hasCommitted && sound.length > 0;
    if (outputs.length > 0) this.pass({ toolResponse: { functionResponses: outputs } });
    if (turns.length > 0 || (outputs.length === 0 && !hasSound))
      this.pass({ clientContent: { turns, turnComplete: !hasSound } });
    if (hasSound) {
      this.pass({ realtimeInput: { activityStart: {} } });
      for (const audio of sound) this.pass(soundFrame(audio));
      this.pass({ realtimeInput: { activityEnd: {} } });
    }
    this.turns = [];
    this.outputs = [];
    if (hasSound) this.sound = [];
    if (hasSound) this.soundCharacters = 0;
    this.hasCommitted = false;
    this.begin();
  }

  /** Sends a frame, once the provider has accepted the settings. */
  private pass(frame: object): void {
    if (this.state === "ready") return this.socket.send(JSON.stringify(frame));
    this.unsent.push(frame);
    if (this.state === "setting-up") return;
    this.state = "setting-up";
    this.socket.send(JSON.stringify(liveSetup(this.model, this.session)));
  }

  private received(text: string): void {
    const frame = parseEventObject(text) ?? {};
    if (frame["setupComplete"] !== undefined) {
      this.state = "ready";
      for (const each of this.unsent.splice(0)) this.socket.send(JSON.stringify(each));
    }
    const content = asObject(frame["serverContent"]);
    if (content?.["modelTurn"] !== undefined) this.begin();
    this.noteUsage(asObject(frame["usageMetadata"]));
    if (content !== undefined) this.content(content);
    const calls = asObject(frame["toolCall"])?.["functionCalls"];
    if (Array.isArray(calls)) this.called(calls);
    const cancelled = asObject(frame["toolCallCancellation"])?.["ids"];
    for (const id of Array.isArray(cancelled) ? cancelled : []) this.forget(String(id));
    const goAway = asObject(frame["goAway"]);
    if (goAway !== undefined) {
      const message = `The provider ends the session in ${String(goAway["timeLeft"])}. Connect again.`;
      this.fail({ code: "session_expired", message, param: null });
    }
  }

  /** Keeps the largest usage of a turn, whose frames count from its beginning. */
  private noteUsage(usage: Fields | undefined): void {
    if (usage === undefined) return;
    if (this.response === undefined) {
      this.lateUsages.push(usage);
      return;
    }
    const total = (of: Fields | undefined): number => Number(of?.["totalTokenCount"] ?? 0);
    if (total(usage) >= total(this.usage)) this.usage = usage;
  }

  private content(content: Fields): void {
    const parts = asObject(content["modelTurn"])?.["parts"];
    for (const part of Array.isArray(parts) ? parts : []) this.part(asObject(part) ?? {});
    const said = asObject(content["outputTranscription"])?.["text"];
    if (typeof said === "string" && said !== "" && !this.isCancelled) this.begin().text(said);
    if (content["interrupted"] === true) {
      this.isInterrupted = true;
      this.tell({
        type: "input_audio_buffer.speech_started",
        audio_start_ms: 0,
        item_id: liveId("item"),
      });
    }
    if (content["turnComplete"] === true) this.end();
  }

  private part({ text, thought, inlineData }: Fields): void {
    if (this.isCancelled || thought === true) return;
    const data = asObject(inlineData)?.["data"];
    if (typeof data === "string") this.begin().sound(data);
    else if (typeof text === "string" && text !== "") this.begin().text(text);
  }

  private called(calls: readonly unknown[]): void {
    const response = this.begin();
    for (const sent of calls) {
      const { id, name, args } = asObject(sent) ?? {};
      const call = { id: String(id), name: String(name), args };
      this.callNames.set(call.id, call.name);
      this.callItems.set(call.id, response.call(call));
    }
    // The turn goes on with the outputs of the calls, which a next response answers.
    this.end();
  }

  private forget(callId: string): void {
    const itemId = this.callItems.get(callId);
    if (itemId !== undefined) this.tell({ type: "conversation.item.deleted", item_id: itemId });
  }

  /** Returns the response in progress; begins one where there is none. */
  private begin(): LiveResponse {
    this.response ??= new LiveResponse((event) => this.tell(event), {
      isSpoken: speaks(this.session),
    });
    return this.response;
  }

  private end(): void {
    const { response } = this;
    if (response === undefined) return;
    const usages = [
      ...this.lateUsages.splice(0),
      ...(this.usage === undefined ? [] : [this.usage]),
    ];
    const isCut = this.isInterrupted || this.isCancelled;
    const reason = this.isInterrupted ? "turn_detected" : "client_cancelled";
    response.end(isCut ? "cancelled" : "completed", {
      usage: liveUsage(usages),
      reason: isCut ? reason : undefined,
    });
    this.response = undefined;
    this.usage = undefined;
    this.isInterrupted = false;
    this.isCancelled = false;
  }

  private confirm(item: Record<string, unknown>): void {
    const shown = { object: "realtime.item", status: "completed", ...item };
    this.tell({ type: "conversation.item.added", previous_item_id: null, item: shown });
    this.tell({ type: "conversation.item.done", previous_item_id: null, item: shown });
  }

  private refuse({ param, message }: LiveLoss, eventId?: unknown): void {
    this.fail({ code: "unsupported", message, param, event_id: eventId ?? null });
  }

  private fail(error: Record<string, unknown>): void {
    this.tell({ type: "error", error: { type: "invalid_request_error", ...error } });
  }

  private tell(event: RealtimeEvent): void {
    const { type, ...members } = event;
    this.events?.received(JSON.stringify({ type, event_id: liveId("event"), ...members }));
  }
}

const soundFrame = (data: string): object => ({
  realtimeInput: { audio: { data, mimeType: "audio/pcm;rate=24000" } },
});
