import type { Clock } from "../../platform/kernel/clock.ts";
import { withinTime } from "../../platform/kernel/time/within-time.ts";
import type { Candidate } from "./candidate.ts";
import type { Session } from "./affinity.ts";

/**
 * The most sessions that are remembered at once. Beyond it, the one without requests for longest is
 * forgotten.
 */
const entriesMaxDefault = 50_000;
/**
 * Milliseconds that a session is remembered. No provider keeps a prompt cache for longer than this
 * after its last use.
 */
const lifetimeMsDefault = 60 * 60_000;

/**
 * Milliseconds that a request waits to learn where other gateways served its session. After that,
 * this gateway's own memory decides.
 */
const recallMsDefault = 25;

/**
 * Milliseconds after which a gateway that knows a session asks again where it was served. A move at
 * another gateway takes this long to be noticed, and costs cache misses until then.
 */
const knownMs = 2_000;

/**
 * The places where sessions were last served, shared between gateways. A rejection means that they
 * are not known at the moment.
 */
export interface SharedPlaces {
  get(key: string): Promise<SessionPlace | undefined>;
  set(key: string, place: SessionPlace, ttlSeconds: number): Promise<void>;
}

interface Entry extends SessionPlace {
  untilMs: number;
  /** When the other gateways' knowledge of the session was last read; -Infinity for never. */
  recalledMs: number;
}

/**
 * Remembers which provider last served a session's requests for a model, so that the next one finds
 * its prompt cache. In memory and bounded; what is forgotten only costs a cache miss. Several
 * gateways share their entries through a server, and use their own memory while it is unavailable
 * or slow.
 */
export class StickySessions {
  private readonly entriesMax: number;
  private readonly lifetimeMs: number;
  private readonly recallMs: number;
  private readonly shared: SharedPlaces | undefined;
  /** The entries in the order of their last use. */
  private readonly entries = new Map<string, Entry>();

  constructor(
    private readonly clock: Clock,
    {
      shared,
      entriesMax = entriesMaxDefault,
      lifetimeMs = lifetimeMsDefault,
      recallMs = recallMsDefault,
    }: {
      shared?: SharedPlaces | undefined;
      entriesMax?: number;
      lifetimeMs?: number;
      recallMs?: number;
    } = {},
  ) {
    this.shared = shared;
    this.recallMs = recallMs;
    this.entriesMax = entriesMax;
    this.lifetimeMs = lifetimeMs;
  }

  /** Whether other gateways may know more of a session than this one. */
  get isShared(): boolean {
    return this.shared !== undefined;
  }

  /**
   * Learns where other gateways last served a session, unless that takes too long or was learned
   * moments ago. Never rejects.
   */
  async recall(session: Session, requestedModel: string): Promise<void> {
    if (this.shared === undefined) return;
    const key = keyOf(session, requestedModel);
    const nowMs = this.clock.monotonicMs();
    const known = this.entries.get(key);
    if (known !== undefined && nowMs - known.recalledMs < knownMs) return;
    const place = await withinTime(
      this.recallMs,
      this.shared.get(sharedKey(key)).catch(() => undefined),
      undefined,
    );
    if (place !== undefined) this.remember(key, place, nowMs);
  }

  /**
   * Returns where the session's last request for a model or router was served; undefined without a
   * recent one.
   */
  lastPlace(session: Session, requestedModel: string): SessionPlace | undefined {
    const entry = this.entries.get(keyOf(session, requestedModel));
    return entry === undefined || entry.untilMs <= this.clock.monotonicMs() ? undefined : entry;
  }

  /**
   * Remembers where a session was served, and returns whether it had to move for that. A fallback
   * to another model is a move that is not remembered: the session returns when the requested model
   * can serve again.
   */
  recordServed(
    session: Session,
    { requestedModel, candidate }: { requestedModel: string; candidate: Candidate },
  ): boolean {
    const key = keyOf(session, requestedModel);
    const last = this.lastPlace(session, requestedModel);
    const place = { provider: candidate.route.provider.id, model: candidate.model.id };
    const moved = last !== undefined && !isSamePlace(place, last);
    if (candidate.modelIndex > 0) return moved;
    this.remember(key, place);
    // Not awaited: a gateway that does not learn of it in time uses what it knows.
    this.shared?.set(sharedKey(key), place, this.lifetimeMs / 1000).catch(() => undefined);
    return moved;
  }

  /** The number of sessions that are remembered. */
  get size(): number {
    return this.entries.size;
  }

  private remember(
    key: string,
    { provider, model }: SessionPlace,
    recalledMs = this.entries.get(key)?.recalledMs ?? -Infinity,
  ): void {
    const untilMs = this.clock.monotonicMs() + this.lifetimeMs;
    this.entries.delete(key);
    this.entries.set(key, { provider, model, untilMs, recalledMs });
    if (this.entries.size > this.entriesMax) {
      const [oldest] = this.entries.keys();
      if (oldest !== undefined) this.entries.delete(oldest);
    }
  }
}

/**
 * Returns the key of a session. Neither workspace ids nor model ids contain line breaks, so no two
 * sessions share a key.
 */
const keyOf = ({ workspaceId, id }: Session, requestedModel: string): string =>
  `${workspaceId}\n${requestedModel}\n${id}`;

/**
 * Returns a number from 0 (inclusive) to 1 (exclusive) that a session always draws for a model, on
 * every gateway and after a restart.
 */
export const drawOfSession = (session: Session, requestedModel: string): number =>
  Number(Bun.hash.wyhash(keyOf(session, requestedModel)) >> 11n) / 2 ** 53;

/**
 * Hashes a key for sharing: callers choose session names, and what is shared has one length and
 * reveals none of them.
 */
const sharedKey = (key: string): string =>
  new Bun.CryptoHasher("sha256").update(key).digest("base64url");

/** Returns whether two places are the same. */
export const isSamePlace = (left: SessionPlace, right: SessionPlace): boolean =>
  left.provider === right.provider && left.model === right.model;

/** Returns whether a candidate of the requested model is where a session was last served. */
export const isAtPlace = ({ model, route, modelIndex }: Candidate, place: SessionPlace): boolean =>
  modelIndex === 0 && route.provider.id === place.provider && model.id === place.model;

/** The place where a session was last served. */
export interface SessionPlace {
  provider: string;
  /** The catalog id of the model; it differs from the requested one where that is a router. */
  model: string;
}
