/** What became of a request that the payment provider did not grant. */
export type PaymentErrorKind =
  /** The card's bank said no, or wants its owner to be there. */
  | "declined"
  /** The provider does not do it, and nothing was done. */
  | "refused"
  /** Nobody knows whether it was done, or it may be tried again. */
  | "unknown";

/** A request that the payment provider did not grant; `message` is its reason, such as `card_declined: insufficient_funds`. */
export class PaymentError extends Error {
  override name = "PaymentError";
  readonly kind: PaymentErrorKind;
  /** Under which the provider finds the request again. */
  readonly requestId: string | undefined;

  constructor(kind: PaymentErrorKind, reason: string, requestId?: string) {
    super(reason);
    this.kind = kind;
    this.requestId = requestId;
  }
}
