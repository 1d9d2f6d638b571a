import type { Clock } from "../../platform/kernel/clock.ts";
import { withinTime } from "../../platform/kernel/within-time.ts";
import type { Candidate } from "./candidate.ts";

/**
 * Sessions that are remembered at once; beyond them the one that was quiet for longest is
 * forgotten.
 */
const entriesMaxDefault = 50_000;
/** No provider keeps a prompt cache for longer than this after its last use. */
const lifetimeMsDefault = 60 * 60_000;

/**
 * How long a request waits to hear where its session was at another gateway; what this one
 * remembers has to do then.
 */
const recallMsDefault = 25;

/**
 * Where sessions were served last, as several gateways know it; what rejects is not known at the
 * moment.
 */
export interface SharedPlaces {
  get(key: string): Promise<SessionPlace | undefined>;
  set(key: string, place: SessionPlace, ttlSeconds: number): Promise<void>;
}

interface Entry extends SessionPlace {
  untilMs: number;
}

/**
 * Which provider served a session's requests for a model last, so that the next one finds its
 * prompt cache. In memory and bounded; a process that forgets only costs a cache miss. Several
 * gateways tell each other over a shared server, and go by their own memory while it is away or
 * late.
 */
export class StickySessions {
  private readonly clock: Clock;
  private readonly entriesMax: number;
  private readonly lifetimeMs: number;
  private readonly recallMs: number;
  private readonly shared: SharedPlaces | undefined;
  /** In the order of their last use. */
  private readonly entries = new Map<string, Entry>();

  constructor(
    clock: Clock,
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
    this.clock = clock;
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
   * Learns where other gateways served a session last, unless that takes too long. Never rejects.
   */
  async recall(session: Session, requestedModel: string): Promise<void> {
    if (this.shared === undefined) return;
    const key = keyOf(session, requestedModel);
    const place = await withinTime(
      this.recallMs,
      this.shared.get(sharedKey(key)).catch(() => undefined),
      undefined,
    );
    if (place !== undefined) this.remember(key, place);
  }

  /**
   * Who served the session's last request for a model or router; undefined without a recent one.
   */
  lastPlace(session: Session, requestedModel: string): SessionPlace | undefined {
    const entry = this.entries.get(keyOf(session, requestedModel));
    return entry === undefined || entry.untilMs <= this.clock.monotonicMs() ? undefined : entry;
  }

  /**
   * Remembers who served, and tells whether the session had to move for it. A fallback to another
   * model is a move that is not remembered: the session comes back when the requested model can
   * serve again.
   */
  recordServed(
    session: Session,
    { requestedModel, candidate }: { requestedModel: string; candidate: Candidate },
  ): boolean {
    const key = keyOf(session, requestedModel);
    const last = this.lastPlace(session, requestedModel);
    const place = { provider: candidate.route.provider.id, model: candidate.model.id };
    const moved = last !== undefined && !isAt(place, last);
    if (candidate.modelIndex > 0) return moved;
    this.remember(key, place);
    // Not awaited: a gateway that does not hear of it in time goes by what it knows.
    this.shared?.set(sharedKey(key), place, this.lifetimeMs / 1000).catch(() => undefined);
    return moved;
  }

  /** How many sessions are remembered. */
  get size(): number {
    return this.entries.size;
  }

  private remember(key: string, { provider, model }: SessionPlace): void {
    this.entries.delete(key);
    this.entries.set(key, { provider, model, untilMs: this.clock.monotonicMs() + this.lifetimeMs });
    if (this.entries.size > this.entriesMax) {
      const [oldest] = this.entries.keys();
      if (oldest !== undefined) this.entries.delete(oldest);
    }
  }
}

/** Neither workspace nor model ids have line breaks, so no two sessions share a key. */
const keyOf = ({ workspaceId, id }: Session, requestedModel: string): string =>
  `${workspaceId}\n${requestedModel}\n${id}`;

/** Callers name sessions as they like; what is shared has one length and none of their words. */
const sharedKey = (key: string): string =>
  new Bun.CryptoHasher("sha256").update(key).digest("base64url");

const isAt = (left: SessionPlace, right: SessionPlace): boolean =>
  left.provider === right.provider && left.model === right.model;

/** Whether a candidate of the requested model is where a session was served last. */
export const isAtPlace = ({ model, route, modelIndex }: Candidate, place: SessionPlace): boolean =>
  modelIndex === 0 && route.provider.id === place.provider && model.id === place.model;

/** A session of a workspace's callers, named by `session_id` or `x-session-id`. */
export interface Session {
  workspaceId: string;
  id: string;
}

/** Who served a session last. */
export interface SessionPlace {
  provider: string;
  /** Catalog id; another than the requested one where that is a router. */
  model: string;
}
