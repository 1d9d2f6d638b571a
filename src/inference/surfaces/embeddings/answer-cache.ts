import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { Fields } from "../read-fields.ts";
import type { EmbeddingRequest } from "./embedding-request.ts";
import type { Clock } from "../../../platform/kernel/clock.ts";
import type { ServedWhole } from "../../pipeline/execution.ts";
import { showsNoCost } from "../../pipeline/answer-metadata.ts";

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
 * Where answers are kept, in this process or shared by several. What it holds it may lose at any
 * time; it is bounded in bytes. A store that fails is as good as an empty one.
 */
interface AnswerStore {
  get(key: string): Promise<KeptAnswer | undefined>;
  set(key: string, answer: KeptAnswer, ttlSeconds: number): Promise<void>;
}

/**
 * Lets one of several gateways make an answer that all of them were asked for. Where it fails,
 * each makes its own.
 */
export interface AnswerTurns {
  /** Makes an answer this gateway's to make; false while it is another's. */
  take(key: string): Promise<boolean>;
  /** Lets go, and tells the others. */
  release(key: string): void;
  /** Resolves when the other gateway may be done, and after a moment in any case. */
  ended(key: string): Promise<void>;
}

/**
 * Whether a failure says nothing of the caller who met it, so that others who wait for the same
 * would meet it, too.
 */
type IsShared = (error: unknown) => boolean;

/**
 * Gives out kept answers, and lets one request go for all that ask for the same at the same time,
 * at whichever gateway they ask.
 */
export class AnswerCache {
  private readonly store: AnswerStore;
  private readonly isShared: IsShared;
  private readonly turns: AnswerTurns | undefined;
  private readonly underWay = new Map<string, Promise<KeptAnswer>>();

  constructor(store: AnswerStore, isShared: IsShared, turns?: AnswerTurns) {
    this.store = store;
    this.isShared = isShared;
    this.turns = turns;
  }

  /**
   * The answer to a request: kept, under way, or made by `make`, and then kept. Errors are never
   * kept; a failure is shared with those who wait where it would be theirs as well, otherwise the
   * next of them tries.
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
    const { turns } = this;
    const made = turns === undefined ? make() : this.makeInTurn(key, { turns, ttlSeconds, make });
    this.underWay.set(key, made);
    try {
      const answer = await made;
      if (turns === undefined) await this.keep(key, answer, ttlSeconds);
      return answer;
    } finally {
      this.underWay.delete(key);
    }
  }

  /**
   * The answer that another gateway makes, or `make`'s where none does. One that ends without an
   * answer leaves the turn to the next.
   */
  private async makeInTurn(
    key: string,
    {
      turns,
      ttlSeconds,
      make,
    }: { turns: AnswerTurns; ttlSeconds: number; make(): Promise<KeptAnswer> },
  ): Promise<KeptAnswer> {
    const others = await this.awaitTurn(key, turns);
    if (others !== undefined) return others;
    try {
      const answer = await make();
      await this.keep(key, answer, ttlSeconds);
      return answer;
    } finally {
      turns.release(key);
    }
  }

