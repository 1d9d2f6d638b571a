import type { RealtimeEvent } from "../realtime-session.ts";

/** A call of a function, as Gemini Live sends it. */
interface LiveCall {
  id?: string;
  name?: string;
  args?: unknown;
}

/** Returns an id of an event, item or response. */
export const liveId = (prefix: string): string =>
  `${prefix}_${crypto.randomUUID().replaceAll("-", "")}`;

/**
 * Writes a response of Gemini Live as the events of OpenAI's Realtime API: one message in sound or in
 * text, and the calls behind it.
 */
export class LiveResponse {
  readonly id = liveId("resp");
  private readonly isSpoken: boolean;
  private readonly output: Record<string, unknown>[] = [];
  private item: { id: string; text: string } | undefined;

  constructor(
    private readonly send: (event: RealtimeEvent) => void,
    { isSpoken }: { isSpoken: boolean },
  ) {
    this.isSpoken = isSpoken;
    this.send({ type: "response.created", response: this.shown("in_progress") });
  }

  /** Sends sound in base64. */
  sound(delta: string): void {
    // The type comes first, so that a frame of sound is known without parsing it.
    this.send({ type: "response.output_audio.delta", ...this.place(), delta });
  }

  /** Sends text: the answer itself, or the transcript of its sound. */
  text(delta: string): void {
    const place = this.place();
    if (this.item !== undefined) this.item.text += delta;
    const name = this.isSpoken ? "output_audio_transcript" : "output_text";
    this.send({ type: `response.${name}.delta`, ...place, delta });
  }

  /** Sends a whole call of a function; returns the id of its item. */
  call({ id, name, args }: LiveCall): string {
    this.endItem();
    const itemId = liveId("item");
    const callId = id ?? liveId("call");
    const text = JSON.stringify(args ?? {});
    const item = {
      id: itemId,
      object: "realtime.item",
      type: "function_call",
      call_id: callId,
      name,
    };
    const place = { response_id: this.id, item_id: itemId, output_index: this.output.length };
    const begun = { ...item, status: "in_progress", arguments: "" };
    const done = { ...item, status: "completed", arguments: text };
    this.announce(begun);
    this.send({
      type: "response.function_call_arguments.delta",
      ...place,
      call_id: callId,
      delta: text,
    });
    const facts = { call_id: callId, name, arguments: text };
    this.send({ type: "response.function_call_arguments.done", ...place, ...facts });
    this.conclude(done);
    return itemId;
  }

  /** Ends the response. */
  end(status: string, facts: { usage: unknown; reason?: string | undefined }): void {
    this.endItem();
    const { usage, reason } = facts;
    const details = reason === undefined ? null : { type: status, reason };
    this.send({
      type: "response.done",
      response: { ...this.shown(status), status_details: details, usage: usage ?? null },
    });
  }

  private shown(status: string): Record<string, unknown> {
    const modalities = [this.isSpoken ? "audio" : "text"];
    return {
      object: "realtime.response",
      id: this.id,
      status,
      output: [...this.output],
      output_modalities: modalities,
    };
  }

  /** Returns where content of the message belongs, and begins it where there is none. */
  private place(): Record<string, unknown> {
    if (this.item === undefined) {
      this.item = { id: liveId("item"), text: "" };
      this.announce(this.message("in_progress", []));
      this.send({
        type: "response.content_part.added",
        ...this.at(this.item.id),
        part: this.part(""),
      });
    }
    return this.at(this.item.id);
  }

  private at(itemId: string): Record<string, unknown> {
    return {
      response_id: this.id,
      item_id: itemId,
      output_index: this.output.length,
      content_index: 0,
    };
  }

  private part(text: string): Record<string, unknown> {
    return this.isSpoken ? { type: "audio", transcript: text } : { type: "text", text };
  }

  private message(status: string, content: readonly unknown[]): Record<string, unknown> {
    const { id } = this.item ?? {};
    return { id, object: "realtime.item", type: "message", role: "assistant", status, content };
  }

  private endItem(): void {
    if (this.item === undefined) return;
    const { id, text } = this.item;
    const place = this.at(id);
    if (this.isSpoken) {
      this.send({ type: "response.output_audio.done", ...place });
      this.send({ type: "response.output_audio_transcript.done", ...place, transcript: text });
    } else this.send({ type: "response.output_text.done", ...place, text });
    this.send({ type: "response.content_part.done", ...place, part: this.part(text) });
    const part = { ...this.part(text), type: this.isSpoken ? "output_audio" : "output_text" };
    this.conclude(this.message("completed", [part]));
    this.item = undefined;
  }

  private announce(item: Record<string, unknown>): void {
    const place = { response_id: this.id, output_index: this.output.length };
    this.send({ type: "response.output_item.added", ...place, item });
    this.send({ type: "conversation.item.added", previous_item_id: null, item });
  }

  private conclude(item: Record<string, unknown>): void {
    const place = { response_id: this.id, output_index: this.output.length };
    this.send({ type: "response.output_item.done", ...place, item });
    this.send({ type: "conversation.item.done", previous_item_id: null, item });
    this.output.push(item);
  }
}
