import { isTerminal, type ResponseEvent } from "./response-event.ts";

/**
 * The events of a job under way that are not stored yet, and who waits for more. Followers see an event
 * at once, but the end of a response only when its record is durable: who reads `response.completed`
 * may ask for the response in the next moment.
 */
export class EventLog {
  private unstored: ResponseEvent[] = [];
  private lastStored = -1;
  private lastSeen = -1;
  private terminal: number | undefined;
  private closed = false;
  private endStored = false;
  private readonly waiting = new Set<() => void>();

  /** Sequence number of the event that would come next. */
  get nextSequenceNumber(): number {
    return this.lastSeen + 1;
  }

  /** An event that tells how the response ended is among the events. */
  get hasTerminal(): boolean {
    return this.terminal !== undefined;
  }

  /** Nothing more will come. */
  get ended(): boolean {
    return this.closed;
  }

  append(event: ResponseEvent): void {
    if (this.terminal === undefined && isTerminal(event.name)) this.terminal = this.unstored.length;
    this.unstored.push(event);
    this.lastSeen = event.sequenceNumber;
    this.wakeAll();
  }

  /** Takes back the end that was announced, with everything that came after it. */
  withdrawTerminal(): void {
    if (this.terminal === undefined) return;
    this.unstored.length = this.terminal;
    this.terminal = undefined;
    this.lastSeen = this.unstored.at(-1)?.sequenceNumber ?? this.lastStored;
  }

  /** What may be stored before the response has ended. */
  beforeEnd(): readonly ResponseEvent[] {
    return this.unstored.slice(0, this.terminal);
  }

  /** Everything that is not stored yet. */
  all(): readonly ResponseEvent[] {
    return this.unstored;
  }

  /** The first `count` events are stored now. */
  markStored(count: number): void {
    const stored = this.unstored.splice(0, count);
    this.lastStored = stored.at(-1)?.sequenceNumber ?? this.lastStored;
    if (this.terminal !== undefined) this.terminal -= count;
  }

  /** Events after a sequence number; undefined when some of them have to be read from the database. */
  after(sequenceNumber: number): readonly ResponseEvent[] | undefined {
    if (sequenceNumber < this.lastStored) return undefined;
    const visible = this.endStored ? this.unstored : this.beforeEnd();
    return visible.filter((event) => event.sequenceNumber > sequenceNumber);
  }

  /** The end is durable: followers may see it, here too, since the response may be deleted before they read it there. */
  markEndStored(): void {
    this.endStored = true;
  }

  /** Nothing more will come; whoever waits hears it. */
  close(): void {
    this.closed = true;
    this.wakeAll();
  }

  /** Calls `wake` at the next change, once. */
  onChange(wake: () => void): void {
    this.waiting.add(wake);
  }

  /** Waits no longer. */
  offChange(wake: () => void): void {
    this.waiting.delete(wake);
  }

  private wakeAll(): void {
    for (const wake of this.waiting) wake();
    this.waiting.clear();
  }
}
