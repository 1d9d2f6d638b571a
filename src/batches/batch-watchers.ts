import type { Kysely } from "kysely";
import { brand } from "../platform/kernel/brand.ts";
import { type Clock, hourMs, minuteMs } from "../platform/kernel/clock.ts";
import { badField, GatewayError } from "../platform/kernel/errors.ts";
import { newId } from "../platform/kernel/ids.ts";
import { countText } from "../platform/kernel/count-text.ts";
import { usdText } from "../platform/kernel/money.ts";
import type { Mailer } from "../platform/notify/mailer.ts";
import { UnsafeTargetError } from "../platform/notify/public-address.ts";
import type { DeliveryOutcome, WebhookSender } from "../platform/notify/webhook-sender.ts";
import type { WebhookSecrets } from "../platform/notify/webhook-secrets.ts";
import { openStatuses, type Batch, type BatchTables } from "./batch.ts";
import type { BatchStore } from "./batch-store.ts";

/** Who is to be notified of the end and of pauses of a batch. */
export interface BatchRecipients {
  emails: readonly string[];
  webhookUrl: string | null;
}

/** The dependencies of notices about batches. */
export interface WatcherParts {
  database: Kysely<BatchTables>;
  batches: BatchStore;
  clock: Clock;
  webhooks: WebhookSender;
  secrets: WebhookSecrets;
  mailer: Mailer | undefined;
  /** Returns the addresses of the people in a workspace. */
  emailsOf(workspaceId: string): Promise<readonly string[]>;
}

type Watcher = BatchTables["batch_watchers"];

/** Waits after the first failure, the second and so on; after the last one a notice is given up. */
const retryWaitsMs = [minuteMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 6 * hourMs] as const;

/** How long a notice is leased to the gateway that sends it. */
const leasedMs = 2 * minuteMs;

/** Notices that are sent at once. */
const noticesAtOnce = 50;

/** Notifies people and webhooks of the end of batches, and of their pauses, once each. */
export class BatchWatchers {
  constructor(private readonly parts: WatcherParts) {}

  /** Throws `GatewayError` unless mail goes to people of the workspace, and webhooks to the public internet. */
  async assertReachable(
    workspaceId: string,
    { emails, webhookUrl }: BatchRecipients,
  ): Promise<void> {
    const { mailer, emailsOf, webhooks } = this.parts;
    if (emails.length > 0 && mailer === undefined)
      throw new GatewayError(
        "not_configured",
        "notify.emails: this installation sends no mail. Use a webhook.",
        { param: "notify.emails" },
      );
    const known = emails.length === 0 ? [] : await emailsOf(workspaceId);
    if (!emails.every((email) => known.includes(email)))
      throw badField("notify.emails", "must be addresses of people in this workspace");
    if (webhookUrl === null) return;
    await webhooks.check(webhookUrl).catch((error: unknown) => {
      throw error instanceof UnsafeTargetError
        ? badField("notify.webhook_url", error.message)
        : error;
    });
  }

  /**
   * Stores who is notified, as part of a transaction where one is named. Returns the secret that
   * signs the webhook; null where there is none.
   */
  async watch(
    { id: batchId, workspaceId }: Batch,
    { emails, webhookUrl }: BatchRecipients,
    database: Kysely<BatchTables> = this.parts.database,
  ): Promise<string | null> {
    const targets = [
      ...emails.map((target) => ({ channel: "email", target })),
      ...(webhookUrl === null ? [] : [{ channel: "webhook", target: webhookUrl }]),
    ];
    if (targets.length === 0) return null;
    await database
      .insertInto("batch_watchers")
      .values(
        targets.map((target) => ({
          ...target,
          id: newId("dlv", this.parts.clock.nowMs()),
          batch_id: batchId,
          workspace_id: workspaceId,
          pause_noticed: 0,
          attempts: 0,
          next_attempt_ms: 0,
        })),
      )
      .execute();
    return webhookUrl === null ? null : this.secretOf(batchId);
  }

