import { type Clock, systemClock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { type Passing, PassingSet } from "../../platform/kernel/passing/passing-set.ts";

/** Milliseconds for which a body is awaited before it has to give way to others. */
const patienceMs = 10_000;

/** Seconds after which a request that found no memory may be sent again. */
const retryAfterSeconds = 2;

const noMemory = ({ bytesMax }: BodyMemory): GatewayError => {
  const message =
    "The gateway holds as many bytes of request bodies as it may. Send the request again shortly, or make it smaller.";
  return new GatewayError("service_unavailable", message, {
    retryAfterSeconds,
    metadata: { reason: "body_memory", limit_bytes: bytesMax },
  });
};

/** A body that is read in one piece and has not come yet. Its declared length is held. */
interface AwaitedBody extends Passing {
  readonly sinceMs: number;
  /** Refuses its request and gives its memory back. */
  giveWay(): void;
  /** Called when it has come, or its request was refused. */
  end(): void;
}

/**
 * The memory that all request bodies of a server may take at once. Where it is short, bodies that
 * have been awaited in one piece for more than `patienceMs` give way, oldest first: the
 * platform does not say how much of them has come, and a client that stalls would hold the memory
 * for over a minute.
 */
export class BodyMemory {
  heldBytes = 0;
  private readonly awaited = new PassingSet<AwaitedBody>();

  constructor(
    readonly bytesMax: number,
    private readonly clock: Clock = systemClock,
  ) {}

  /** Creates the share of one request, which is empty at first. */
  share(): BodyMemoryShare {
    return new BodyMemoryShare(this);
  }

  /** Adds bytes to what is held. Throws `service_unavailable` where they do not fit. */
  add(bytes: number): void {
    while (this.heldBytes + bytes > this.bytesMax) {
      const slow = this.slowest();
      if (slow === undefined) throw noMemory(this);
      slow.giveWay();
    }
    this.heldBytes += bytes;
  }

  /** Notes that a share's body is awaited. `refuse` is called with the reason if it gives way. */
  awaitWhole(share: BodyMemoryShare, refuse: (error: GatewayError) => void): AwaitedBody {
    const body: AwaitedBody = {
      place: -1,
      sinceMs: this.clock.livedMs(),
      giveWay: () => {
        share.release();
        refuse(noMemory(this));
      },
      end: () => this.awaited.delete(body),
    };
    this.awaited.add(body);
    return body;
  }

  /** Returns the body that has been awaited for longest, if that is longer than `patienceMs`. */
  private slowest(): AwaitedBody | undefined {
    const sinceMaxMs = this.clock.livedMs() - patienceMs;
    let slowest: AwaitedBody | undefined;
    this.awaited.forEach((body) => {
      if (body.sinceMs <= (slowest?.sinceMs ?? sinceMaxMs)) slowest = body;
    });
    return slowest;
  }
}

/** One request's share of the memory for bodies. */
class BodyMemoryShare {
  private bytes = 0;
  private released = false;

  constructor(private readonly all: BodyMemory) {}

  /**
   * Adds bytes of the body. Throws `service_unavailable` where all bodies together would exceed the
   * memory.
   */
  add(bytes: number): void {
    if (this.released) return;
    this.all.add(bytes);
    this.bytes += bytes;
  }

  /** Notes that the body is awaited in one piece, and may have to give way to others. */
  awaitWhole(refuse: (error: GatewayError) => void): AwaitedBody {
    return this.all.awaitWhole(this, refuse);
  }

  /** Gives back everything that was added. */
  release(): void {
    this.released = true;
    this.all.heldBytes -= this.bytes;
    this.bytes = 0;
  }
}

export type { BodyMemoryShare };
