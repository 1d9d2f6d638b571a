import {
  type ClientSocket,
  closeCodes,
  type SocketSession,
} from "../../../../http/sockets/client-socket.ts";
import type { LlmKeyCaller } from "../../../../identity/keys/caller.ts";
import { asObject } from "../../../../inference/dialects/shared/wire-fields.ts";
import type { InferenceDependencies } from "../../../../inference/pipeline/execution.ts";
import type { CallOrigin } from "../../../../inference/pipeline/inference-call.ts";
import type { Candidate } from "../../../../inference/routing/candidate.ts";
import {
  realtimeCall,
  type ResponseBound,
} from "../../../../inference/surfaces/realtime/realtime-call.ts";
import {
  type EndedTurn,
  exhausted,
  openAffordable,
  type RealtimeTurn,
} from "../../../../inference/surfaces/realtime/realtime-turn.ts";
import {
  capOfResponse,
  capUpdate,
  problemOf,
  type RealtimeEvent,
  readSession,
  withCap,
  withModel,
  withResponseCap,
} from "../../../../inference/surfaces/realtime/realtime-session.ts";
import type { RealtimeUpstream } from "../../../../inference/surfaces/realtime/realtime-upstream.ts";
import {
  deliveredUsage,
  inputSoundTokens,
  realtimeUsage,
  type ResponseSound,
  soundMs,
  soundTokensAt,
  soundUsage,
} from "../../../../inference/surfaces/realtime/realtime-usage.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";
import { FrameGate } from "./frame-gate.ts";
import { readRealtimeFrame, realtimeError } from "./realtime-events.ts";
import { SessionCap } from "./session-cap.ts";
import { nextOriginOf, relayedCode, revoked } from "./session-origin.ts";
import { Transcriber } from "./transcriber.ts";

/** Milliseconds for which a session may last (OpenAI). */
const lifetimeMs = 3_600_000;

/** Tokens that are held beyond what was sent, so that a hold need not grow with every frame. */
const stepTokens = 256;

/** Milliseconds in which a response that was cancelled may still report its usage. */
const reportMs = 5_000;

/** Bytes that may wait for the provider before the session ends. */
const waitingBytesMax = 16 * 1024 * 1024;

/** Characters of a token, for text that no provider has counted yet. */
const charactersPerToken = 3;

/** The dependencies of a session. */
export interface RealtimeOptions {
  deps: InferenceDependencies;
  upstream: RealtimeUpstream;
  /** Where the handshake came from; each response has ids of its own. */
  origin: CallOrigin;
  /** The model as the client named it. */
  model: string;
  candidate: Candidate;
  turn: RealtimeTurn;
  /** The output cap that the first response was held for; undefined where it is the model's. */
  cap: number | undefined;
  /** Returns the caller as it is now; undefined once its key is not valid. */
  liveCaller(): LlmKeyCaller | undefined;
}

/** The client's side of a session. */
export type SessionClient = Pick<ClientSocket, "send" | "close" | "unreadBytes">;

/** A response in progress. */
interface Active extends ResponseSound {
  /** Its hold; undefined while that is being taken. */
  turn: RealtimeTurn | undefined;
  id: string | null;
  firstContentMs: number | null;
}

/**
 * A realtime session: relays the events of client and provider, and holds, charges and records each
 * response. Its socket is closed with 1008 when the next response cannot be held.
 */
export class RealtimeConnection implements SocketSession {
  private readonly gate: FrameGate;
  private readonly transcriber: Transcriber;
  private socket: SessionClient | undefined;
  /** The hold of the next response; undefined while it is being taken. */
  private next: RealtimeTurn | undefined;
  private taking: Promise<void> | undefined;
  private readonly active = new Map<string | null, Active>();
  private settling: Promise<unknown> = Promise.resolve();
  /** Tokens of the conversation as the provider counted them, and those that were sent since. */
  private countedTokens = 0;
  private sentTokens = 0;
  private unchargedInputMs = 0;
  private readonly outputCap = new SessionCap();
  /** The cap that the provider is given because the caller can pay for no more. */
  private cap: number | undefined;
  private readonly unheld: Active[] = [];
  private inputFormat: unknown;
  private outputFormat: unknown;
  private startedMs = 0;
  private isEnding = false;
  private isClosed = false;
  private isProviderGone = false;

