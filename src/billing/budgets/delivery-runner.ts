import { hourMs, minuteMs, type Clock } from "../../platform/kernel/clock.ts";
import { newId } from "../../platform/kernel/ids.ts";
import { usdFromNano, usdSixDecimals } from "../../platform/kernel/money.ts";
import { isRunId } from "../../identity/keys/run.ts";
import type { Mailer } from "../../platform/notify/mailer.ts";
import type { DeliveryOutcome, WebhookSender } from "../../platform/notify/webhook-sender.ts";
import type { WebhookSecrets } from "../../platform/notify/webhook-secrets.ts";
import type { Alert, AlertStore, Channel, Delivery } from "./alert-store.ts";
import type { BudgetStore } from "./budget-store.ts";
import { spanOf } from "./budget-windows.ts";
import { basePeriodOf, type Budget } from "./budget.ts";

/** Waits after the first failure, the second and so on. After the last one a message has failed. */
const retryWaitsMs = [minuteMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 6 * hourMs] as const;

/**
 * Milliseconds for which a message is leased to one gateway. Where that gateway ended, another
 * sends it afterwards.
 */
const takenMs = 2 * minuteMs;

/** The most messages that are sent concurrently, so that a slow webhook delays only a few. */
const besideMax = 8;
/** The most messages of one run. */
const runMax = 400;

interface RunnerOptions {
  budgets: BudgetStore;
  alerts: AlertStore;
  webhooks: WebhookSender;
  secrets: WebhookSecrets;
  mailer: Mailer | undefined;
  clock: Clock;
  /** Returns whether an address still belongs to a user of the workspace. */
  isMember(workspaceId: string, email: string): Promise<boolean>;
}

/** Sends the messages of alerts, and retries those that failed. */
export class DeliveryRunner {
  constructor(private readonly options: RunnerOptions) {}

  /** Sends every message that is due. */
  async run(): Promise<void> {
    const due = await this.options.alerts.due(this.options.clock.nowMs(), runMax);
    const waiting = [...due];
    const work = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
        await this.deliver(next);
    };
    await Promise.all(Array.from({ length: Math.min(besideMax, due.length) }, work));
  }

  /**
   * Sends a test message to every recipient of a budget, and returns the outcome of each. There are
   * no retries.
   */
  sendTest(
    budget: Budget,
  ): Promise<{ channel: Channel; target: string; outcome: DeliveryOutcome }[]> {
    const { clock, webhooks, secrets } = this.options;
    const nowMs = clock.nowMs();
    const mails = budget.emails.map(async (target) => ({
      channel: "email" as const,
      target,
      outcome: await this.mailTo(target, budget.workspaceId, testMailOf(budget)),
    }));
    const { webhookUrl: url } = budget;
    if (url === null) return Promise.all(mails);
    const id = newId("dlv", nowMs);
    const hook = webhooks
      .send({
        id,
        url,
        secret: secrets.secretOf({ id: budget.id, version: budget.secretVersion }),
        event: testEventName,
        body: JSON.stringify({
          id,
          type: testEventName,
          created_at: moment(nowMs),
          workspace_id: budget.workspaceId,
          data: { budget_id: budget.id, name: budget.name },
        }),
      })
      .then((outcome) => ({ channel: "webhook" as const, target: url, outcome }));
    return Promise.all([...mails, hook]);
  }

  private async deliver(delivery: Delivery): Promise<void> {
    const { budgets, alerts, clock } = this.options;
    if (!(await alerts.take(delivery, clock.nowMs() + takenMs))) return;
    const [budget, alert] = await Promise.all([
      budgets.find(delivery.budgetId),
      alerts.find(delivery.alertId),
    ]);
    if (budget === undefined || alert === undefined) return;
    const isNamed = names(budget, delivery);
    const outcome = isNamed ? await this.send(delivery, { budget, alert }) : notNamed;
    const nowMs = clock.nowMs();
    const wait = isNamed ? retryWaitsMs[delivery.attempts] : undefined;
    await alerts.tried(delivery, {
      outcome,
      nowMs,
      nextAttemptMs: wait === undefined ? null : nowMs + wait,
    });
  }

  private async send(
    delivery: Delivery,
    about: { budget: Budget; alert: Alert },
  ): Promise<DeliveryOutcome> {
    if (delivery.channel === "email")
      return this.mailTo(
        delivery.target,
        about.budget.workspaceId,
        mailOf(about.budget, about.alert),
      );
    const { id, secretVersion: version } = about.budget;
    return this.options.webhooks.send({
      id: delivery.id,
      url: delivery.target,
      secret: this.options.secrets.secretOf({ id, version }),
      event: eventName,
      body: JSON.stringify(eventOf(delivery, about)),
    });
  }

  private async mailTo(
    to: string,
    workspaceId: string,
    mail: { subject: string; text: string },
  ): Promise<DeliveryOutcome> {
    const { mailer, isMember } = this.options;
    if (mailer === undefined)
      return { ok: false, status: null, error: "This installation sends no mail." };
    if (!(await isMember(workspaceId, to))) {
      return {
        ok: false,
        status: null,
        error: "The address belongs to no member of the workspace any more.",
      };
    }
    try {
      await mailer.send({ to, ...mail });
      return { ok: true, status: null };
    } catch {
      return { ok: false, status: null, error: "The mail server did not take the mail." };
    }
  }
}

