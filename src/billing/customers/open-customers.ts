import type { Kysely } from "kysely";
import { minuteMs, type Clock } from "../../platform/kernel/clock.ts";
import type { BlockingBudgets } from "../budgets/blocking-budgets.ts";
import type { Budget } from "../budgets/budget.ts";
import { eachSubject } from "../budgets/budget.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import { BalanceLinks } from "./balance-links.ts";
import { CustomerBook, newCustomer } from "./customer-book.ts";
import { CustomerEditor } from "./customer-editor.ts";
import { CustomerStore, type CustomerTables } from "./customer-store.ts";
import { planBudget, planPeriod, type Customer, type CustomerPlan } from "./customer.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

/** The operator's rule for customers. */
export interface CustomerSettings {
  /** The plan of customers without one of their own; undefined counts no others. */
  rule: CustomerPlan | undefined;
  /** The most customers of a workspace. */
  mostPerWorkspace: number;
}

/** Messages between gateways about customers that were changed. */
interface CustomerChannel {
  publish(name: string, message: string): void;
  on(name: string, listener: (message: string) => void): void;
}

/** Options of customers. */
export interface CustomersOptions {
  database: Kysely<CustomerTables>;
  clock: Clock;
  encryptionKey: Uint8Array;
  settings: CustomerSettings;
  ledger: LedgerPort;
  blocking: BlockingBudgets;
  /** Returns the workspaces, whose customers may have used something before they were written. */
  workspaceIds(): readonly string[];
  commits: { readonly pendingCount: number; flush(): Promise<void> };
  /** The channel to other gateways on the database; absent where there are none. */
  channel?: CustomerChannel | undefined;
  /** Called when customers could not be written or read yet; it is tried again. */
  onError(error: unknown): void;
}

/** The parts of customers. */
export interface Customers {
  store: CustomerStore;
  book: CustomerBook;
  editor: CustomerEditor;
  /** Signs and opens links to balances. */
  links: BalanceLinks;
  settings: CustomerSettings;
  /** Waits for the charges and the customers that are being written. */
  flush(): Promise<void>;
  /** Stops the work that goes on between requests. */
  stop(): Promise<void>;
}

const channelName = "customers";
/** Milliseconds between readings of what other gateways changed, beside their messages. */
const readMs = 5_000;
/** Milliseconds by which a reading looks back, since clocks differ and commits take time. */
const overlapMs = minuteMs;
/** Milliseconds that customers of first requests are collected for, and between attempts. */
const writeMs = 20;
const againMs = 1_000;
/** The most customers of one insert. */
const rowsMax = 500;

/** Opens customers, and puts their plans in force before the first request. */
export async function openCustomers(options: CustomersOptions): Promise<Customers> {
  const { database, clock, settings, ledger, blocking, channel, commits, onError } = options;
  const store = new CustomerStore(withTables(database));
  const book = new CustomerBook({ ...settings, nowMs: () => clock.nowMs() });
  const known = await store.loadAll();
  for (const customer of known) book.put(customer);
  for (const budget of budgetsOf(book, [...known, ...ruled(options)])) await ledger.watch(budget);
  const firstUses = new FirstUses(store, onError);
  book.onFirstUse = (customer) => firstUses.add(customer);
  blocking.customers = book;
  const flush = async (): Promise<void> => {
    if (commits.pendingCount > 0) await commits.flush();
    await firstUses.flush();
  };
  const changes = channel && new CustomerChanges({ store, book, clock, channel, onError });
  return {
    store,
    book,
    settings,
    links: new BalanceLinks(options.encryptionKey),
    editor: new CustomerEditor({
      store,
      book,
      ledger,
      clock,
      flush,
      usedOf: async ({ workspaceId, externalId }) => {
        await flush();
        const span = { fromDay: 0, toDay: Number.MAX_SAFE_INTEGER };
        const sums = await store.sums(workspaceId, { externalIds: [externalId], ...span });
        return sums.get(externalId)?.priceNano ?? 0n;
      },
      onChange: ({ id }) => changes?.publish(id),
    }),
    flush,
    stop: async () => {
      changes?.stop();
      await firstUses.flush().catch(onError);
    },
  };
}

/** Returns a customer of the rule for each workspace, so that the use of all of them is read. */
const ruled = ({ settings, workspaceIds }: CustomersOptions): Customer[] =>
  settings.rule === undefined
    ? []
    : workspaceIds().map((workspaceId) =>
        newCustomer({ workspaceId, externalId: eachSubject, nowMs: 0 }),
      );

/** Returns one budget for each period that customers of a workspace are counted in. */
function budgetsOf(book: CustomerBook, customers: readonly Customer[]): Budget[] {
  const found = new Map<string, Budget>();
  for (const customer of customers) {
    const plan = book.planOf(customer);
    const budget = plan && planBudget(customer, plan);
    if (plan === undefined || budget === undefined) continue;
    const name = `${customer.workspaceId} ${planPeriod(plan)}`;
    if (!found.has(name)) found.set(name, { ...budget, subject: eachSubject });
  }
  return [...found.values()];
}

/** Writes the customers that requests name for the first time, some together. */
class FirstUses {
  private waiting: Customer[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly store: CustomerStore,
    private readonly onError: (error: unknown) => void,
  ) {}

  add(customer: Customer): void {
    this.waiting.push(customer);
    this.timer ??= setTimeout(() => this.flush().catch(this.onError), writeMs);
  }

  /** Writes what is waiting. Rejects where the database refuses; then it is tried again. */
  flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.writing = this.writing.catch(() => undefined).then(() => this.write());
    return this.writing;
  }

  private async write(): Promise<void> {
    while (this.waiting.length > 0) {
      const rows = this.waiting.splice(0, rowsMax);
      try {
        await this.store.insertUnknown(rows);
      } catch (error) {
        this.waiting.unshift(...rows);
        this.timer ??= setTimeout(() => this.flush().catch(this.onError), againMs);
        this.timer.unref();
        throw error;
      }
    }
  }
}

/** Puts customers in force that other gateways changed: as they say so, and by reading them. */
class CustomerChanges {
  private readonly timer: ReturnType<typeof setInterval>;
  private readMs: number;

  constructor(
    private readonly parts: Required<Pick<CustomersOptions, "clock" | "onError">> & {
      store: CustomerStore;
      book: CustomerBook;
      channel: CustomerChannel;
    },
  ) {
    this.readMs = parts.clock.nowMs();
    parts.channel.on(channelName, () => this.read());
    this.timer = setInterval(() => this.read(), readMs);
    this.timer.unref();
  }

  publish(id: string): void {
    this.parts.channel.publish(channelName, id);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private read(): void {
    const { store, book, clock, onError } = this.parts;
    const sinceMs = this.readMs - overlapMs;
    this.readMs = clock.nowMs();
    store.changedSince(sinceMs).then((changed) => {
      for (const { customer, isRemoved } of changed) {
        if (isRemoved) book.remove(customer);
        else book.put(customer);
      }
    }, onError);
  }
}
