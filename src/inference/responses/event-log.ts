import { type ResponseEvent, isTerminal } from "./stored-response.ts";

/**
 * The events of a running job that are not stored yet, and the readers that wait for more.
 * Followers see an event at once, but the end of a response only when its record is durable, since
 * a reader of `response.completed` may request the response in the next moment.
 */
export class EventLog {
  private unstored: ResponseEvent[] = [];
  private lastStored = -1;
  private lastSeen = -1;
  private terminal: number | undefined;
  private closed = false;
  private endStored = false;
  private readonly waiting = new Set<() => void>();

  /** The sequence number of the next event. */
  get nextSequenceNumber(): number {
    return this.lastSeen + 1;
  }

  /** Whether a terminal event is among the events. */
  get hasTerminal(): boolean {
    return this.terminal !== undefined;
  }

  /** Whether nothing more will come. */
  get ended(): boolean {
    return this.closed;
  }

  /** Numbers the events after those that another gateway has stored. */
  startAfter(sequenceNumber: number): void {
    this.lastStored = sequenceNumber;
    this.lastSeen = sequenceNumber;
  }

  append(event: ResponseEvent): void {
    if (this.terminal === undefined && isTerminal(event.name)) this.terminal = this.unstored.length;
    this.unstored.push(event);
    this.lastSeen = event.sequenceNumber;
    this.wakeAll();
  }

  /** Removes the terminal event, with everything that came after it. */
  withdrawTerminal(): void {
    if (this.terminal === undefined) return;
    this.unstored.length = this.terminal;
    this.terminal = undefined;
    this.lastSeen = this.unstored.at(-1)?.sequenceNumber ?? this.lastStored;
  }

  /** Returns what may be stored before the response has ended. */
  beforeEnd(): readonly ResponseEvent[] {
    return this.unstored.slice(0, this.terminal);
  }

  /** Returns everything that is not stored yet. */
  all(): readonly ResponseEvent[] {
    return this.unstored;
  }

  /** Notes that the first `count` events are stored now. */
  markStored(count: number): void {
    const stored = this.unstored.splice(0, count);
    this.lastStored = stored.at(-1)?.sequenceNumber ?? this.lastStored;
    if (this.terminal !== undefined) this.terminal -= count;
  }

  /**
   * Returns the events after a sequence number; undefined when some of them have to be read from
   * the database.
   */
  after(sequenceNumber: number): readonly ResponseEvent[] | undefined {
    if (sequenceNumber < this.lastStored) return undefined;
    const visible = this.endStored ? this.unstored : this.beforeEnd();
    return visible.filter((event) => event.sequenceNumber > sequenceNumber);
  }

  /**
   * Notes that the end is durable, so that followers may see it; they read it here, since the
   * response may be deleted before they would read it in the database.
   */
  markEndStored(): void {
    this.endStored = true;
  }

  /** Notes that nothing more will come, and wakes waiting readers. */
  close(): void {
    this.closed = true;
    this.wakeAll();
  }

  /** Calls `wake` at the next change, once. */
  onChange(wake: () => void): void {
    this.waiting.add(wake);
  }

  /** Stops waiting. */
  offChange(wake: () => void): void {
    this.waiting.delete(wake);
  }

  private wakeAll(): void {
    for (const wake of this.waiting) wake();
    this.waiting.clear();
  }
}
