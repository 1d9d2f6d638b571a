import type { FrameSource } from "../../platform/lib/frame-source.ts";
import type { EventLog } from "./event-log.ts";
import type { JobStore } from "./job-store.ts";
import { framesOf, type ResponseEvent } from "./response-event.ts";

/** What a follower reads from. */
export interface FollowedResponse {
  id: string;
  /** The job's log while this process works on it; undefined for a response that only the database knows. */
  log: EventLog | undefined;
  jobs: JobStore;
  onError(error: unknown): void;
}

/** Replays the events of a background response from a position and goes on with those that come, until it ends. */
export class EventFollower implements FrameSource {
  private readonly response: FollowedResponse;
  private position: number;
  private gone = false;
  private wake: () => void = () => undefined;

  /** Follows from the event after `position`; -1 stands before the first one. */
  constructor(response: FollowedResponse, position: number) {
    this.response = response;
    this.position = position;
  }

  async next(): Promise<string | undefined> {
    try {
      const events = await this.nextEvents();
      const last = events?.at(-1);
      if (events === undefined || last === undefined) return undefined;
      this.position = last.sequenceNumber;
      return framesOf(events);
    } catch (error) {
      this.response.onError(error);
      if (this.gone) return undefined;
      this.gone = true;
      return this.errorFrame();
    }
  }

  cancel(): void {
    this.gone = true;
    this.wake();
  }

  private async nextEvents(): Promise<readonly ResponseEvent[] | undefined> {
    const { log } = this.response;
    while (!this.gone) {
      const { promise: changed, resolve } = Promise.withResolvers<void>();
      this.wake = resolve;
      // Listened for before anything is read, so that what comes in between is not missed.
      log?.onChange(resolve);
      const ended = log?.ended ?? true;
      const events = await this.read();
      if (events.length > 0 || ended) {
        log?.offChange(resolve);
        return events;
      }
      await changed;
      log?.offChange(resolve);
    }
    return undefined;
  }

  private async read(): Promise<readonly ResponseEvent[]> {
    const { log, jobs, id } = this.response;
    return log?.after(this.position) ?? jobs.eventsAfter(id, this.position);
  }

  private errorFrame(): string {
    const data = JSON.stringify({
      type: "error",
      code: "service_unavailable",
      param: null,
      sequence_number: this.position + 1,
      message: "The stored events cannot be read now. Ask again with starting_after.",
    });
    return framesOf([{ sequenceNumber: this.position + 1, name: "error", data }]);
  }
}