  constructor(private readonly options: RealtimeOptions) {
    this.next = options.turn;
    this.cap = options.cap;
    const { id: providerId, name: providerName } = options.candidate.route.provider;
    this.transcriber = new Transcriber({
      ...{ deps: options.deps, byTime: false, providerId, providerName },
      nextOrigin: (isOwed) =>
        nextOriginOf(options.origin, { ...options, clock: options.deps.clock, isOwed }),
      exhaust: (error) => this.exhaust(error),
    });
    this.gate = new FrameGate(
      (frame) => this.admit(frame),
      () => this.socket?.close(closeCodes.tryLater, "Too much waits for the session's settings."),
    );
  }

  /** Begins the session with settings that its client secret holds. */
  configure(session: RealtimeEvent): void {
    this.updateSession({ type: "session.update", session });
  }

  opened(socket: SessionClient): void {
    this.socket = socket;
    this.startedMs = this.options.deps.clock.monotonicMs();
    this.sendCap();
    this.options.upstream.listen({
      received: (text) => this.fromProvider(text),
      closed: (code, reason) => this.providerClosed(code, reason),
    });
  }

  received(frame: string | Uint8Array): void {
    if (typeof frame !== "string") return this.refuse("Frames have to be text with JSON.");
    this.gate.push(frame);
  }

  private admit(frame: string): void {
    const read = readRealtimeFrame(frame);
    if ("invalid" in read) return this.refuse(read.invalid);
    if ("soundBytes" in read) {
      const ms = soundMs(read.soundBytes, this.inputFormat);
      this.unchargedInputMs += ms;
      this.transcriber.heard(ms);
      this.count(inputSoundTokens(ms, soundTokensAt(this.options.candidate.route)));
      return this.forward(frame);
    }
    this.clientEvent(read.event, { type: read.type, text: frame });
  }

  ending(): void {
    this.isEnding = true;
    if (this.active.size === 0)
      this.socket?.close(closeCodes.goingAway, "The gateway is about to end.");
  }

  passed(nowMs: number): void {
    if (nowMs - this.startedMs <= lifetimeMs) return;
    const message = "The session has lasted for 60 minutes, which is the limit. Connect again.";
    this.socket?.send(realtimeError({ code: "bad_request", message, param: undefined }));
    this.socket?.close(closeCodes.goingAway, "The session has reached its limit.");
  }

  closed(): void {
    this.isClosed = true;
    void this.finish();
  }

  private clientEvent(event: RealtimeEvent, { type, text }: { type: string; text: string }): void {
    switch (type) {
      case "session.update":
        return this.updateSession(event);
      case "response.create":
        return this.createResponse(event, text);
      case "input_audio_buffer.commit":
        if (!this.isStillAllowed()) return;
        this.transcriber.commitAsked();
        return this.forward(text);
      case "conversation.item.create":
        this.count(Math.ceil(text.length / charactersPerToken));
        return this.forward(text);
      case "transcription_session.update":
        return this.refuse("type: send session.update in a session with responses.");
      default:
        return this.forward(text);
    }
  }

  private updateSession(event: RealtimeEvent): void {
    const session = readSession(event);
    const problem = problemOf(session, this.options.model);
    if (problem !== undefined)
      return this.refuse(problem.message, { param: problem.param, eventId: event["event_id"] });
    if (session.transcription === undefined) return this.sendUpdate(event);
    const admitting = this.transcriber.update(event).then(({ event: kept, problem: lost }) => {
      if (lost !== undefined)
        this.refuse(lost.message, { param: lost.param, eventId: event["event_id"] });
      this.sendUpdate(kept);
    });
    this.gate.hold(admitting.catch(() => this.exhaust()));
  }

  private sendUpdate(event: RealtimeEvent): void {
    const session = readSession(event);
    const isRaised = this.outputCap.asked(session.cap);
    this.inputFormat = session.inputFormat ?? this.inputFormat;
    this.outputFormat = session.outputFormat ?? this.outputFormat;
    const text = JSON.stringify(
      withCap(withModel(event, this.options.candidate.route.upstreamModel), this.cap),
    );
    this.count(Math.ceil(text.length / charactersPerToken), isRaised);
    this.forward(text);
  }

  /** Passes a request for a response on, once its worst case is held. */
  private createResponse(event: RealtimeEvent, text: string): void {
    if (!this.isStillAllowed()) return;
    if (this.isEnding) return this.refuse("The gateway is about to end. Connect again.");
    const most = capOfResponse(event);
    this.count(Math.ceil(text.length / charactersPerToken), this.outputCap.asked(most));
    const send = (): void =>
      this.forward(
        this.cap !== undefined && most !== undefined
          ? JSON.stringify(withResponseCap(event, this.cap))
          : text,
      );
    if (this.taking === undefined && this.next !== undefined) return send();
    // The hold of a response is taken when the one before it has ended.
    void this.settling.then(() => this.taking).then(send);
  }

