import type { Kysely } from "kysely";
import type { Clock } from "../../platform/lib/clock.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import type { Withdrawals } from "../ledger/withdrawals.ts";
import { Turns } from "../turns.ts";
import { AutomaticStore } from "./automatic-store.ts";
import { AutomaticTopUps } from "./automatic-top-ups.ts";
import { Checkouts } from "./checkouts.ts";
import { ClaimFollower } from "./claim-follower.ts";
import type { Buyer } from "./order.ts";
import { OrderStore } from "./order-store.ts";
import { PaidOrders } from "./paid-orders.ts";
import type { PaymentBooks } from "./payment-books.ts";
import type { EventOutcome, PaymentEvent } from "./payment-event.ts";
import { PaymentEvents } from "./payment-events.ts";
import { isLiveKey, type PaymentSettings } from "./payment-settings.ts";
import { PaymentRounds } from "./payment-rounds.ts";
import { PaymentStore } from "./payment-store.ts";
import type { PaymentTables } from "./payment-tables.ts";
import { Reconciliation } from "./reconciliation.ts";

/** What payments are built from. */
export interface PaymentOptions {
  settings: PaymentSettings;
  database: Kysely<PaymentTables>;
  commits: CommitQueue;
  clock: Clock;
  ledger: PaymentBooks["ledger"];
  withdrawals: Withdrawals;
  /** Who pays for a workspace by itself; undefined for one that is gone or shut out. */
  buyerOf(workspaceId: string): Buyer | undefined;
  /** Told when somebody's credits were paid. */
  onCredited?(): void;
  /** Told of events that do not fit what was ordered: somebody may have paid and has no credits. */
  onRefused(event: PaymentEvent, outcome: EventOutcome): void;
  /** Told what failed beside any request; it is tried again. */
  onError(error: unknown): void;
  /** Told when a run of the reconciliation has ended. */
  onReconciled(ok: boolean): void;
}

/** Every part of payments. */
export type Payments = NonNullable<Awaited<ReturnType<typeof openPayments>>>;

/** Builds them; undefined, with nothing loaded, where no key for Stripe is configured. */
export async function openPayments(options: PaymentOptions) {
  const { settings, database, clock, ledger } = options;
  const { secretKey } = settings.stripe;
  if (secretKey === undefined) return undefined;
  const stripe = new (await import("./stripe-client.ts")).StripeClient(secretKey, settings.stripe);
  const live = isLiveKey(secretKey);
  const books: PaymentBooks = {
    ledger,
    settings,
    clock,
    turns: new Turns(),
    orders: new OrderStore(database),
    store: new PaymentStore(database),
  };
  const shared = { ...options, books, stripe, live };
  const follower = new ClaimFollower(shared);
  const paidOrders = new PaidOrders({ books, follower, onCredited: () => options.onCredited?.() });
  const turns = new Turns();
  const automaticStore = new AutomaticStore(database);
  const automatic = new AutomaticTopUps({ ...shared, paidOrders, turns, store: automaticStore });
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
    checkouts: new Checkouts({ ...shared, turns }),
    rounds: new PaymentRounds({ ...options, follower, automatic, reconciliation }),
  };
}
