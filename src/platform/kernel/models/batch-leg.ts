/** A request as a provider's own batch is sent it. */
export interface GatheredRequest {
  /** The slug of the provider, and the catalog's and the wire name of the model. */
  provider: string;
  model: string;
  upstreamModel: string;
  /** The id of the workspace's own provider key; null for the platform's credential. */
  account: string | null;
  /** The wire format of the body. */
  dialect: string;
  /** The body as JSON text. */
  text: string;
  headers: Readonly<Record<string, string>>;
  /** What the request may cost at most, in nano-USD. */
  ceilingNano: bigint;
}

/** A request that is prepared for a provider's batch: it holds and charges nothing. */
export interface GatheringLeg {
  kind: "gather";
  /** What the request may cost at most, in nano-USD; set once it is planned. */
  ceilingNano: bigint;
  /** Receives the request, which ends there. */
  take(request: GatheredRequest): void;
  /** Receives the reason why the request cannot travel in a provider's batch. */
  refuse(reason: string): void;
}

/** A request whose answer has come back in a provider's batch: it is read and charged. */
export interface ReturningLeg {
  kind: "return";
  provider: string;
  model: string;
  upstreamModel: string;
  /** The id of the workspace's own provider key; null for the platform's credential. */
  account: string | null;
  /** The answer as the provider would have sent it by itself. */
  status: number;
  text: string;
  /** What was held for the request, in nano-USD. */
  ceilingNano: bigint;
  /** Runs `take`, which takes the hold of the request, out of what is held for its batch. */
  outOfHold<Result>(take: () => Result): Result;
}

/**
 * How a request travels through a provider's own batch in place of a connection of its own: it is
 * gathered first, and answered when the batch has ended, hours later.
 */
export type BatchLeg = GatheringLeg | ReturningLeg;
