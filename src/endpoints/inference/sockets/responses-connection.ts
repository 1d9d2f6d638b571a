import type { RequestSource } from "../../../http/request-context.ts";
import type { Answer } from "../../../http/reply.ts";
import type { ServedRequest } from "../../../http/served-request.ts";
import { Reply } from "../../../http/reply.ts";
import {
  type ClientSocket,
  closeCodes,
  type SocketSession,
} from "../../../http/sockets/client-socket.ts";
import type { Caller } from "../../../identity/keys/caller.ts";
import { openaiResponses } from "../../../inference/dialects/openai-responses/index.ts";
import { requiredInput } from "../../../inference/dialects/openai-responses/items/steer-input.ts";
import { ProviderSockets } from "../../../inference/pipeline/provider-sockets/provider-sockets.ts";
import type { Clock } from "../../../platform/kernel/clock.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { FrameSource } from "../../../platform/kernel/frame-source.ts";
import { attachFrame, type ResponseFrame } from "./response-frame.ts";
import { ResponseMemory } from "./response-memory.ts";
import { type CreateFrame, continued, readFrame, withStreamId } from "./client-frames.ts";
import { readSteer, shownSteer, type Steer } from "./steering.ts";

/** Milliseconds for which a socket may be open (OpenAI). */
const lifetimeMs = 3_600_000;

/** The most frames that wait for their lane, over all lanes of a socket. */
const waitingMax = 128;

/** The most characters of frames that wait. */
const waitingCharactersMax = 64 * 1024 * 1024;

/** Frames in a row that were no valid request, after which a socket is closed. */
const faultsMax = 100;

/** The dependencies of a connection. */
interface ConnectionOptions {
  createRequest: ReturnType<ServedRequest["framing"]>;
  serve: RequestSource<Caller>["serve"];
  clock: Pick<Clock, "monotonicMs" | "nowMs">;
  /** The most responses in progress at once. */
  lanesMax: number;
}

/** A response in progress. */
interface Running {
  frame: CreateFrame;
  facts: ResponseFrame;
  abort: AbortController;
  source: FrameSource | undefined;
  /** The response's id, once it was sent. */
  responseId: string | undefined;
  /** The text of the last event, which holds its number. */
  lastEvent: string;
  steers: Steer[];
  /** The input that a successor is created for: its failure is reported for each. */
  successorOf: readonly Steer[];
}

/** The frames with one `stream_id`, which are answered in order. */
interface Lane {
  id: string | undefined;
  waiting: { frame: CreateFrame; successorOf: readonly Steer[] }[];
  running: Running | undefined;
}

/** Why a connection ends. */
interface Ending {
  error: GatewayError;
  /** Whether the client is sent the error before the socket is closed. */
  isSent: boolean;
}

const leaving = (): Ending => ({
  isSent: false,
  error: new GatewayError("service_unavailable", "The gateway is about to end. Connect again."),
});

const tooOld = (): Ending => ({
  isSent: true,
  error: new GatewayError(
    "websocket_connection_limit_reached",
    "The socket has been open for 60 minutes, which is the limit. Connect again.",
  ),
});

/**
 * A client's socket for responses: runs each frame as a request of its own, lane by lane, and sends
 * the events of its stream.
 */
export class ResponsesConnection implements SocketSession {
  private readonly lanes = new Map<string, Lane>();
  private readonly memory = new ResponseMemory();
  private readonly providerSockets = new ProviderSockets();
  /** Inputs that wait until a client has answered the calls of a response, by its id. */
  private readonly waitingSteers = new Map<string, Steer[]>();
  private socket!: ClientSocket;
  private openedMs = 0;
  private runningCount = 0;
  private waitingCount = 0;
  private waitingCharacters = 0;
  private faults = 0;
  private ends: Ending | undefined;

  constructor(private readonly options: ConnectionOptions) {}

  opened(socket: ClientSocket): void {
    this.socket = socket;
    this.openedMs = this.options.clock.monotonicMs();
  }

  received(sent: string | Uint8Array): void {
    const frame = readFrame(sent);
    if ("error" in frame) return this.refuse(frame.error, frame.streamId);
    if (frame.type === "ignored") return;
    if (frame.type === "steer") return this.steer(frame);
    if (this.ends !== undefined) return this.refuse(this.ends.error, frame.streamId);
    if (
      this.waitingCount >= waitingMax ||
      this.waitingCharacters + frame.text.length > waitingCharactersMax
    ) {
      const message = `${waitingMax} frames wait already. Wait until some are answered.`;
      return this.refuse(new GatewayError("rate_limit_exceeded", message), frame.streamId);
    }
    this.faults = 0;
    this.enqueue(this.laneOf(frame.streamId), { frame: this.withSteers(frame), successorOf: [] });
  }

