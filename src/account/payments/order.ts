import type { Month } from "../ledger/month.ts";
import type { Quote } from "./cents.ts";

/** How an order is paid: by somebody at the provider's checkout, or from a saved card. */
export type OrderKind = "checkout" | "automatic";

/** What became of an order; that it was paid is told by its receipt as well. */
export type OrderState = "open" | "paid" | "failed" | "expired";

/** Who pays, as it is printed on the invoice. */
export interface Buyer {
  /** Name of the workspace. */
  name: string;
  /** Who ordered; absent where that was a key. */
  email?: string;
}

/** A top-up as it was ordered: what is to be paid is settled here, and nothing that the provider says changes it. */
export interface Order extends Quote {
  /** `top_` id. */
  id: string;
  workspaceId: string;
  /** Whether real money is meant. */
  live: boolean;
  kind: OrderKind;
  state: OrderState;
  /** Why it failed; null unless it did. */
  failure: string | null;
  createdAtMs: number;
  /** Id of the user or key that ordered; `automatic` for what the gateway orders by itself. */
  createdBy: string;
  buyer: Buyer;
  /** ISO 4217 in lower case, as Stripe writes it. */
  currency: string;
  /** The provider's id of the workspace. */
  customerId: string;
  /** The saved card that an automatic order is charged to; null for others. */
  paymentMethodId: string | null;
  /** Null until the provider's checkout was opened; always for automatic orders. */
  sessionId: string | null;
  /** Null until it is known. */
  paymentIntentId: string | null;
  /** The UTC month that an automatic order counts in, and its number in it. */
  month: { name: Month; sequence: number } | null;
}

/** Id of the transfer that credits an order; the ledger has each transfer once. */
export const creditTransferId = (orderId: string): string => `txn_${orderId}`;
