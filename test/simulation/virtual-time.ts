import { FakeClock } from "../support/fake-clock.ts";

interface Event {
  atMs: number;
  /** Events of one moment happen in the order in which they were planned. */
  number: number;
  happen(): unknown;
}

const isBefore = (left: Event, right: Event): boolean =>
  left.atMs < right.atMs || (left.atMs === right.atMs && left.number < right.number);

/**
 * Time that passes from event to event: hours of it take seconds, and every run with the same
 * events is the same.
 */
export class VirtualTime {
  readonly clock = new FakeClock();
  /** A binary heap, the next event first. */
  private readonly events: Event[] = [];
  private planned = 0;

  /** Milliseconds since the beginning. */
  get nowMs(): number {
    return this.clock.monotonicMs();
  }

  /** Plans something for so many milliseconds from now; clocks tell whole ones. */
  after(delayMs: number, happen: () => unknown): void {
    this.push({ atMs: this.nowMs + Math.ceil(delayMs), number: (this.planned += 1), happen });
  }

  /**
   * Lets events happen, one after the other with everything that follows from each at once, until
   * none is left.
   */
  async run(): Promise<void> {
    for (let event = this.pop(); event !== undefined; event = this.pop()) {
      this.clock.advance(event.atMs - this.nowMs);
      event.happen();
      // What an event sets off is over when the loop turns: nothing in a simulation waits for
      // anything but events.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  private push(event: Event): void {
    const { events } = this;
    let index = events.length;
    while (index > 0) {
      const parent = events[(index - 1) >> 1] as Event;
      if (!isBefore(event, parent)) break;
      events[index] = parent;
      index = (index - 1) >> 1;
    }
    events[index] = event;
  }

  private pop(): Event | undefined {
    const { events } = this;
    const first = events[0];
    const last = events.pop();
    if (first === undefined || last === undefined || events.length === 0) return first;
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      const right = left + 1;
      const child =
        right < events.length && isBefore(events[right] as Event, events[left] as Event)
          ? right
          : left;
      if (child >= events.length || !isBefore(events[child] as Event, last)) break;
      events[index] = events[child] as Event;
      index = child;
    }
    events[index] = last;
    return first;
  }
}
