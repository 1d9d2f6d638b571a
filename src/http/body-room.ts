import { GatewayError } from "../platform/lib/errors.ts";

/** Seconds after which a request that found no room is told to come again. */
const retryAfterSeconds = 2;

/** The memory that request bodies may take at once, over all requests of a server. */
export class BodyRoom {
  heldBytes = 0;
  readonly bytesMax: number;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }
}

/** What one request holds of the room for bodies. */
export class BodyHold {
  private readonly room: BodyRoom;
  private bytes = 0;
  private released = false;

  constructor(room: BodyRoom) {
    this.room = room;
  }

  /** Adds bytes of the body. Throws `service_unavailable` where all bodies together would be larger than the room. */
  add(bytes: number): void {
    const { room } = this;
    if (room.heldBytes + bytes > room.bytesMax) {
      const message =
        "The gateway holds as many bytes of request bodies as it may. Send the request again shortly, or make it smaller.";
      throw new GatewayError("service_unavailable", message, {
        retryAfterSeconds,
        metadata: { reason: "body_memory", limit_bytes: room.bytesMax },
      });
    }
    if (this.released) return;
    this.bytes += bytes;
    room.heldBytes += bytes;
  }

  /** Gives back everything that was added. */
  release(): void {
    this.released = true;
    this.room.heldBytes -= this.bytes;
    this.bytes = 0;
  }
}
