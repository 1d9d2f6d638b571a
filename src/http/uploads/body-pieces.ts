import { systemClock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { withinTime } from "../../platform/kernel/time/within-time.ts";
import {
  declaredLengthOf,
  decompressorOf,
  drain,
  drainMs,
  inTime,
  leaveUnread,
  nextTurn,
  refuseUnread,
  smallPieceBytes,
  tooLarge,
} from "../bodies/read-body.ts";
import { BodyPace } from "../bodies/body-pace.ts";
import type { HttpRequest } from "../served-request.ts";
import { ReadingTurns } from "./reading-turns.ts";

/** The most bodies that are read from fast clients at once. */
const turns = new ReadingTurns(8);
/** Milliseconds for which a turn is kept while its client sends nothing. */
const turnMs = 250;
/** Bytes of one piece that only a client sends who is faster than the storage. */
const fastPieceBytes = 128 * 1024;
/** The most milliseconds for which more is gathered of a body whose client is slow. */
const gatherMsMax = 250;

/** Bytes of a body that are read in one turn, so that a long one does not keep the others. */
const turnBytes = 64 * 1024 * 1024;

/**
 * Reads a body as it arrives, for bodies that are stored and not held in memory. A piece is valid
 * until the next one is asked for: then its memory is freed, since garbage of this size is collected
 * too late. Each piece is awaited in time; the time in which the reader works on a piece, or waits
 * for its turn, does not count, while that in which more is gathered does. A body that is refused is
 * drained, so that its client gets the answer. `waits` says whether the reader may wait for storage,
 * where so many bodies wait for their turn; bodies then take turns, since more of each would come
 * meanwhile. Throws `GatewayError`.
 */
export async function* bodyPieces(
  request: HttpRequest,
  limitBytes: number,
  { waits = () => true }: { waits?(waitingCount: number): boolean } = {},
): AsyncGenerator<Uint8Array> {
  const declared = declaredLengthOf(request);
  if (declared !== undefined && declared > limitBytes) await refuseUnread(request, limitBytes);
  if (decompressorOf(request) !== undefined)
    throw new GatewayError("bad_request", "Send this body without content-encoding.");
  const pace = new BodyPace(systemClock.livedMs());
  const turn = new Turn(pace, waits);
  // The platform keeps less of a body that is not read yet.
  await turn.begin();
  const reader = request.body?.getReader();
  if (reader === undefined) return turn.giveBack();
  const gathering = new Gathering();
  let size = 0;
  let isWhole = false;
  try {
    for (;;) {
      await turn.begin();
      const askedMs = systemClock.livedMs();
      const { done, value } = await turn.during(inTime(request, reader.read(), pace));
      if (done) break;
      size += value.byteLength;
      if (size > limitBytes) throw tooLarge(limitBytes);
      const nowMs = systemClock.livedMs();
      pace.came(value.byteLength, nowMs);
      turn.came(value.byteLength);
      gathering.came(value.byteLength, nowMs - askedMs);
      yield value;
      freePiece(value);
      const gatheredMs = size === declared ? 0 : await gathering.wait();
      // What is gathered has to come in time, too, or a byte now and then would do for hours.
      pace.dueMs += Math.max(0, systemClock.livedMs() - nowMs - gatheredMs);
    }
    isWhole = true;
  } finally {
    turn.giveBack();
    if (!isWhole) {
      leaveUnread(request);
      await drain(reader, request.signal.aborted ? 0 : drainMs);
    }
  }
}

/**
 * Waits between small pieces, so that more of a body comes at once: reading a packet at a time of
 * hundreds of slow clients would take a processor. Pieces that were there already are not waited for.
 */
class Gathering {
  private isSmall = false;
  private waitMs = 0;

  /** Notes a piece, and how long it was awaited. */
  came(bytes: number, awaitedMs: number): void {
    this.isSmall = bytes < smallPieceBytes;
    if (!this.isSmall) this.waitMs = 0;
    else if (awaitedMs >= 1) this.waitMs = Math.min(gatherMsMax, 2 * this.waitMs + 1);
  }

  /** Waits for more, as long as it is worth it. Returns the milliseconds for which it meant to. */
  async wait(): Promise<number> {
    if (!this.isSmall) return 0;
    await (this.waitMs === 0 ? nextTurn() : Bun.sleep(this.waitMs));
    return this.waitMs;
  }
}

/** One body's turn. Clients slower than the storage need none, since little of theirs waits. */
class Turn {
  private isFast = true;
  private isHeld = false;
  private bytes = 0;

  constructor(
    private readonly pace: BodyPace,
    private readonly isNeeded: (waitingCount: number) => boolean,
  ) {}

  /** Waits for the turn, unless the client is slow or none is needed. */
  async begin(): Promise<void> {
    if (!this.isFast || this.isHeld || !this.isNeeded(turns.waitingCount)) return;
    const askedMs = systemClock.livedMs();
    await turns.take();
    this.pace.dueMs += systemClock.livedMs() - askedMs;
    this.isHeld = true;
    this.bytes = 0;
  }

  /** Waits for a piece. The turn is given back where the client lets it pass. */
  async during<Part>(reading: Promise<Part>): Promise<Part> {
    if (!this.isHeld) return reading;
    const part = await withinTime(turnMs, reading, undefined);
    if (part !== undefined) return part;
    this.isFast = false;
    this.giveBack();
    return reading;
  }

  /** Notes what came: a client that is slow gives its turn back, and so does one that had a long one. */
  came(bytes: number): void {
    this.bytes += bytes;
    this.isFast = bytes >= fastPieceBytes;
    if (!this.isFast || this.bytes > turnBytes) this.giveBack();
  }

  giveBack(): void {
    if (this.isHeld) turns.giveBack();
    this.isHeld = false;
  }
}

/** Bytes of a piece from which it is freed at once: garbage of many smaller ones is collected in time. */
const freedBytesMin = 1024;

/** Frees a piece at once where its buffer holds nothing else. */
function freePiece({ buffer, byteLength }: Uint8Array): void {
  if (byteLength >= freedBytesMin && buffer.byteLength === byteLength && "transfer" in buffer)
    buffer.transfer(0);
}