  /**
   * Undefined once it is this gateway's turn, or where turns cannot be asked for; else what is
   * kept by then.
   */
  private async awaitTurn(key: string, turns: AnswerTurns): Promise<KeptAnswer | undefined> {
    for (;;) {
      let isOurs: boolean;
      try {
        isOurs = await turns.take(key);
      } catch {
        return undefined;
      }
      if (!isOurs) await turns.ended(key);
      // Also where it is ours: another may have made it since it was looked for.
      const kept = await this.find(key);
      if (kept === undefined && !isOurs) continue;
      if (kept !== undefined && isOurs) turns.release(key);
      return kept;
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

/** How long an answer is kept when the request does not say, in seconds. */
const ttlSecondsDefault = 3_600;
/** Longer than this nothing is kept, in seconds: 30 days. */
const ttlSecondsMax = 30 * 24 * 3_600;
/** Characters that a key of the caller's may have. */
const keyLengthMax = 1_024;

/** What a request asks of the cache; undefined keeps it out of the way. */
type CachePolicy = { ttlSeconds: number; ownKey: string | undefined } | undefined;

/** Reads `gw-cache-ttl`, `gw-skip-cache` and `gw-cache-key`. Throws `invalid_request_error`. */
export function readCachePolicy(headers: Pick<Headers, "get" | "has">): CachePolicy {
  const ttlSeconds = ttlOf(headers.get("gw-cache-ttl"));
  const ownKey = headers.get("gw-cache-key") ?? undefined;
  if (ownKey !== undefined && ownKey.length > keyLengthMax)
    throw refusal("gw-cache-key", `may have at most ${keyLengthMax} characters`);
  const skips = headers.get("gw-skip-cache")?.trim().toLowerCase() === "true";
  return skips || ttlSeconds === 0
    ? undefined
    : { ttlSeconds, ownKey: ownKey === "" ? undefined : ownKey };
}

function ttlOf(text: string | null): number {
  if (text === null) return ttlSecondsDefault;
  if (!/^\d+$/.test(text)) throw refusal("gw-cache-ttl", "must be a whole number of seconds");
  return Math.min(Number(text), ttlSecondsMax);
}

const refusal = (header: string, rule: string): GatewayError =>
  new GatewayError("invalid_request_error", `${header} ${rule}.`, { param: header });

/** What an answer depends on beside the request itself. */
export interface CacheScope {
  workspaceId: string;
  /** Canonical id of the model. */
  modelId: string;
  /** What the request says of providers, in its body and by header. */
  providers: unknown;
  /** The caller's own key, which replaces the input and the fields that are sent upstream. */
  ownKey: string | undefined;
}

/**
 * The key that an answer is kept under. It always has the workspace, the model, the dimensions and
 * the format in it, so that a key of the caller's own never yields vectors of another model.
 */
export function cacheKeyOf(
  { inputs, dimensions, format, rest, cohere }: EmbeddingRequest,
  { workspaceId, modelId, providers, ownKey }: CacheScope,
): string {
  const about = ownKey ?? [
    inputs,
    sorted(rest),
    providers,
    ...(cohere === undefined ? [] : [sorted(cohere.fields)]),
  ];
  const text = JSON.stringify([
    modelId,
    dimensions ?? null,
    cohere?.formats ?? format,
    typeof about === "string",
    about,
  ]);
  return `${workspaceId} ${new Bun.CryptoHasher("sha256").update(text).digest("base64url")}`;
}

/** Members in an order that does not depend on how they were written. */
const sorted = (fields: Fields): [string, unknown][] =>
  Object.entries(fields).sort(([left], [right]) => (left < right ? -1 : 1));

/** What an entry costs beside its texts: key, object and place in the map. */
const entryBytes = 512;

interface Entry {
  answer: KeptAnswer;
  bytes: number;
  expiresMs: number;
}

/** JSON of vectors is ASCII, which takes a byte a character. */
const bytesOf = ({ tail, model, provider, upstreamModel }: KeptAnswer): number =>
  entryBytes + Buffer.byteLength(tail) + model.length + provider.length + upstreamModel.length;

/** Answers in memory, those that were asked for longest ago forgotten first. */
export class MemoryAnswerStore implements AnswerStore {
  private readonly entries = new Map<string, Entry>();
  private readonly clock: Clock;
  private readonly bytesMax: number;
  private held = 0;

  constructor({ clock, bytesMax }: { clock: Clock; bytesMax: number }) {
    this.clock = clock;
    this.bytesMax = bytesMax;
  }

  /** Bytes that are held, estimated. */
  get heldBytes(): number {
    return this.held;
  }

  async get(key: string): Promise<KeptAnswer | undefined> {
    const entry = this.entries.get(key);
    if (entry === undefined) return undefined;
    this.entries.delete(key);
    if (entry.expiresMs <= this.clock.monotonicMs()) {
      this.held -= entry.bytes;
      return undefined;
    }
    this.entries.set(key, entry);
    return entry.answer;
  }

  async set(key: string, answer: KeptAnswer, ttlSeconds: number): Promise<void> {
    this.drop(key);
    const bytes = bytesOf(answer);
    // One answer that fills the store would push out everything else.
    if (bytes > this.bytesMax / 4) return;
    this.entries.set(key, {
      answer,
      bytes,
      expiresMs: this.clock.monotonicMs() + ttlSeconds * 1_000,
    });
    this.held += bytes;
    for (const oldest of this.entries.keys()) {
      if (this.held <= this.bytesMax) break;
      this.drop(oldest);
    }
  }

  private drop(key: string): void {
    const entry = this.entries.get(key);
    if (entry === undefined) return;
    this.entries.delete(key);
    this.held -= entry.bytes;
  }
}

/** Some ten thousand vectors of 1,024 floats. */
const bytesMax = 64 * 1024 * 1024;

/** What providers did is the same for all who wait; what a key or its client may or did is not. */
const isShared = (error: unknown): boolean =>
  error instanceof GatewayError &&
  error.fault === "upstream" &&
  error.code !== "client_closed_request";

/** The cache of embeddings, in the memory of this process where no other store is named. */
export const openAnswerCache = (
  clock: Clock,
  store: AnswerStore = new MemoryAnswerStore({ clock, bytesMax }),
  turns?: AnswerTurns,
): AnswerCache => new AnswerCache(store, isShared, turns);

const head = (id: string): string => `{"id":${JSON.stringify(id)}`;

/**
 * What is kept of an answer: everything but its id, at no cost, since it is not billed a second
 * time.
 */
export function keptAnswerOf({ answer, candidate, metered, settled }: ServedWhole): KeptAnswer {
  const { model, route } = candidate;
  const text = answer.render({
    id: "",
    model: model.id,
    metered,
    chargedNano: 0n,
    free: showsNoCost({ settled, candidate }),
    fallback: undefined,
    metadataText: () => "{}",
  });
  return {
    tail: text.slice(head("").length),
    model: model.id,
    provider: route.provider.id,
    upstreamModel: route.upstreamModel,
  };
}

/** The body of a kept answer under another id. */
export const keptText = (id: string, tail: string): string => head(id) + tail;
