import type { Quote } from "./cents.ts";

/** Why money of a payment goes back to its payer. */
export type ClaimKind = "refund" | "dispute";

/**
 * What a claim is: it takes the money (`standing`, or `lost` once a dispute is decided), or it does not (`dropped`:
 * a refund that failed, a dispute that was won). A claim is the strongest that was ever told of it, in any order.
 */
export type ClaimState = "standing" | "lost" | "dropped";

/** A refund or a dispute of a payment, in one of the states that it has had. */
export interface Claim {
  /** The provider's id of it. */
  id: string;
  kind: ClaimKind;
  state: ClaimState;
  paymentIntentId: string;
  amountCents: number;
}

const standing = (...statuses: string[]): [string, ClaimState][] =>
  statuses.map((status) => [status, "standing"]);
const dropped = (...statuses: string[]): [string, ClaimState][] =>
  statuses.map((status) => [status, "dropped"]);

/** Statuses that move money: docs.stripe.com/api/refunds/object and docs.stripe.com/api/disputes/object. Inquiries (`warning_*`) do not. */
const states: Readonly<Record<ClaimKind, ReadonlyMap<string, ClaimState>>> = {
  refund: new Map([
    ...standing("pending", "requires_action", "succeeded"),
    ...dropped("failed", "canceled"),
  ]),
  dispute: new Map([
    ...standing("needs_response", "under_review", "appeal_needs_response", "appeal_under_review"),
    ["lost", "lost"],
    ...dropped("won", "prevented", "charge_refunded"),
  ]),
};

/** The state that a status means; undefined for one that moves no money. */
export const claimStateOf = (kind: ClaimKind, status: string): ClaimState | undefined =>
  states[kind].get(status);

/** A claim with everything that was told of it. */
export interface KnownClaim {
  id: string;
  kind: ClaimKind;
  amountCents: number;
  states: readonly ClaimState[];
}

/** Whether a claim takes money. */
export const takesMoney = ({ states: told }: Pick<KnownClaim, "states">): boolean =>
  !told.includes("dropped");

/** What of a charge was claimed back; never more than the charge, although refunds and disputes of it may add up to more. */
export function claimedCents(
  claims: readonly KnownClaim[],
  { chargeCents }: Pick<Quote, "chargeCents">,
): number {
  const sum = claims.filter(takesMoney).reduce((cents, { amountCents }) => cents + amountCents, 0);
  return Math.min(sum, chargeCents);
}

/** The credits among so many cents of a charge, the rest being fee: in proportion, half a cent counting as a whole one. */
export const creditPartOf = (
  cents: number,
  { creditCents, chargeCents }: Pick<Quote, "creditCents" | "chargeCents">,
): number =>
  Number(
    (2n * BigInt(cents) * BigInt(creditCents) + BigInt(chargeCents)) / (2n * BigInt(chargeCents)),
  );