/** Returns whether a message's recipient is still one of its budget. */
const names = ({ emails, webhookUrl }: Budget, { channel, target }: Delivery): boolean =>
  channel === "email" ? emails.includes(target) : webhookUrl === target;

const notNamed: DeliveryOutcome = {
  ok: false,
  status: null,
  error: "The budget names this recipient no more.",
};

const eventName = "budget.threshold_reached";
const testEventName = "budget.test";

const testMailOf = ({ name }: Budget): { subject: string; text: string } => ({
  subject: `Budget "${name}": a test`,
  text: `This is a test of the alerts of the budget "${name}". Nothing was reached; mails like this one come when it is.\n`,
});

const usd = (nano: bigint): string => `${usdSixDecimals(nano)} USD`;
const moment = (atMs: number): string => new Date(atMs).toISOString();
const subjectOf = ({ scope, subject }: Budget): string => {
  if (scope === "workspace") return "the workspace";
  return `the ${scope === "key" && isRunId(subject ?? "") ? "run" : scope} ${subject}`;
};

function mailOf(
  budget: Budget,
  { threshold, spentNano, limitNano, periodStartMs }: Alert,
): { subject: string; text: string } {
  const { endMs } = spanOf(budget, periodStartMs);
  const period =
    budget.period === "total" ? "all time" : `${moment(periodStartMs)} to ${moment(endMs)}`;
  return {
    subject: `Budget "${budget.name}": ${threshold} % is spent`,
    text:
      `The budget "${budget.name}" for ${subjectOf(budget)} has reached ${threshold} % of its limit.\n\n` +
      `Spent: ${usd(spentNano)} of ${usd(limitNano)}\nPeriod: ${period}\n\n` +
      (budget.action === "block"
        ? "Requests beyond the limit are refused.\n"
        : "This budget refuses nothing. One with the action block does.\n"),
  };
}

function eventOf({ id }: Delivery, { budget, alert }: { budget: Budget; alert: Alert }) {
  const { threshold, spentNano, limitNano, periodStartMs, atMs } = alert;
  return {
    id,
    type: eventName,
    created_at: moment(atMs),
    workspace_id: budget.workspaceId,
    data: {
      budget_id: budget.id,
      name: budget.name,
      scope: budget.scope,
      subject: budget.subject,
      period: basePeriodOf(budget.period).period,
      ...(budget.timeZone !== null && { time_zone: budget.timeZone }),
      period_start: moment(periodStartMs),
      period_end: moment(spanOf(budget, periodStartMs).endMs),
      threshold,
      limit: usdFromNano(limitNano),
      spent: usdFromNano(spentNano),
    },
  };
}