  /** Sends the notices that are due. */
  async sendNotices(): Promise<void> {
    const due = await this.parts.database
      .selectFrom("batch_watchers")
      .innerJoin("batches", "batches.id", "batch_watchers.batch_id")
      .selectAll("batch_watchers")
      .where("next_attempt_ms", "<=", this.parts.clock.nowMs())
      .where((is) =>
        is.or([
          is("batches.status", "not in", [...openStatuses]),
          is.and([is("batches.pause_note", "is not", null), is("pause_noticed", "=", 0)]),
        ]),
      )
      .limit(noticesAtOnce)
      .execute();
    await Promise.all(due.map((watcher) => this.sendOne(watcher)));
  }

  private async sendOne(watcher: Watcher): Promise<void> {
    const { database, batches, clock } = this.parts;
    const { numUpdatedRows } = await database
      .updateTable("batch_watchers")
      .set({ next_attempt_ms: clock.nowMs() + leasedMs })
      .where("id", "=", watcher.id)
      .where("next_attempt_ms", "=", watcher.next_attempt_ms)
      .executeTakeFirstOrThrow();
    const batch = numUpdatedRows > 0n ? await batches.get(watcher.batch_id) : undefined;
    if (batch === undefined) return;
    const hasEnded = !openStatuses.some((status) => status === batch.status);
    const outcome = await this.send(watcher, batch, hasEnded ? batch.status : "paused");
    const waitMs = outcome.ok ? undefined : retryWaitsMs[watcher.attempts];
    if (waitMs !== undefined)
      await this.change(watcher.id, {
        attempts: watcher.attempts + 1,
        next_attempt_ms: clock.nowMs() + waitMs,
      });
    else if (hasEnded)
      await database.deleteFrom("batch_watchers").where("id", "=", watcher.id).execute();
    else await this.change(watcher.id, { attempts: 0, next_attempt_ms: 0, pause_noticed: 1 });
  }

  private async change(id: string, change: Partial<Watcher>): Promise<void> {
    await this.parts.database
      .updateTable("batch_watchers")
      .set(change)
      .where("id", "=", id)
      .execute();
  }

  private async send(
    { id, channel, target }: Watcher,
    batch: Batch,
    what: string,
  ): Promise<DeliveryOutcome> {
    const event = `batch.${what}`;
    if (channel === "email") return this.mail(target, batch, what);
    const { webhooks, clock } = this.parts;
    const deliveryId = what === "paused" ? `${id}p` : id;
    return webhooks.send({
      id: deliveryId,
      url: target,
      secret: this.secretOf(batch.id),
      event,
      body: JSON.stringify({
        id: deliveryId,
        type: event,
        created_at: new Date(clock.nowMs()).toISOString(),
        workspace_id: batch.workspaceId,
        data: {
          batch_id: batch.form === "anthropic" ? `msg${batch.id}` : batch.id,
          status: batch.status,
          request_counts: { total: batch.total, completed: batch.completed, failed: batch.failed },
          cost_usd: usdText(BigInt(batch.costNano)),
          note: batch.pauseNote,
        },
      }),
    });
  }

  private async mail(to: string, batch: Batch, what: string): Promise<DeliveryOutcome> {
    const { mailer, emailsOf } = this.parts;
    if (mailer === undefined || !(await emailsOf(batch.workspaceId)).includes(to))
      return { ok: true, status: null };
    const { id, total, completed, failed, costNano, pauseNote } = batch;
    const text = [
      `The batch ${id} is ${what}.`,
      `${completed} of ${countText(total, "request")} succeeded and ${failed} failed. It has cost ${usdText(BigInt(costNano))} USD so far.`,
      ...(what === "paused" && pauseNote !== null ? [pauseNote] : []),
    ].join("\n\n");
    try {
      await mailer.send({ to, subject: `${brand.productName}: batch ${what}`, text });
      return { ok: true, status: null };
    } catch {
      return { ok: false, status: null, error: "The mail server did not accept it." };
    }
  }

  private secretOf(batchId: string): string {
    return this.parts.secrets.secretOf({ id: batchId, version: 1 });
  }
}
