import { openAccount, type Account, type AccountReports } from "../open-account.ts";
import type { HashCost } from "../../identity/people/sign-in/password-hasher.ts";
import type { AppSettings } from "../settings-of.ts";
import type { AppTables } from "./build-storage.ts";
import { spanOf, sumOf } from "../../billing/budgets/budget-windows.ts";
import type { Budget } from "../../billing/budgets/budget.ts";
import { weightOfMarkup } from "../../billing/customers/customer.ts";
import type { CustomerSettings } from "../../billing/customers/open-customers.ts";
import { MeterEvents } from "../../billing/customers/meter-events.ts";
import { SpendStore } from "../../insights/usage/spend-store.ts";
import {
  hasSeveralGateways,
  shareChanges,
  shareKeyUsage,
  shareWork,
  type Shared,
} from "../open-shared.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { Payments } from "../../billing/payments/open-payments.ts";
import type { Insights } from "../../insights/open-insights.ts";
import type { PaymentTables } from "../../billing/payments/payment-tables.ts";

/** The most customers of a workspace, where the configuration names no number. */
const customersMax = 100_000;

/** Builds card payments; undefined, with nothing loaded, where no Stripe key is configured. */
export async function buildPayments(
  { payments: settings }: AppSettings,
  {
    account: { ledger, withdrawals, directory, referrals },
    storage,
    insights,
    clock,
    logger,
  }: {
    storage: Storage<PaymentTables>;
    account: Account;
    insights: Insights;
    clock: Clock;
    logger: Logger;
  },
): Promise<Payments | undefined> {
  if (settings?.stripe.secretKey === undefined) return undefined;
  const { openPayments } = await import("../../billing/payments/open-payments.ts");
  return openPayments({
    settings,
    clock,
    ledger,
    withdrawals,
    database: withTables(storage.database),
    commits: storage.commits,
    buyerOf(workspaceId) {
      const workspace = directory.workspace(workspaceId);
      return workspace === undefined || workspace.blocked ? undefined : { name: workspace.name };
    },
    onCredited: () => referrals?.soon(),
    onRefused: ({ id, type }, outcome) =>
      logger.error(
        { event: id, type, outcome },
        "an event of Stripe does not match its order; nothing was credited",
      ),
    onError: (error) =>
      logger.error({ err: error }, "background work of payments failed, trying again"),
    onReconciled: (ok) =>
      insights.jobs.ran("payment_reconciliation", ok, ok ? undefined : "The last run failed."),
  });
}

/** Builds the reports of what customers are billed, and starts them where there is a meter. */
export function buildMeterEvents(
  { customers: settings }: AppSettings,
  {
    storage,
    account: { customers },
    payments,
    insights,
    clock,
    logger,
    isLeader,
  }: {
    storage: Storage<AppTables>;
    account: Pick<Account, "customers">;
    payments: Payments | undefined;
    insights: Insights;
    clock: Clock;
    logger: Logger;
    isLeader: (() => boolean) | undefined;
  },
): MeterEvents {
  const stripe = payments?.stripe;
  const events = new MeterEvents({
    store: customers.store,
    book: customers.book,
    flush: () => customers.flush(),
    clock,
    isLeader,
    database: withTables(storage.database),
    eventName: settings?.stripeMeter,
    send: stripe && ((event) => stripe.reportUse(event)),
    onRun: (error) => {
      insights.jobs.ran("meter_events", error === undefined, error && "The last run failed.");
      if (error !== undefined) logger.error({ err: error }, "use could not be reported yet");
    },
  });
  events.start();
  return events;
}

/** Returns what logs failures of the account plane's background work. */
const reportsTo = (logger: Logger): AccountReports => ({
  onLedgerError: (error) =>
    logger.error({ err: error }, "shared ledger not updated yet, trying again"),
  onUseError: (error) =>
    logger.error({ err: error }, "last uses of keys not written yet, trying again"),
  onRunError: (error) =>
    logger.error({ err: error }, "a run could not be released yet, trying again"),
  onCustomerError: (error) =>
    logger.error({ err: error }, "customers could not be stored or read yet, trying again"),
  onCreditError: (error) =>
    logger.error({ err: error }, "monthly credits not settled yet, trying again"),
  onProviderKeyError: (error) =>
    logger.error({ err: error }, "state of a donated provider key not stored"),
  onSignInLog: (level, message) => logger[level]({ part: "sign-in" }, message),
});

const periods = { day: "daily", week: "weekly", month: "monthly" } as const;

/** Returns the rule for end customers in the form that plans have. */
function customerSettingsOf(settings: AppSettings["customers"]): CustomerSettings {
  const rule = settings?.rule;
  return {
    mostPerWorkspace: settings?.most ?? customersMax,
    rule: rule && {
      type: "free",
      period: periods[rule.per],
      allowanceNano: rule.limitNanoUsd,
      capNano: null,
      baseNano: 0n,
      weight: weightOfMarkup(rule.markup),
      weightsByModel: {},
    },
  };
}

/** Begins the sum of a budget in a time zone with what was spent in its period before. */
function beginSum(
  spend: SpendStore,
  { budget, nowMs }: { budget: Budget; nowMs: number },
): Promise<void> {
  const { scope, subject } = sumOf(budget, nowMs);
  return spend.beginSum(budget, {
    fromMs: spanOf(budget, nowMs).startMs,
    nowMs,
    sum: { scope, subject: subject ?? "" },
  });
}

/** Builds the account plane. It reads what was spent from the insights. */
export async function buildAccount(
  settings: AppSettings,
  {
    storage,
    clock,
    logger,
    shared,
    passwordCost,
  }: {
    storage: Storage<AppTables>;
    clock: Clock;
    logger: Logger;
    shared: Shared | undefined;
    passwordCost: HashCost | undefined;
  },
): Promise<Account> {
  const { database, commits } = storage;
  const spend = new SpendStore({ database: withTables(database), commits });
  // What a first start creates is created once, by the first gateway.
  const account = await storage.alone(() =>
    openAccount({
      settings,
      clock,
      customerSettings: customerSettingsOf(settings.customers),
      passwordCost,
      commits,
      database: withTables(database),
      spentBy: (query, reading) => spend.spent(query, reading),
      spentByEach: (query) => spend.spentByEach(query),
      beginSum: (budget) => beginSum(spend, { budget, nowMs: clock.nowMs() }),
      reports: reportsTo(logger),
      channel: hasSeveralGateways(settings) ? shared?.channel : undefined,
      shared: hasSeveralGateways(settings) ? shared : undefined,
      isLeader: shareWork(shared, settings).isLeader,
    }),
  );
  if (hasSeveralGateways(settings)) {
    shareChanges(shared, account, { database: withTables(database), clock, logger });
    shareKeyUsage(shared, account, { database: withTables(database), commits, clock, logger });
  }
  return account;
}
