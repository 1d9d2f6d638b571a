import { closeCodes, type SocketSession } from "../../../../http/sockets/client-socket.ts";
import { asObject } from "../../../../inference/dialects/shared/wire-fields.ts";
import {
  type RealtimeEvent,
  readSession,
  transcriptionModelOf,
  transcriptionParam,
  withModel,
  withTranscriptionModel,
} from "../../../../inference/surfaces/realtime/realtime-session.ts";
import type { RealtimeUpstream } from "../../../../inference/surfaces/realtime/realtime-upstream.ts";
import type { SoundWork } from "../../../../inference/surfaces/realtime/sound-call.ts";
import type { SoundMeter } from "../../../../inference/surfaces/realtime/sound-meter.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";
import { FrameGate } from "./frame-gate.ts";
import type { SessionClient } from "./realtime-connection.ts";
import { readRealtimeFrame, realtimeError } from "./realtime-events.ts";
import { soundMs } from "../../../../inference/surfaces/realtime/realtime-usage.ts";
import { relayedCode, revoked } from "./session-origin.ts";
import { noteTranscript, type Transcriber } from "./transcriber.ts";

/** Milliseconds for which a session may last, and in which transcripts may come after its end. */
const lifetimeMs = 3_600_000;
const reportMs = 5_000;

/** Bytes that may wait for either side before the session ends. */
const waitingBytesMax = 16 * 1024 * 1024;

/** The events that each kind of session takes from its client. */
const clientEvents: Readonly<Record<SoundWork, ReadonlySet<string>>> = {
  transcription: new Set([
    "session.update",
    "input_audio_buffer.append",
    "input_audio_buffer.commit",
    "input_audio_buffer.clear",
  ]),
  translation: new Set(["session.update", "session.input_audio_buffer.append", "session.close"]),
};

/** A session at a provider, and the money of its sound. */
export interface OpenedSound {
  upstream: RealtimeUpstream;
  meter: SoundMeter;
  /** The transcripts of a translation's source; undefined where the session itself transcribes. */
  transcriber: Transcriber | undefined;
}

/** The dependencies of a session of sound. */
interface SoundOptions {
  work: SoundWork;
  /** The model as the client named it; undefined until a session of transcripts names one. */
  model: string | undefined;
  id: string;
  /** Opens the session at a provider; `exhaust` is for its meters. Rejects with `GatewayError`. */
  open(model: string, exhaust: (error: GatewayError) => void): Promise<OpenedSound>;
  clock: { monotonicMs(): number };
  /** Returns whether the key is still valid. */
  isAllowed(): boolean;
}

/**
 * A session whose sound is transcribed or translated, without responses: relays the events of both
 * sides, and charges by the sound. A session of transcripts is opened at a provider when its
 * settings name a model.
 */
export class SoundConnection implements SocketSession {
  private readonly gate: FrameGate;
  private socket: SessionClient | undefined;
  private provided: OpenedSound | undefined;
  private model: string | undefined;
  private format: unknown;
  private startedMs = 0;
  private isGreeted = false;
  private isClosed = false;
  private isProviderGone = false;
  private earlySettings: RealtimeEvent | undefined;

  constructor(private readonly options: SoundOptions) {
    this.model = options.model;
    this.gate = new FrameGate(
      (frame) => this.admit(frame),
      () => this.socket?.close(closeCodes.tryLater, "Too much waits for the session's settings."),
    );
  }

  /** Opens the session at a provider before the handshake is answered. Rejects with `GatewayError`. */
  async begin(model: string): Promise<void> {
    this.model = model;
    this.provided = await this.options.open(model, (error) => this.exhaust(error));
    // The client has left meanwhile, so that its end found nothing to free.
    if (this.isClosed) await this.finish();
  }

  /** Begins the session with settings that its client secret holds. */
  configure(session: RealtimeEvent): void {
    this.earlySettings = { type: "session.update", session };
  }

  opened(socket: SessionClient): void {
    this.socket = socket;
    this.startedMs = this.options.clock.monotonicMs();
    if (this.provided === undefined) this.greet();
    else this.listen(this.provided);
    if (this.earlySettings !== undefined) this.gate.push(JSON.stringify(this.earlySettings));
  }

