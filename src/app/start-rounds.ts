import { KeyProber, type ProbeKey } from "../byok/key-prober.ts";
import type { LedgerPort } from "../billing/ledger/ledger-port.ts";
import type { Account } from "./open-account.ts";
import type { Dependencies } from "../endpoints/dependencies.ts";
import { Retention } from "../insights/retention.ts";
import { LogBudget } from "../insights/log-budget.ts";
import type { Insights } from "../insights/open-insights.ts";
import type { AppSettings } from "./settings-of.ts";
import type { SharedWork } from "./open-shared.ts";
import { hourMs, type Clock } from "../platform/kernel/clock.ts";
import type { Logger } from "../platform/telemetry/logger.ts";

/** Milliseconds between searches for jobs whose gateway died. */
const takeUpEveryMs = 2_000;

/** Starts to resume jobs that a dead gateway left; returns a function that stops it. */
function takeUpWhatIsLeft(
  { leases }: SharedWork,
  { takeUp, logger }: { takeUp: readonly (() => Promise<void>)[]; logger: Logger },
): () => void {
  if (leases === undefined) return () => undefined;
  const look = (): void => {
    Promise.all(takeUp.map((each) => each())).catch((error: unknown) =>
      logger.warn({ err: error }, "jobs of ended gateways could not be resumed yet"),
    );
  };
  const timer = setInterval(look, takeUpEveryMs);
  return () => clearInterval(timer);
}

/** Starts to check the spending of budgets. */
function startBudgets(
  { budgets }: Account,
  { insights, logger }: { insights: Insights; logger: Logger },
): void {
  budgets.watch.start((error) => {
    insights.jobs.ran(
      "budget_alerts",
      error === undefined,
      error === undefined ? undefined : "The last run failed.",
    );
    if (error !== undefined) logger.error({ err: error }, "budgets could not be checked");
  });
}

/** Starts to probe donated provider keys that were refused. */
export function startKeyProber(
  account: Account,
  probe: ProbeKey,
  { clock, logger, isLeader }: { clock: Clock; logger: Logger; isLeader: SharedWork["isLeader"] },
): KeyProber {
  const prober = new KeyProber({
    directory: account.providerKeyDirectory,
    keys: account.providerKeys,
    probe,
    clock,
    isLeader,
    onError: (error) => logger.error({ err: error }, "a donated provider key could not be probed"),
  });
  prober.start();
  return prober;
}

type RecordSettings = Pick<AppSettings, "generationDays" | "logBudgetBytes">;

/**
 * Starts to delete generation records that are past their retention, and the oldest ones that
 * exceed the size budget.
 */
function startRetention(
  { generationDays, logBudgetBytes }: RecordSettings,
  parts: {
    insights: Insights;
    clock: Clock;
    ledger: LedgerPort;
    logger: Logger;
    isLeader: SharedWork["isLeader"];
  },
): Retention {
  const { insights } = parts;
  const retention = new Retention({
    jobs: insights.jobs,
    archive: insights.archive,
    months: insights.months,
    usage: insights.counters,
    contents: insights.archive === undefined ? insights.contents : undefined,
    generations: insights.generations,
    clock: parts.clock,
    keepDays: generationDays,
    isLeader: parts.isLeader,
    budget: new LogBudget({ sizes: insights.sizes, budgetBytes: logBudgetBytes }),
    workspaceIds: () => parts.ledger.book.workspaceIds(),
    onOverBudget: ({ rows, beforeMs }) =>
      parts.logger.warn(
        { records: rows, before: new Date(beforeMs).toISOString(), budget_bytes: logBudgetBytes },
        "generation records take more than retention.log_budget_gb; the oldest are deleted, from now on every hour",
      ),
    onError: (error) =>
      parts.logger.error({ err: error }, "old generation records could not be deleted"),
    onMonthsHeldUp: (error) =>
      parts.logger.warn(
        { err: error },
        "monthly partitions of generation records could not be created or dropped yet",
      ),
  });
  retention.start();
  return retention;
}