  /** Limits the responses of the session to what the caller can pay for. */
  private sendCap(): void {
    if (this.cap === undefined) return;
    this.forward(capUpdate(this.cap));
  }

  /**
   * Counts tokens that a next response will read, and holds more for them in steps; at once where its
   * answer may be longer than before (`isRaised`).
   */
  private count(tokens: number, isRaised = false): void {
    this.sentTokens += tokens;
    const { next } = this;
    if (next === undefined) return;
    const { model } = this.options;
    const bound = this.bound();
    const callOf = (origin: CallOrigin) => realtimeCall(origin, { model, bound });
    const isDearer = isRaised && this.cap === undefined;
    void next.cover(bound.inputTokens, callOf, { isDearer }).then(
      (isCovered) => void (isCovered || this.exhaust()),
      () => this.exhaust(),
    );
  }

  private bound(): ResponseBound {
    const tokens = this.countedTokens + this.sentTokens;
    return {
      inputTokens: (Math.floor(tokens / stepTokens) + 2) * stepTokens,
      maxOutputTokens: this.cap ?? this.outputCap.tokens,
    };
  }

  private forward(text: string): void {
    const { upstream } = this.options;
    if (this.isClosed) return;
    upstream.send(text);
    if (upstream.waitingBytes > waitingBytesMax)
      this.socket?.close(closeCodes.tryLater, "The provider does not read.");
  }

  private fromProvider(text: string): void {
    const read = readRealtimeFrame(text);
    if ("invalid" in read) return;
    if ("soundBytes" in read) {
      const [active] = this.active.values();
      if (active !== undefined) {
        active.firstContentMs ??= this.options.deps.clock.monotonicMs();
        active.outputMs += soundMs(read.soundBytes, this.outputFormat);
      }
      return this.tell(text);
    }
    const { event, type } = read;
    const response = asObject(event["response"]);
    if (type === "response.created") this.begin(String(response?.["id"] ?? ""));
    if (type === "response.done" && response !== undefined) {
      this.settling = this.settling.then(() => this.done(response));
      this.settling = this.settling.then(() => {
        this.tell(text);
        this.goOn();
      });
      return;
    }
    if (type === "session.updated") this.count(0, this.outputCap.confirmed(readSession(event).cap));
    this.transcriber.notice(type, event);
    this.tell(
      event["session"] === undefined
        ? text
        : JSON.stringify(this.transcriber.shown(withModel(event, this.options.model))),
    );
  }

  private tell(text: string): void {
    if (this.isClosed) return;
    this.socket?.send(text);
    if ((this.socket?.unreadBytes ?? 0) > waitingBytesMax)
      this.socket?.close(closeCodes.tryLater, "The client does not read.");
  }

  /** Notes that the provider has begun a response, which uses the hold that was taken for it. */
  private begin(id: string): void {
    const inputMs = this.unchargedInputMs;
    this.unchargedInputMs = 0;
    const active: Active = { turn: this.next, id, firstContentMs: null, outputMs: 0, inputMs };
    this.active.set(id, active);
    this.next = undefined;
    if (active.turn !== undefined) return;
    // One that the provider began by itself right after another, or beside it.
    this.unheld.push(active);
    this.take();
  }

  /** Takes the hold of a response that has begun without one, or else of the next. */
  private take(): void {
    if (this.isClosed || this.taking !== undefined) return;
    const { deps, origin, model, candidate } = this.options;
    if (this.options.liveCaller() === undefined) return this.exhaust(revoked());
    const next: CallOrigin = {
      ...nextOriginOf(origin, { ...this.options, clock: deps.clock }),
      forcedProviders: [candidate.route.provider.id],
    };
    const before = this.outputCap.tokens;
    this.taking = openAffordable(deps, { origin: next, model, bound: this.bound() }).then(
      ({ turn, cap }) => {
        this.taking = undefined;
        const isServed = turn.serveByProvider(candidate.route.provider.id) !== undefined;
        if (!isServed || this.isClosed) {
          turn.free();
          return isServed ? undefined : this.exhaust();
        }
        if (cap !== undefined && cap !== this.cap) {
          this.cap = cap;
          this.sendCap();
        }
        const waiting = this.unheld.shift();
        if (waiting === undefined) this.next = turn;
        else waiting.turn = turn;
        // What was sent or raised while it was being taken is covered now.
        this.count(0, this.outputCap.isAbove(before));
        if (this.unheld.length > 0) this.take();
      },
      (error: unknown) => {
        this.taking = undefined;
        this.exhaust(error instanceof GatewayError ? error : exhausted());
      },
    );
  }