  received(frame: string | Uint8Array): void {
    if (typeof frame !== "string") return this.refuse("Frames have to be text with JSON.");
    this.gate.push(frame);
  }

  ending(): void {
    this.socket?.close(closeCodes.goingAway, "The gateway is about to end.");
  }

  passed(nowMs: number): void {
    if (nowMs - this.startedMs <= lifetimeMs) return;
    this.refuse("The session has lasted for 60 minutes, which is the limit. Connect again.");
    this.socket?.close(closeCodes.goingAway, "The session has reached its limit.");
  }

  closed(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    void this.finish();
  }

  private admit(frame: string): void {
    if (this.isClosed) return;
    const read = readRealtimeFrame(frame);
    if ("invalid" in read) return this.refuse(read.invalid);
    if ("soundBytes" in read) return this.sound(frame, read.soundBytes);
    const { event, type } = read;
    const facts = { eventId: event["event_id"] };
    if (!clientEvents[this.options.work].has(type))
      return this.refuse(`type: ${type} is no event of a session for ${this.options.work}.`, facts);
    if (type === "session.update") return this.update(event);
    if (!this.options.isAllowed()) return this.exhaust(revoked());
    if (type === "input_audio_buffer.commit") this.provided?.meter.commitAsked();
    this.forward(frame);
  }

  private sound(frame: string, bytes: number): void {
    if (!this.options.isAllowed()) return this.exhaust(revoked());
    const ms = soundMs(bytes, this.format);
    if (this.provided === undefined)
      return this.refuse(
        `${transcriptionParam}: name a model in session.update before sound is sent.`,
      );
    this.provided.meter.heard(ms);
    this.provided.transcriber?.heard(ms);
    this.forward(frame);
  }

  private update(event: RealtimeEvent): void {
    const { transcription, inputFormat } = readSession(event);
    this.format = inputFormat ?? this.format;
    const facts = { eventId: event["event_id"] };
    const type = asObject(event["session"])?.["type"];
    if (type !== undefined && type !== this.options.work)
      return this.refuse(`session.type: this session is of the type ${this.options.work}.`, {
        ...facts,
        param: "session.type",
      });
    if (this.options.work === "translation") return this.updateTranslation(event, transcription);
    const model = transcriptionModelOf(transcription);
    if (this.provided !== undefined) {
      if (model === undefined || model === this.model) return this.sendUpdate(event);
      return this.refuse(
        `${transcriptionParam}: a session cannot change its model; this one has ${this.model}.`,
        { ...facts, param: transcriptionParam },
      );
    }
    if (model === undefined)
      return this.refuse(`${transcriptionParam}: name the model that transcribes.`, {
        ...facts,
        param: transcriptionParam,
      });
    const opening = this.begin(model).then(
      () => {
        if (this.provided !== undefined) this.listen(this.provided);
        this.sendUpdate(event);
      },
      (error: unknown) => this.failed(error, event),
    );
    this.gate.hold(opening);
  }

  /** Reports why no provider opened the session; it goes on, unless nothing can be paid. */
  private failed(error: unknown, event: RealtimeEvent): void {
    this.model = undefined;
    if (!(error instanceof GatewayError)) return this.exhaust(internal());
    if (error.status === 402) return this.exhaust(error);
    const { code, message } = error;
    const facts = { type: error.code, eventId: event["event_id"] };
    this.socket?.send(realtimeError({ code, message, param: transcriptionParam }, facts));
  }

  private updateTranslation(event: RealtimeEvent, transcription: unknown): void {
    const { transcriber } = this.provided ?? {};
    const model = asObject(event["session"])?.["model"];
    if (model !== undefined && model !== this.model)
      return this.refuse("session.model: a session cannot change its model.", {
        param: "session.model",
        eventId: event["event_id"],
      });
    if (transcription === undefined || transcriber === undefined) return this.sendUpdate(event);
    const admitting = transcriber.update(event).then(({ event: kept, problem }) => {
      if (problem !== undefined) this.refuse(problem.message, { param: problem.param });
      this.sendUpdate(kept);
    });
    this.gate.hold(admitting.catch(() => this.exhaust(internal())));
  }

