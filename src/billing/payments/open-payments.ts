import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import type { Withdrawals } from "../credits/withdrawals.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import { AutomaticTopUps } from "./automatic-top-ups.ts";
import { AutomaticStore } from "./automatic-store.ts";
import { isLiveKey, type PaymentSettings } from "./cents.ts";
import { Checkouts } from "./checkouts.ts";
import { PaymentRounds } from "./payment-rounds.ts";
import { Reconciliation } from "./reconciliation.ts";
import { PaidOrders } from "./paid-orders.ts";
import { ReversalFollower } from "./reversal-follower.ts";
import type { Buyer } from "./orders.ts";
import { OrderStore } from "./order-store.ts";
import { PaymentEvents } from "./payment-events.ts";
import { PaymentStore, type PaymentBooks, type EventOutcome } from "./payment-store.ts";
import { StripeClient, type PaymentEvent } from "./stripe-client.ts";
import type { PaymentTables } from "./payment-tables.ts";

/** Options of payments. */
export interface PaymentOptions {
  settings: PaymentSettings;
  database: Kysely<PaymentTables>;
  commits: CommitQueue;
  clock: Clock;
  ledger: PaymentBooks["ledger"];
  withdrawals: Withdrawals;
  /**
   * Returns who pays for a workspace automatically; undefined for one that is deleted or blocked.
   */
  buyerOf(workspaceId: string): Buyer | undefined;
  /** Called when a payment was credited. */
  onCredited?(): void;
  /** Called for events that match no order: money may have been paid without credits. */
  onRefused(event: PaymentEvent, outcome: EventOutcome): void;
  /** Called for failures in the background; the work is tried again. */
  onError(error: unknown): void;
  /** Called when a reconciliation has ended. */
  onReconciled(ok: boolean): void;
}

/** Every part of payments. */
export interface Payments extends PaymentBooks {
  stripe: StripeClient;
  /** Whether the key is for real money. */
  live: boolean;
  checkouts: Checkouts;
  automatic: AutomaticTopUps;
  automaticStore: AutomaticStore;
  events: PaymentEvents;
  reconciliation: Reconciliation;
  follower: ReversalFollower;
  rounds: PaymentRounds;
}

/** Builds payments; undefined, with nothing loaded, where no Stripe key is configured. */
export function openPayments(options: PaymentOptions): Payments | undefined {
  const { settings, database, clock, ledger } = options;
  const { secretKey } = settings.stripe;
  if (secretKey === undefined) return undefined;
  const stripe = new StripeClient(secretKey, settings.stripe);
  const live = isLiveKey(secretKey);
  const books: PaymentBooks = {
    ledger,
    settings,
    clock,
    mutex: new KeyedMutex(),
    orders: new OrderStore(database),
    store: new PaymentStore(database),
  };
  const shared = { ...options, books, stripe, live };
  const follower = new ReversalFollower(shared);
  const paidOrders = new PaidOrders({ books, follower, onCredited: () => options.onCredited?.() });
  const mutex = new KeyedMutex();
  const automaticStore = new AutomaticStore(database);
  const automatic = new AutomaticTopUps({ ...shared, paidOrders, mutex, store: automaticStore });
  const events = new PaymentEvents({ ...shared, paidOrders, follower, automatic });
  const reconciliation = new Reconciliation({ ...shared, paidOrders, events });
  return {
    ...books,
    stripe,
    live,
    automaticStore,
    automatic,
    events,
    reconciliation,
    follower,
    checkouts: new Checkouts({ ...shared, mutex }),
    rounds: new PaymentRounds({ ...options, follower, automatic, reconciliation }),
  };
}