  ending(): void {
    this.end(leaving());
  }

  passed(nowMs: number): void {
    if (nowMs - this.openedMs > lifetimeMs) this.end(tooOld());
  }

  closed(): void {
    for (const { running, waiting } of this.lanes.values()) {
      waiting.length = 0;
      running?.abort.abort();
      running?.source?.cancel();
    }
    this.lanes.clear();
    this.waitingSteers.clear();
    this.memory.clear();
    this.providerSockets.retire();
  }

  /** Finishes what runs, refuses what waits, and closes. */
  private end(ending: Ending): void {
    if (this.ends !== undefined) return;
    this.ends = ending;
    for (const lane of this.lanes.values())
      for (const { frame } of lane.waiting.splice(0)) this.refuse(ending.error, frame.streamId);
    this.closeWhenIdle();
  }

  private closeWhenIdle(): void {
    if (this.ends === undefined || this.runningCount > 0) return;
    const { error, isSent } = this.ends;
    if (isSent) this.socket.send(errorFrame(error));
    this.socket.close(closeCodes.goingAway, error.message);
  }

  private laneOf(id: string | undefined): Lane {
    const key = id ?? "";
    const lane = this.lanes.get(key) ?? { id, waiting: [], running: undefined };
    this.lanes.set(key, lane);
    return lane;
  }

  private enqueue(lane: Lane, entry: Lane["waiting"][number], { first = false } = {}): void {
    if (first) lane.waiting.unshift(entry);
    else lane.waiting.push(entry);
    this.waitingCount += 1;
    this.waitingCharacters += entry.frame.text.length;
    this.startLanes();
  }

  /** Starts what waits, in lanes where nothing runs, as far as the bound allows. */
  private startLanes(): void {
    for (const [key, lane] of this.lanes) {
      if (this.runningCount >= this.options.lanesMax) return;
      if (lane.running !== undefined) continue;
      const next = lane.waiting.shift();
      if (next === undefined) this.lanes.delete(key);
      else void this.run(lane, next);
    }
  }

  private async run(lane: Lane, { frame, successorOf }: Lane["waiting"][number]): Promise<void> {
    this.waitingCount -= 1;
    this.waitingCharacters -= frame.text.length;
    this.runningCount += 1;
    const running: Running = {
      frame,
      facts: { memory: this.memory, sockets: this.providerSockets, generates: frame.generates },
      abort: new AbortController(),
      source: undefined,
      responseId: undefined,
      lastEvent: "",
      steers: [],
      successorOf,
    };
    lane.running = running;
    const request = this.options.createRequest("/v1/responses", {
      text: frame.text,
      signal: running.abort.signal,
    });
    attachFrame(request, running.facts);
    try {
      await this.relay(running, await this.options.serve("POST /responses", request));
    } finally {
      request.memory.release();
      lane.running = undefined;
      this.runningCount -= 1;
    }
    this.continueWith(lane, running);
    this.startLanes();
    this.closeWhenIdle();
  }

  /** Sends an answer: the events of a stream, or the error of any other. */
  private async relay(running: Running, answer: Answer): Promise<void> {
    const body = answer instanceof Reply ? answer.body : await answer.text();
    if (typeof body === "string") return this.sendRefusal(running, { answer, body });
    running.source = body;
    if (!this.socket.isOpen) return body.cancel();
    for (let frames = await body.next(); frames !== undefined; frames = await body.next()) {
      this.sendEvents(running, frames);
      const room = this.socket.untilRoom();
      if (room !== undefined) await room;
    }
  }

  private sendRefusal(
    { frame, successorOf }: Running,
    { answer: { status, headers }, body }: { answer: Answer; body: string },
  ): void {
    if (frame.previousId !== undefined) this.memory.forget(frame.previousId);
    const retryAfter = new Headers(headers).get("retry-after");
    const { error } = JSON.parse(body) as { error: Record<string, unknown> };
    const event = {
      type: "error",
      status,
      error,
      ...(retryAfter !== null && { headers: { "retry-after": retryAfter } }),
    };
    for (const steer of successorOf)
      this.failSteer(steer, {
        code: "successor_creation_failed",
        message: String(error["message"]),
        streamId: frame.streamId,
      });
    this.socket.send(withStreamId(JSON.stringify(event), frame.streamId));
  }

  /** Sends the data of each event in a frame of its own; comments are for connections over HTTP. */
  private sendEvents(running: Running, frames: string): void {
    const { frame } = running;
    for (const event of frames.split("\n\n")) {
      const dataStart = event.indexOf("data: ");
      if (dataStart < 0) continue;
      const data = event.slice(dataStart + 6);
      running.lastEvent = data;
      running.responseId ??= createdId(data);
      if (frame.previousId !== undefined && event.startsWith("event: response.failed\n"))
        this.memory.forget(frame.previousId);
      this.socket.send(withStreamId(data, frame.streamId));
    }
  }

