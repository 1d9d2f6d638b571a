import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { putMigratedSqlite } from "../../test/support/migrated-sqlite.ts";
import { hourMs, minuteMs } from "../platform/kernel/clock.ts";
import {
  type DeliveryOutcome,
  type WebhookMessage,
  WebhookSender,
} from "../platform/notify/webhook-sender.ts";
import { WebhookSecrets } from "../platform/notify/webhook-secrets.ts";
import { migrations } from "../platform/storage/migrations/index.ts";
import { openStorage } from "../platform/storage/open-storage.ts";
import type { Storage } from "../platform/storage/storage.ts";
import type { Batch, BatchTables } from "./batch.ts";
import { BatchStore } from "./batch-store.ts";
import { leaseTimeOf } from "./lease-time.ts";
import { BatchWatchers } from "./batch-watchers.ts";

const directory = mkdtempSync(join(tmpdir(), "switchyard-watchers-"));
let storage: Storage<BatchTables>;
beforeAll(async () => {
  storage = await openStorage({
    url: await putMigratedSqlite(directory),
    durability: "process",
    migrations,
    commitStatements: { inserts: [], adds: [] },
  });
});
afterAll(async () => {
  await storage.close();
  rmSync(directory, { recursive: true, force: true });
});

/** Notes what webhooks are sent, and fails while it is to. */
class NotedWebhooks extends WebhookSender {
  readonly sent: { id: string; event: string; note: unknown }[] = [];
  fails = false;

  override async send({ id, event, body }: WebhookMessage): Promise<DeliveryOutcome> {
    const { data } = JSON.parse(body) as { data: { note: unknown } };
    this.sent.push({ id, event, note: data.note });
    return this.fails
      ? { ok: false, status: 500, error: "It answered 500." }
      : { ok: true, status: 200 };
  }
}

const asked = {
  workspaceId: "ws_a",
  keyId: "key_a",
  form: "openai",
  endpoint: "/v1/chat/completions",
  completionWindow: "24h",
  windowMs: 24 * hourMs,
  inputFileId: "file_a",
  outputExpiresSeconds: null,
  metadata: null,
} as const;

/** A batch that a webhook and a person watch, and two gateways that send its notices. */
async function watched() {
  const clock = new FakeClock();
  const webhooks = new NotedWebhooks({ guard: { allowed: [] }, clock });
  const mails: string[] = [];
  const mail = { fails: false };
  const batches = new BatchStore({
    database: storage.database,
    clock,
    nodeId: "one",
    leaseTime: leaseTimeOf(clock, { isShared: false }),
    kind: "sqlite",
  });
  const parts = {
    database: storage.database,
    batches,
    clock,
    webhooks,
    secrets: new WebhookSecrets(new Uint8Array(32)),
    mailer: {
      async send({ subject }: { subject: string }) {
        mails.push(subject);
        if (mail.fails) throw new Error("refused");
      },
      close() {},
    },
    emailsOf: async () => ["owner@example.com"],
  };
  const batch: Batch = await batches.create(asked, async () => "sealed");
  const gateways = [new BatchWatchers(parts), new BatchWatchers(parts)];
  await gateways[0]?.watch(batch, {
    emails: ["owner@example.com"],
    webhookUrl: "https://example.com/hook",
  });
  const send = async (): Promise<void> => {
    await Promise.all(gateways.map((gateway) => gateway.sendNotices()));
  };
  const end = (): Promise<boolean> =>
    batches.change(batch.id, ["validating"], { status: "completed", endedAtMs: clock.nowMs() });
  return { batch, batches, clock, webhooks, mails, mail, send, end };
}

const eventsOf = ({ sent }: NotedWebhooks): string[] => sent.map(({ event }) => event);

test("a pause is reported once, and the end after it", async () => {
  const { batch, batches, webhooks, mails, send, end } = await watched();
  await send();
  expect(eventsOf(webhooks)).toEqual([]);
  await batches.pause(batch.id, "no money", 0);
  await send();
  await send();
  await batches.pause(batch.id, null, 0);
  await batches.pause(batch.id, "again no money", 0);
  await send();
  expect(webhooks.sent).toEqual([
    { id: expect.stringMatching(/p$/), event: "batch.paused", note: "no money" },
  ]);
  expect(mails).toEqual(["Switchyard: batch paused"]);
  await batches.pause(batch.id, null, 0);
  await end();
  await send();
  await send();
  expect(eventsOf(webhooks)).toEqual(["batch.paused", "batch.completed"]);
  expect(mails).toEqual(["Switchyard: batch paused", "Switchyard: batch completed"]);
});

test("a notice that fails is repeated under the same id, at growing intervals", async () => {
  const { clock, webhooks, mails, mail, send, end } = await watched();
  await end();
  webhooks.fails = true;
  mail.fails = true;
  await send();
  for (const waitMs of [minuteMs, 5 * minuteMs]) {
    clock.advance(waitMs - 1);
    const before = webhooks.sent.length;
    await send();
    expect(webhooks.sent.length).toBe(before);
    clock.advance(1);
    await send();
    expect(webhooks.sent.length).toBe(before + 1);
  }
  webhooks.fails = false;
  mail.fails = false;
  clock.advance(30 * minuteMs);
  await send();
  clock.advance(24 * hourMs);
  await send();
  expect(webhooks.sent.length).toBe(4);
  expect(new Set(webhooks.sent.map(({ id }) => id)).size).toBe(1);
  expect(mails.length).toBe(4);
});

test("a notice that never arrives is given up", async () => {
  const { clock, webhooks, send, end } = await watched();
  await end();
  webhooks.fails = true;
  for (let hours = 0; hours < 24; hours += 1) {
    await send();
    clock.advance(7 * hourMs);
  }
  expect(webhooks.sent.length).toBe(6);
});

test("a gateway that is killed while it sends a notice leaves it to another", async () => {
  const { batch, clock, webhooks, send, end } = await watched();
  await end();
  // The lease of the killed one.
  await storage.database
    .updateTable("batch_watchers")
    .set({ next_attempt_ms: clock.nowMs() + 2 * minuteMs })
    .where("batch_id", "=", batch.id)
    .execute();
  await send();
  expect(eventsOf(webhooks)).toEqual([]);
  clock.advance(2 * minuteMs);
  await send();
  expect(eventsOf(webhooks)).toEqual(["batch.completed"]);
});

test("a workspace may have a thousand batches open, beside those of others", async () => {
  const { batches } = await watched();
  const create = (workspaceId: string) =>
    batches.create({ ...asked, workspaceId }, async () => "sealed");
  for (let made = 0; made < 1_000; made += 1) await create("many");
  const refused = await create("many").catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "rate_limit_exceeded" });
  const { id } = await create("other");
  const open = await batches.open();
  expect(open.at(-1)?.id).toBe(id);
  await batches.change(
    open.find(({ workspaceId }) => workspaceId === "many")?.id ?? "",
    ["validating"],
    {
      status: "failed",
      endedAtMs: 0,
    },
  );
  await create("many");
});

test("a batch is not made where those who are to be notified cannot be stored", async () => {
  const { batches } = await watched();
  const before = await batches.open();
  const refused = batches.create(
    asked,
    async () => "sealed",
    async () => {
      throw new Error("the database has failed");
    },
  );
  expect(await refused.catch(String)).toContain("the database has failed");
  expect(await batches.open()).toEqual(before);
});