  /** Charges a response that has ended, as its provider reports. */
  private async done(response: Record<string, unknown>): Promise<void> {
    const id = String(response["id"] ?? "");
    const active = this.active.get(id);
    if (active === undefined) return;
    if (active.turn === undefined) await this.taking;
    this.active.delete(id);
    const reported = asObject(response["usage"]);
    const usage = reported && {
      ...realtimeUsage(reported),
      ...soundUsage(active, this.options.candidate),
    };
    const status = response["status"];
    await this.charge(active, {
      usage: usage ?? this.unreported(active, "cut").usage,
      estimated: usage === undefined,
      status: status === "cancelled" ? "cancelled" : status === "completed" ? "completed" : "cut",
      finishReason: typeof status === "string" ? status : null,
      upstreamId: id,
      firstContentMs: active.firstContentMs,
    });
    if (reported !== undefined) {
      const total = reported["total_tokens"];
      if (typeof total === "number" && total > this.countedTokens) {
        this.countedTokens = total;
        this.sentTokens = 0;
        this.count(0);
      }
    }
  }

  /** Holds the next response once nothing is in progress, or ends the session. */
  private goOn(): void {
    if (this.active.size > 0 || this.isClosed) return;
    if (this.isEnding) this.socket?.close(closeCodes.goingAway, "The gateway is about to end.");
    else if (this.next === undefined) this.take();
  }

  private async charge(active: Active, ended: EndedTurn): Promise<void> {
    try {
      await active.turn?.settle(ended);
    } catch {
      // The settlement reports its failure itself; the session cannot go on without charges.
      this.exhaust();
    }
  }

  /** Returns the end of a response that its provider did not report, by what was delivered. */
  private unreported(active: Active, status: "cut" | "cancelled"): EndedTurn {
    return {
      usage: deliveredUsage(active, { ...this.options, inputTokens: this.countedTokens }),
      estimated: true,
      status,
      finishReason: null,
      upstreamId: active.id,
      firstContentMs: active.firstContentMs,
    };
  }

  /** Returns whether the key is still valid; closes the session where it is not. */
  private isStillAllowed(): boolean {
    if (this.options.liveCaller() !== undefined) return true;
    this.exhaust(revoked());
    return false;
  }

  /** Ends the session because nothing more may be spent. */
  private exhaust(error: GatewayError = exhausted()): void {
    if (this.isClosed) return;
    for (const { id } of this.active.values())
      this.options.upstream.send(JSON.stringify({ type: "response.cancel", response_id: id }));
    this.socket?.send(realtimeError(error, { type: error.code }));
    this.socket?.close(closeCodes.policy, error.code);
    this.closed();
  }

  private refuse(message: string, facts: { param?: string; eventId?: unknown } = {}): void {
    const { param, eventId } = facts;
    this.socket?.send(realtimeError({ code: "bad_request", message, param }, { eventId }));
  }

  private providerClosed(code: number, reason: string): void {
    this.isProviderGone = true;
    // Responses whose reports have come are charged by them first.
    this.settling = this.settling.then(async () => {
      await this.taking;
      for (const active of this.active.values())
        await this.charge(active, this.unreported(active, "cut"));
      this.active.clear();
    });
    if (this.isClosed) return;
    this.socket?.close(relayedCode(code), reason || "The provider closed.");
  }

  /** Cancels what runs, waits for the reports of its usage, and frees what is held. */
  private async finish(): Promise<void> {
    if (this.isFinished) return;
    this.isFinished = true;
    const { upstream } = this.options;
    for (const { id } of this.active.values())
      upstream.send(JSON.stringify({ type: "response.cancel", response_id: id }));
    const { clock } = this.options.deps;
    const untilMs = clock.monotonicMs() + reportMs;
    const isWaiting = (): boolean => this.active.size + this.transcriber.waitingCount > 0;
    while (isWaiting() && !this.isProviderGone && clock.monotonicMs() < untilMs)
      await Bun.sleep(20);
    await this.transcriber.end();
    await this.settling;
    await this.taking;
    for (const active of this.active.values())
      await this.charge(active, this.unreported(active, "cancelled"));
    this.active.clear();
    this.next?.free();
    this.next = undefined;
    upstream.close();
  }

  private isFinished = false;
}
