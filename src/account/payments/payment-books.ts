import type { Clock } from "../../platform/lib/clock.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import type { Turns } from "../turns.ts";
import type { OrderStore } from "./order-store.ts";
import type { PaymentSettings } from "./payment-settings.ts";
import type { PaymentStore } from "./payment-store.ts";

/** What payments are read from and written with. */
export interface PaymentBooks {
  ledger: LedgerPort;
  orders: OrderStore;
  store: PaymentStore;
  settings: PaymentSettings;
  clock: Clock;
  /** What is written happens in the turn `books`, one after the other: documents have numbers without gaps. */
  turns: Turns;
}
