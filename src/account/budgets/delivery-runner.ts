import { hourMs, minuteMs, type Clock } from "../../platform/lib/clock.ts";
import { usdFromNano, usdSixDecimals } from "../../platform/lib/money.ts";
import type { Mailer } from "../notify/mailer.ts";
import type { WebhookSecrets } from "../notify/webhook-secret.ts";
import type { DeliveryOutcome, WebhookSender } from "../notify/webhook-sender.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { Alert, AlertStore, Channel, Delivery } from "./alert-store.ts";
import { periodAt, type Budget } from "./budget.ts";
import type { BudgetStore } from "./budget-store.ts";

/** Waits after the first failure, the second and so on; after the last a message has failed. */
export const retryWaitsMs = [
  minuteMs,
  5 * minuteMs,
  30 * minuteMs,
  2 * hourMs,
  6 * hourMs,
] as const;

/** So long a message is one gateway's alone; where that one ended meanwhile, another takes it afterwards. */
const takenMs = 2 * minuteMs;

/** Messages that are sent side by side; a slow webhook holds up these alone. */
const besideMax = 8;
/** Messages of one run. */
const runMax = 400;

interface RunnerOptions {
  budgets: BudgetStore;
  alerts: AlertStore;
  webhooks: WebhookSender;
  secrets: WebhookSecrets;
  mailer: Mailer | undefined;
  clock: Clock;
  /** Whether an address still belongs to somebody in the workspace. */
  isMember(workspaceId: string, email: string): Promise<boolean>;
}

/** Sends what alerts have to say, and tries again later what did not arrive. */
export class DeliveryRunner {
  private readonly options: RunnerOptions;

  constructor(options: RunnerOptions) {
    this.options = options;
  }

  /** Sends every message whose turn has come. */
  async run(): Promise<void> {
    const due = await this.options.alerts.due(this.options.clock.nowMs(), runMax);
    const waiting = [...due];
    const work = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
        await this.deliver(next);
    };
    await Promise.all(Array.from({ length: Math.min(besideMax, due.length) }, work));
  }

  /** Sends every receiver of a budget a message that says it is a test, and tells what became of each. Nothing is tried again. */
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
    const outcome = await this.send(delivery, { budget, alert });
    const nowMs = clock.nowMs();
    const wait = retryWaitsMs[delivery.attempts];
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
        error: "The address belongs to nobody in the workspace any more.",
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

const eventName = "budget.threshold_reached";
const testEventName = "budget.test";

const testMailOf = ({ name }: Budget): { subject: string; text: string } => ({
  subject: `Budget "${name}": a test`,
  text: `This is a test of the alerts of the budget "${name}". Nothing was reached; mails like this one come when it is.\n`,
});

const usd = (nano: bigint): string => `${usdSixDecimals(nano)} USD`;
const moment = (atMs: number): string => new Date(atMs).toISOString();
const subjectOf = ({ scope, subject }: Budget): string =>
  scope === "workspace" ? "the workspace" : `the ${scope} ${subject}`;

function mailOf(
  budget: Budget,
  { threshold, spentNano, limitNano, periodStartMs }: Alert,
): { subject: string; text: string } {
  const { endMs } = periodAt(budget.period, periodStartMs);
  return {
    subject: `Budget "${budget.name}": ${threshold} % is spent`,
    text:
      `The budget "${budget.name}" for ${subjectOf(budget)} has reached ${threshold} % of its limit.\n\n` +
      `Spent: ${usd(spentNano)} of ${usd(limitNano)}\nPeriod: ${moment(periodStartMs)} to ${moment(endMs)}\n\n` +
      "A budget refuses nothing. Limits of keys do.\n",
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
      period: budget.period,
      period_start: moment(periodStartMs),
      period_end: moment(periodAt(budget.period, periodStartMs).endMs),
      threshold,
      limit: usdFromNano(limitNano),
      spent: usdFromNano(spentNano),
    },
  };
}
