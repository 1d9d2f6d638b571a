import type { Account } from "../open-account.ts";
import type { Payments } from "../../billing/payments/open-payments.ts";
import type { PaymentTables } from "../../billing/payments/payment-store.ts";
import type { AppSettings } from "../app-settings.ts";
import type { Insights } from "../../insights/open-insights.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";

/** Card payments; undefined, with nothing loaded, where no key for Stripe is configured. */
export async function buildPayments(
  { payments: settings }: AppSettings,
  parts: {
    storage: Storage<PaymentTables>;
    account: Account;
    insights: Insights;
    clock: Clock;
    logger: Logger;
  },
): Promise<Payments | undefined> {
  if (settings?.stripe.secretKey === undefined) return undefined;
  const { openPayments } = await import("../../billing/payments/open-payments.ts");
  const {
    account: { ledger, withdrawals, directory, referrals },
    storage,
    insights,
    logger,
  } = parts;
  return openPayments({
    ...parts,
    settings,
    ledger,
    withdrawals,
    database: storage.database.withTables(),
    commits: storage.commits,
    buyerOf(workspaceId) {
      const workspace = directory.workspace(workspaceId);
      return workspace === undefined || workspace.blocked ? undefined : { name: workspace.name };
    },
    onCredited: () => referrals?.soon(),
    onRefused: ({ id, type }, outcome) =>
      logger.error(
        { event: id, type, outcome },
        "what Stripe says does not fit what was ordered; nothing was credited",
      ),
    onError: (error) =>
      logger.error({ err: error }, "background work of payments failed, trying again"),
    onReconciled: (ok) =>
      insights.jobs.ran("payment_reconciliation", ok, ok ? undefined : "The last run failed."),
  });
}
