import type { ConfiguredPayments } from "../../platform/config/payments-schema.ts";

/** What the operator settled about card payments. */
export type PaymentSettings = ConfiguredPayments;

/** What is added to a top-up for its processing. */
export type FeeRule = PaymentSettings["fee"];

/** Who sells the credits, as it is printed on invoices. */
export type Seller = NonNullable<PaymentSettings["seller"]>;

/** Whether a key moves real money; Stripe writes it into the key's name. */
export const isLiveKey = (secretKey: string): boolean => /^(sk|rk)_live_/.test(secretKey);
