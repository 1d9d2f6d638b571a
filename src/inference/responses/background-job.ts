import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { EventLog, isTerminal, type TerminalName } from "./response-event.ts";
import type { EndedStatus, ResponseRecord } from "./stored-response.ts";

/** One background response, ready to be worked on. */
export interface BackgroundJob {
  responseId: string;
  createdAtMs: number;
  /** 1 for the first run; more where an earlier process ended before the job did. */
  run: number;
  /** Who asked for it, as the key is now; its workspace owns the response. */
  caller: LlmKeyCaller;
  /** The text that it was submitted with. */
  requestText: string;
  /** The preset that it named; the text has what that says. */
  presetId: string | undefined;
}

/** Where a job's answer goes. Nothing is taken any more once the job has ended. */
export interface BackgroundSink {
  /**
   * The next event, with the JSON text of its data as it is to be sent. The data of an event that
   * ends the response carries the record, which is taken from it.
   */
  event(name: string, data: string): void;
  /**
   * How the response ended, where no event tells it or the record is to hold more; the last call
   * counts.
   */
  record(status: EndedStatus, record: ResponseRecord): void;
}

/**
 * Does the work of a job: the inference itself. Resolves when the answer is whole, rejects with
 * what it fails with. When `signal` is aborted it stops its upstream and settles; what it returns
 * then counts only where the answer was whole already.
 */
export type RunBackground = (
  job: BackgroundJob,
  sink: BackgroundSink,
  signal: AbortSignal,
) => Promise<void>;

/** Why a job is stopped before its answer is whole. */
export type StopReason = "cancel" | "shutdown";

/** How a job ended, as far as its run tells. */
interface ReportedEnd {
  status: EndedStatus;
  record: ResponseRecord;
}

const endedBy: Record<TerminalName, EndedStatus> = {
  "response.completed": "completed",
  "response.incomplete": "incomplete",
  "response.failed": "failed",
};

/** A job in this process: waiting, running, or being put to its end. */
export class ActiveJob implements BackgroundSink {
  readonly id: string;
  readonly log = new EventLog();
  readonly signal: AbortSignal;
  /** The run's end, however it came about. */
  readonly runEnded: Promise<void>;
  markRunEnded: () => void;
  /** Set once the end is being written: later events of the run are dropped. */
  conclusion: Promise<void> | undefined;
  stopReason: StopReason | undefined;
  /** Told when there are events to store. */
  onEvents: () => void = () => undefined;
  /** Resolves when no events are being stored and no more will be. */
  stopStoring: () => Promise<void> = () => Promise.resolve();
  private readonly abort = new AbortController();
  private reported: ReportedEnd | undefined;

  constructor(id: string) {
    this.id = id;
    this.signal = this.abort.signal;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.runEnded = promise;
    this.markRunEnded = resolve;
  }

  event(name: string, data: string): void {
    if (this.conclusion !== undefined) return;
    const value = JSON.parse(data) as Record<string, unknown>;
    const { sequence_number: told, response } = value;
    const expected = this.log.nextSequenceNumber;
    // Replay counts upwards; a number that falls back would hide its event from every follower.
    const sequenceNumber =
      Number.isSafeInteger(told) && (told as number) >= expected ? (told as number) : expected;
    this.log.append({ sequenceNumber, name, data });
    if (isTerminal(name) && typeof response === "object" && response !== null)
      this.record(endedBy[name], response as ResponseRecord);
    this.onEvents();
  }

  record(status: EndedStatus, record: ResponseRecord): void {
    if (this.conclusion === undefined) this.reported = { status, record: { ...record, status } };
  }

  stop(reason: StopReason): void {
    this.stopReason ??= reason;
    this.abort.abort(
      new GatewayError("client_closed_request", `The background response was stopped (${reason}).`),
    );
  }

  /** The end that is to be written; undefined when the job goes back to the queue. */
  endOf(failure: unknown, stored: ResponseRecord): ReportedEnd | undefined {
    const { reported, stopReason } = this;
    // What was whole before the stop stays whole: it was answered and paid for.
    const whole = reported?.status === "completed" || reported?.status === "incomplete";
    if (reported !== undefined && (whole || stopReason === undefined)) return reported;
    if (stopReason === "shutdown") return undefined;
    const record = reported?.record ?? stored;
    if (stopReason === "cancel")
      return { status: "cancelled", record: { ...record, status: "cancelled", error: null } };
    return {
      status: "failed",
      record: { ...record, status: "failed", error: errorObject(failure) },
    };
  }

  /**
   * Sees to it that the events end with one that tells the end, so that no follower takes it for a
   * cut.
   */
  tellEnd({ status, record }: ReportedEnd): void {
    const { log } = this;
    if (log.hasTerminal && this.reported?.status === status) return;
    log.withdrawTerminal();
    // Clients take nothing of a response before they have heard that it was created.
    if (log.nextSequenceNumber === 0)
      this.tell("response.created", { ...record, status: "queued", error: null });
    this.tell(terminalOf(status), record);
  }

  private tell(name: string, response: ResponseRecord): void {
    const sequenceNumber = this.log.nextSequenceNumber;
    this.log.append({
      sequenceNumber,
      name,
      data: JSON.stringify({ type: name, sequence_number: sequenceNumber, response }),
    });
  }
}

/**
 * The dialect has no event of its own for a cancelled response, and clients throw on names that
 * they do not know.
 */
const terminalOf = (status: EndedStatus): TerminalName =>
  status === "completed" || status === "incomplete" ? `response.${status}` : "response.failed";

function errorObject(failure: unknown): { code: string; message: string } {
  if (failure instanceof GatewayError) return { code: failure.code, message: failure.message };
  return { code: "server_error", message: "The gateway failed on this response. Create it again." };
}
