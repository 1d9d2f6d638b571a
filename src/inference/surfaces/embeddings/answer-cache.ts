/** An answer that is kept: its text from behind the id on, and what its headers say. */
export interface KeptAnswer {
  /** The body's text behind `{"id":"..."`. */
  tail: string;
  model: string;
  /** The provider that made it. */
  provider: string;
  upstreamModel: string;
}

/**
 * Where answers are kept. What it holds it may lose at any time; it is bounded in bytes. It may be shared
 * between processes, hence the promises; a store that fails is as good as an empty one.
 */
export interface AnswerStore {
  get(key: string): Promise<KeptAnswer | undefined> | KeptAnswer | undefined;
  set(key: string, answer: KeptAnswer, ttlSeconds: number): Promise<void> | void;
}

/** Whether a failure says nothing of the caller who met it, so that others who wait for the same would meet it, too. */
export type IsShared = (error: unknown) => boolean;

/** Gives out kept answers, and lets one request go for all that ask for the same at the same time. */
export class AnswerCache {
  private readonly store: AnswerStore;
  private readonly isShared: IsShared;
  private readonly underWay = new Map<string, Promise<KeptAnswer>>();

  constructor(store: AnswerStore, isShared: IsShared) {
    this.store = store;
    this.isShared = isShared;
  }

  /**
   * The answer to a request: kept, under way, or made by `make`, and then kept. Errors are never kept; a
   * failure is shared with those who wait where it would be theirs as well, otherwise the next of them tries.
   */
  async answer(
    key: string,
    { ttlSeconds, make }: { ttlSeconds: number; make(): Promise<KeptAnswer> },
  ): Promise<KeptAnswer> {
    for (;;) {
      const kept = await this.find(key);
      if (kept !== undefined) return kept;
      const other = this.underWay.get(key);
      if (other === undefined) return this.lead(key, { ttlSeconds, make });
      try {
        return await other;
      } catch (error) {
        if (this.isShared(error)) throw error;
      }
    }
  }

  /** Requests that others may be waiting for. */
  get underWayCount(): number {
    return this.underWay.size;
  }

  private async find(key: string): Promise<KeptAnswer | undefined> {
    try {
      return await this.store.get(key);
    } catch {
      return undefined;
    }
  }

  private async lead(
    key: string,
    { ttlSeconds, make }: { ttlSeconds: number; make(): Promise<KeptAnswer> },
  ): Promise<KeptAnswer> {
    const made = make();
    this.underWay.set(key, made);
    try {
      const answer = await made;
      await this.keep(key, answer, ttlSeconds);
      return answer;
    } finally {
      this.underWay.delete(key);
    }
  }

  private async keep(key: string, answer: KeptAnswer, ttlSeconds: number): Promise<void> {
    try {
      await this.store.set(key, answer, ttlSeconds);
    } catch {
      // The answer is as good without being kept.
    }
  }
}
