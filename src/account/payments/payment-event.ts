/** Something that the payment provider says has happened. */
export interface PaymentEvent {
  /** `evt_` id; the same event may come any number of times. */
  id: string;
  type: string;
  createdAtMs: number;
  live: boolean;
  /** Set for what happened in an account that is connected to ours, which is none of our business. */
  connectedAccount: string | undefined;
  object: unknown;
}

/** What became of an event; whatever begins with `refused` is written down and changes nothing. */
export type EventOutcome =
  /** The order's credits count from now on. */
  | "credited"
  /** It is noted, and balances follow where they have to. */
  | "noted"
  /** It said nothing that was not known. */
  | "already"
  /** It is about nothing of ours. */
  | "ignored"
  | "refused_mode"
  | "refused_shape"
  | "refused_session"
  | "refused_amount"
  | "refused_currency"
  | "refused_customer"
  /** The order was paid by another payment before. */
  | "refused_second_payment";