/**
 * Starts to close each month of the ledger once it is older than the last full one. Only the
 * leading gateway does. Returns a function that stops it, after the batch in progress.
 */
function startClosing(
  { closedMonths }: Pick<Account, "closedMonths">,
  {
    insights,
    clock,
    isLeader,
    logger,
  }: { insights: Pick<Insights, "jobs">; clock: Clock; logger: Pick<Logger, "error"> } & Pick<
    SharedWork,
    "isLeader"
  >,
): () => Promise<void> {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    if (await closedMonths.mayBegin(clock.nowMs()))
      await closedMonths.closeDue(clock.nowMs(), stopping.signal);
  };
  const onError = (error: unknown): void =>
    logger.error({ err: error }, "months of the ledger could not be closed");
  const timer = setInterval(() => {
    if (isLeader?.() === false) return;
    running ??= insights.jobs
      .run("ledger_closing", close, onError)
      .finally(() => (running = undefined));
  }, hourMs);
  return async () => {
    clearInterval(timer);
    stopping.abort();
    await running;
  };
}

/** Returns holds that no request will ever settle, and logs them: each is a bug of the gateway. */
function expireHolds(
  ledger: LedgerPort,
  { insights, logger }: { insights: Insights; logger: Logger },
): void {
  for (const id of ledger.expire())
    logger.error({ hold: id }, "a hold was never settled; its request lost track of it");
  insights.jobs.ran("hold_expiry", true);
}

/** Starts to delete codes, tokens and clients that have ended. Only the leading gateway does. */
export function forgetConsent(
  {
    consent,
    isLeader,
    insights,
    logger,
  }: Pick<Dependencies, "consent"> &
    Pick<SharedWork, "isLeader"> & {
      insights: Pick<Insights, "jobs">;
      logger: Pick<Logger, "error">;
    },
  everyMs = hourMs,
): ReturnType<typeof setInterval> {
  const onError = (error: unknown): void =>
    logger.error({ err: error }, "expired codes and tokens could not be deleted");
  return setInterval(() => {
    if (isLeader?.() !== false)
      void insights.jobs.run("consent_retention", () => consent.removeEnded(), onError);
  }, everyMs);
}

/** The parts that periodic jobs work on. */
type RoundParts = Pick<
  Dependencies,
  "payments" | "documents" | "background" | "consent" | "priceHistory"
> & {
  work: SharedWork;
  insights: Insights;
  clock: Clock;
  settings: RecordSettings;
  logger: Logger;
};

/** Starts all periodic jobs; returns a function that stops them. */
export function startRounds(
  account: Account,
  { settings, work, insights, payments, priceHistory, clock, logger, ...parts }: RoundParts,
): () => Promise<void> {
  const { isLeader } = work;
  insights.start();
  payments?.rounds.start();
  priceHistory.start((error) =>
    logger.error({ err: error }, "changes of prices could not be written"),
  );
  const { ledger } = account;
  const retention = startRetention(settings, { insights, ledger, clock, logger, isLeader });
  const stopClosing = startClosing(account, { insights, clock, logger, isLeader });
  const takeUp = [() => parts.background.start(), () => parts.documents.takeUp()];
  const stopTakingUp = takeUpWhatIsLeft(work, { takeUp, logger });
  startBudgets(account, { insights, logger });
  const forgetting = setInterval(() => {
    account.idempotentAnswers
      .forgetOld()
      .catch((error: unknown) =>
        logger.error({ err: error }, "old idempotency keys could not be deleted"),
      );
  }, hourMs);
  const forgettingConsent = forgetConsent({ consent: parts.consent, insights, logger, isLeader });
  const expiry = setInterval(() => expireHolds(ledger, { insights, logger }), 60_000);
  return async () => {
    clearInterval(expiry);
    clearInterval(forgetting);
    clearInterval(forgettingConsent);
    stopTakingUp();
    await Promise.all([payments?.rounds.stop(), stopClosing()]);
    await Promise.all([account.budgets.watch.stop(), retention.stop(), priceHistory.stop()]);
  };
}
