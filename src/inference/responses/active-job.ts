import {
  isTerminal,
  type EndedStatus,
  type ResponseRecord,
  type TerminalName,
} from "./stored-response.ts";
import { EventLog } from "./event-log.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { reportError } from "../dialects/errors.ts";
import { failure } from "../dialects/openai-responses/errors.ts";
import type { BackgroundSink, StopReason } from "./job-store.ts";

/** The end of a job, as its run reports it. */
interface ReportedEnd {
  status: EndedStatus;
  record: ResponseRecord;
}

const endedBy: Record<TerminalName, EndedStatus> = {
  "response.completed": "completed",
  "response.incomplete": "incomplete",
  "response.failed": "failed",
};

/** A job in this process: waiting, running, or ending. */
export class ActiveJob implements BackgroundSink {
  readonly log = new EventLog();
  readonly signal: AbortSignal;
  /** Resolves when the run has ended in any way. */
  readonly runEnded: Promise<void>;
  markRunEnded: () => void;
  /** Set once the end is being written: later events of the run are dropped. */
  conclusion: Promise<void> | undefined;
  stopReason: StopReason | undefined;
  /** Called when there are events to store. */
  onEvents: () => void = () => undefined;
  /** Resolves when no events are being stored and no more will be. */
  stopStoring: () => Promise<void> = () => Promise.resolve();
  private readonly abort = new AbortController();
  private reported: ReportedEnd | undefined;

  constructor(readonly id: string) {
    this.signal = this.abort.signal;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.runEnded = promise;
    this.markRunEnded = resolve;
  }

  event(name: string, data: string): void {
    if (this.conclusion !== undefined) return;
    const value = JSON.parse(data) as Record<string, unknown>;
    const { sequence_number: sentNumber, response } = value;
    const expected = this.log.nextSequenceNumber;
    // Replay counts upwards; a lower number would hide its event from every follower.
    const sequenceNumber =
      Number.isSafeInteger(sentNumber) && (sentNumber as number) >= expected
        ? (sentNumber as number)
        : expected;
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

  /** Returns the end that is to be written; undefined when the job goes back to the queue. */
  endOf(cause: unknown, stored: ResponseRecord): ReportedEnd | undefined {
    const { reported, stopReason } = this;
    // What was complete before the stop stays complete: it was answered and paid for.
    const whole = reported?.status === "completed" || reported?.status === "incomplete";
    if (reported !== undefined && (whole || stopReason === undefined)) return reported;
    if (stopReason === "shutdown") return undefined;
    const record = reported?.record ?? stored;
    if (stopReason === "cancel")
      return { status: "cancelled", record: { ...record, status: "cancelled", error: null } };
    return {
      status: "failed",
      record: { ...record, status: "failed", error: errorObject(cause) },
    };
  }

  /**
   * Makes sure that the events end with a terminal one, so that no follower takes the end for a
   * cut.
   */
  tellEnd({ status, record }: ReportedEnd): void {
    const { log } = this;
    if (log.hasTerminal && this.reported?.status === status) return;
    log.withdrawTerminal();
    // Clients ignore a response until they have received its creation.
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
 * Returns the terminal event of a status. The dialect has none for a cancelled response, and
 * clients throw on unknown names.
 */
const terminalOf = (status: EndedStatus): TerminalName =>
  status === "completed" || status === "incomplete" ? `response.${status}` : "response.failed";

/** Returns `error` of a failed response, with the codes of a stream that fails. */
function errorObject(cause: unknown): ResponseRecord {
  if (cause instanceof GatewayError) return failure(reportError(cause, { traceId: "" }));
  return { code: "server_error", message: "The gateway failed on this response. Create it again." };
}
