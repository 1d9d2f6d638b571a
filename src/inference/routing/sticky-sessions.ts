import type { Clock } from "../../platform/lib/clock.ts";
import type { Candidate } from "./candidate.ts";
import type { Session, SessionPlace } from "./session.ts";

/** Sessions that are remembered at once; beyond them the one that was quiet for longest is forgotten. */
const entriesMaxDefault = 50_000;
/** No provider keeps a prompt cache for longer than this after its last use. */
const lifetimeMsDefault = 60 * 60_000;

interface Entry extends SessionPlace {
  untilMs: number;
}

/**
 * Which provider served a session's requests for a model last, so that the next one finds its prompt cache. In
 * memory and bounded; a process that forgets only costs a cache miss.
 */
export class StickySessions {
  private readonly clock: Clock;
  private readonly entriesMax: number;
  private readonly lifetimeMs: number;
  /** In the order of their last use. */
  private readonly entries = new Map<string, Entry>();

  constructor(clock: Clock, { entriesMax = entriesMaxDefault, lifetimeMs = lifetimeMsDefault } = {}) {
    this.clock = clock;
    this.entriesMax = entriesMax;
    this.lifetimeMs = lifetimeMs;
  }

  /** Who served the session's last request for a model or router; undefined when nobody did lately. */
  lastPlace(session: Session, requestedModel: string): SessionPlace | undefined {
    const entry = this.entries.get(keyOf(session, requestedModel));
    return entry === undefined || entry.untilMs <= this.clock.monotonicMs() ? undefined : entry;
  }

  /**
   * Remembers who served, and tells whether the session had to move for it. A fallback to another model is a
   * move that is not remembered: the session comes back when the requested model can serve again.
   */
  recordServed(session: Session, { requestedModel, candidate }: { requestedModel: string; candidate: Candidate }): boolean {
    const key = keyOf(session, requestedModel);
    const last = this.lastPlace(session, requestedModel);
    const place = { provider: candidate.route.provider.id, model: candidate.model.id };
    const moved = last !== undefined && !isAt(place, last);
    if (candidate.modelIndex > 0) return moved;
    this.entries.delete(key);
    this.entries.set(key, { ...place, untilMs: this.clock.monotonicMs() + this.lifetimeMs });
    if (this.entries.size > this.entriesMax) {
      const [oldest] = this.entries.keys();
      if (oldest !== undefined) this.entries.delete(oldest);
    }
    return moved;
  }

  /** How many sessions are remembered. */
  get size(): number {
    return this.entries.size;
  }
}

/** Neither workspace nor model ids have line breaks, so no two sessions share a key. */
const keyOf = ({ workspaceId, id }: Session, requestedModel: string): string => `${workspaceId}\n${requestedModel}\n${id}`;

const isAt = (left: SessionPlace, right: SessionPlace): boolean => left.provider === right.provider && left.model === right.model;

/** Whether a candidate of the requested model is where a session was served last. */
export const isAtPlace = ({ model, route, modelIndex }: Candidate, place: SessionPlace): boolean =>
  modelIndex === 0 && route.provider.id === place.provider && model.id === place.model;
