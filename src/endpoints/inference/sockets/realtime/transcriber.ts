import { asObject } from "../../../../inference/dialects/shared/wire-fields.ts";
import {
  type RealtimeEvent,
  readSession,
  transcriptionModelOf,
  transcriptionParam,
  withTranscription,
  withTranscriptionModel,
} from "../../../../inference/surfaces/realtime/realtime-session.ts";
import {
  planSound,
  SoundMeter,
  type SoundMeterOptions,
} from "../../../../inference/surfaces/realtime/sound-meter.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";

/** The dependencies of the transcripts of a session. */
interface TranscriberOptions
  extends Pick<SoundMeterOptions, "deps" | "byTime" | "nextOrigin" | "exhaust"> {
  /** The provider of the session, which makes its transcripts, too. */
  providerId: string;
  providerName: string;
}

/** An update as the provider is sent it, and what is wrong with it. */
interface AdmittedUpdate {
  event: RealtimeEvent;
  problem?: { message: string; param: string };
}

/**
 * The transcripts of what is said in a session, which are made and charged on a model of their own.
 */
export class Transcriber {
  private meter: SoundMeter | undefined;
  private model: string | undefined;
  private upstreamModel: string | undefined;
  private readonly ended: Promise<void>[] = [];
  private isOver = false;

  constructor(private readonly options: TranscriberOptions) {}

  /**
   * Admits a `session.update` with a setting for transcripts: checks its model as that of a request,
   * and holds the first seconds. Where it is refused, the setting is taken out.
   */
  async update(event: RealtimeEvent): Promise<AdmittedUpdate> {
    const { transcription } = readSession(event);
    if (transcription === null) {
      this.turnOff();
      return { event: withTranscription(event, null) };
    }
    const model = transcriptionModelOf(transcription) ?? this.model;
    if (model === undefined)
      return refused(event, `${transcriptionParam}: name a model with the surface transcriptions.`);
    try {
      if (model !== this.model || this.meter === undefined) await this.turnOn(model);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      return refused(event, `${transcriptionParam}: ${error.message}`);
    }
    return {
      event: withTranscriptionModel(
        withTranscription(event, transcription),
        this.upstreamModel ?? model,
      ),
    };
  }

  /** Returns a provider's event with the model as its client knows it. */
  shown(event: RealtimeEvent): RealtimeEvent {
    const { model, upstreamModel } = this;
    if (model === undefined) return event;
    const named = transcriptionModelOf(readSession(event).transcription);
    return named === upstreamModel ? withTranscriptionModel(event, model) : event;
  }

  /** Counts sound that was sent. */
  heard(ms: number): void {
    this.meter?.heard(ms);
  }

  /** Notes that the client asks for an item of what was sent. */
  commitAsked(): void {
    this.meter?.commitAsked();
  }

  /** Notes an event of the provider that begins, ends or charges a transcript. */
  notice(type: string, event: RealtimeEvent): void {
    noteTranscript(this.meter, type, event);
  }

  /** The number of transcripts that have not come. */
  get waitingCount(): number {
    return this.meter?.waitingCount ?? 0;
  }

  /** Charges what is left. Resolves when the charges are durable. */
  async end(): Promise<void> {
    this.isOver = true;
    this.turnOff();
    await Promise.all(this.ended);
  }

  private turnOff(): void {
    if (this.meter !== undefined) this.ended.push(this.meter.end());
    this.meter = undefined;
    this.model = undefined;
  }

  private async turnOn(model: string): Promise<void> {
    const { providerId, providerName, ...options } = this.options;
    const metering: SoundMeterOptions = { ...options, model, work: "transcription" };
    const turn = await planSound(metering);
    const candidate = turn.serveByProvider(providerId);
    if (candidate === undefined) {
      turn.free();
      const message = `the model ${model} is not served by ${providerName}, which serves this session.`;
      throw new GatewayError("no_upstream", message);
    }
    // The client has left meanwhile, and nothing would free the hold.
    if (this.isOver) return turn.free();
    this.turnOff();
    this.meter = new SoundMeter(metering, { turn, candidate });
    this.model = model;
    this.upstreamModel = candidate.route.upstreamModel;
  }
}

const refused = (event: RealtimeEvent, message: string): AdmittedUpdate => ({
  event: withTranscription(event, undefined),
  problem: {
    param: transcriptionParam,
    message: `${message} The rest of the update is in force.`,
  },
});

/** Passes what an event says of transcripts to the meter of their model. */
export function noteTranscript(
  meter: SoundMeter | undefined,
  type: string,
  event: RealtimeEvent,
): void {
  if (meter === undefined) return;
  const itemId = String(event["item_id"]);
  if (type === "input_audio_buffer.committed") meter.committed(itemId);
  else if (type === "error" && isCommitRefusal(event)) meter.commitRefused();
  else if (type === "input_audio_buffer.cleared") meter.cleared();
  else if (type === "conversation.item.input_audio_transcription.delta") meter.begun(itemId);
  else if (type === "conversation.item.input_audio_transcription.failed")
    meter.transcribed(itemId, undefined);
  else if (type === "conversation.item.input_audio_transcription.completed")
    meter.transcribed(itemId, { text: String(event["transcript"] ?? ""), usage: event["usage"] });
}

const isCommitRefusal = ({ error }: RealtimeEvent): boolean =>
  /^input_audio_buffer_commit/.test(String(asObject(error)?.["code"]));