  /** Sends settings with the names that the provider knows. */
  private sendUpdate(event: RealtimeEvent): void {
    const upstreamModel = this.provided?.meter.candidate.route.upstreamModel ?? "";
    const named =
      this.options.work === "translation"
        ? withModel(event, upstreamModel)
        : withTranscriptionModel(event, upstreamModel);
    const session = asObject(named["session"]);
    const typed =
      this.options.work === "translation"
        ? named
        : { ...named, session: { ...session, type: "transcription" } };
    this.forward(JSON.stringify(typed));
  }

  private forward(text: string): void {
    const { upstream } = this.provided ?? {};
    if (this.isClosed || upstream === undefined) return;
    upstream.send(text);
    if (upstream.waitingBytes > waitingBytesMax)
      this.socket?.close(closeCodes.tryLater, "The provider does not read.");
  }

  private listen({ upstream }: OpenedSound): void {
    upstream.listen({
      received: (text) => this.fromProvider(text),
      closed: (code, reason) => {
        this.isProviderGone = true;
        this.socket?.close(relayedCode(code), reason || "The provider closed.");
      },
    });
  }

  private fromProvider(text: string): void {
    const read = readRealtimeFrame(text);
    if ("invalid" in read) return;
    if ("soundBytes" in read) return this.tell(text);
    const { event, type } = read;
    const { meter, transcriber } = this.provided ?? {};
    if (transcriber === undefined) noteTranscript(meter, type, event);
    // The client was greeted before its provider was known.
    if (type === "session.created" && this.isGreeted) return;
    this.tell(event["session"] === undefined ? text : JSON.stringify(this.shown(event)));
  }

  private shown(event: RealtimeEvent): RealtimeEvent {
    const { model, provided: opened } = this;
    if (model === undefined || opened === undefined) return event;
    if (this.options.work === "translation") {
      const named = withModel(event, model);
      return opened.transcriber?.shown(named) ?? named;
    }
    const named = transcriptionModelOf(readSession(event).transcription);
    const { upstreamModel } = opened.meter.candidate.route;
    return named === upstreamModel ? withTranscriptionModel(event, model) : event;
  }

  private tell(text: string): void {
    if (this.isClosed) return;
    this.socket?.send(text);
    if ((this.socket?.unreadBytes ?? 0) > waitingBytesMax)
      this.socket?.close(closeCodes.tryLater, "The client does not read.");
  }

  private greet(): void {
    this.isGreeted = true;
    const { id } = this.options;
    const audio = { input: { format: { type: "audio/pcm", rate: 24_000 }, transcription: null } };
    this.tell(
      JSON.stringify({
        type: "session.created",
        event_id: `event_${crypto.randomUUID().replaceAll("-", "")}`,
        session: { type: "transcription", object: "realtime.transcription_session", id, audio },
      }),
    );
  }

  /** Ends the session because nothing more may be spent. */
  private exhaust(error: GatewayError): void {
    if (this.isClosed) return;
    this.socket?.send(realtimeError(error, { type: error.code }));
    this.socket?.close(closeCodes.policy, error.code);
    this.closed();
  }

  private refuse(message: string, facts: { param?: string; eventId?: unknown } = {}): void {
    const { param, eventId } = facts;
    this.socket?.send(realtimeError({ code: "bad_request", message, param }, { eventId }));
  }

  /** Waits for transcripts of what was said, charges what is left, and leaves the provider. */
  private async finish(): Promise<void> {
    const { upstream, meter, transcriber } = this.provided ?? {};
    const { clock } = this.options;
    const untilMs = clock.monotonicMs() + reportMs;
    const isWaiting = (): boolean =>
      (meter?.waitingCount ?? 0) + (transcriber?.waitingCount ?? 0) > 0;
    while (isWaiting() && !this.isProviderGone && clock.monotonicMs() < untilMs)
      await Bun.sleep(20);
    await meter?.end();
    await transcriber?.end();
    upstream?.close();
  }
}

const internal = (): GatewayError =>
  new GatewayError("internal_server_error", "The session could not be continued.");