  private refuse(error: GatewayError, streamId: string | undefined): void {
    this.faults += 1;
    if (this.faults > faultsMax) {
      this.socket.close(closeCodes.policy, "Too many frames that are no requests.");
      return;
    }
    this.socket.send(withStreamId(errorFrame(error), streamId));
  }

  /** Adds input to a response in progress, which ends early where it can. */
  private steer({ responseId, input }: { responseId: string; input: unknown }): void {
    const lane = [...this.lanes.values()].find(
      ({ running }) => running?.responseId !== undefined && running.responseId === responseId,
    );
    const running = lane?.running;
    const unknown = { id: "", responseId, input: [], sent: input };
    if (running === undefined) {
      const ended = this.memory.find(responseId) !== undefined;
      const code = ended ? "response_already_completed" : "response_not_found";
      const message = ended
        ? `The response ${responseId} has ended. Continue it with response.create.`
        : `This socket has no response ${responseId} in progress.`;
      return this.failSteer(unknown, { code, message });
    }
    const { streamId } = running.frame;
    const nowMs = this.options.clock.nowMs();
    const steer = readSteer(input, { responseId, waiting: running.steers.length, nowMs });
    if ("code" in steer) return this.failSteer(unknown, { ...steer, streamId });
    running.steers.push(steer);
    const accepted = {
      type: "response.steer.accepted",
      sequence_number: numberAfter(running.lastEvent),
      steer: shownSteer(steer),
    };
    this.socket.send(withStreamId(JSON.stringify(accepted), streamId));
    running.facts.steer?.();
  }

  private failSteer(
    steer: Steer,
    { code, message, streamId }: { code: string; message: string; streamId?: string | undefined },
  ): void {
    const event = {
      type: "response.steer.failed",
      sequence_number: 0,
      error: { type: "invalid_request_error", code, message },
      steer: {
        ...(steer.id !== "" && { id: steer.id }),
        previous_response_id: steer.responseId,
        input: steer.sent,
      },
    };
    this.socket.send(withStreamId(JSON.stringify(event), streamId));
  }

  /** Starts the successor of a response that was steered, or reports what it waits for. */
  private continueWith(lane: Lane, { frame, responseId, steers, lastEvent }: Running): void {
    if (steers.length === 0 || responseId === undefined || !this.socket.isOpen) return;
    const conversation = this.memory.find(responseId);
    if (conversation === undefined || this.ends !== undefined) {
      const message = `The response ${responseId} cannot be continued.`;
      for (const steer of steers)
        this.failSteer(steer, {
          code: "successor_creation_failed",
          message,
          streamId: frame.streamId,
        });
      return;
    }
    const required = requiredInput(conversation);
    if (required.length === 0) {
      const input = steers.flatMap((steer) => steer.input);
      const successor = continued(frame, { responseId, input });
      return this.enqueue(lane, { frame: successor, successorOf: steers }, { first: true });
    }
    this.waitingSteers.set(responseId, steers);
    for (const steer of steers) {
      const pending = {
        type: "response.steer.pending",
        sequence_number: numberAfter(lastEvent),
        reason: "waiting_for_required_input",
        required_input: required,
        steer: shownSteer(steer),
      };
      this.socket.send(withStreamId(JSON.stringify(pending), frame.streamId));
    }
  }

  /** Returns a frame with the inputs that wait for the response which it continues before its own. */
  private withSteers(frame: CreateFrame): CreateFrame {
    const { previousId = "" } = frame;
    const steers = this.waitingSteers.get(previousId);
    if (steers === undefined) return frame;
    this.waitingSteers.delete(previousId);
    const input = steers.flatMap((steer) => steer.input);
    return continued(frame, { responseId: previousId, input, before: true });
  }
}

/** Returns the error frame of a refusal that no endpoint has rendered. */
const errorFrame = (error: GatewayError): string =>
  JSON.stringify({
    type: "error",
    status: error.status,
    ...openaiResponses.encodeError(error, { traceId: "" }),
  });

/** Returns the id of the response that an event creates; undefined for every other event. */
function createdId(data: string): string | undefined {
  if (!data.includes('"response.created"')) return undefined;
  const { response } = JSON.parse(data) as { response?: { id?: string } };
  return response?.id;
}

/** Returns the number that follows an event's. */
const numberAfter = (data: string): number =>
  Number(/"sequence_number":(\d+)/.exec(data)?.[1] ?? -1) + 1;
