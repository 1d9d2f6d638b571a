import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI, { toFile } from "openai";
import { pollUntil } from "../../support/poll-until.ts";
import { textAt } from "../api/at.ts";
import { type PeopledGateway, startPeopled } from "../api/people-browser.ts";
import { isSigned, startMailServer, startWebhook } from "../api/receivers.ts";

const [mail, webhook] = [startMailServer(), startWebhook()];
let people: PeopledGateway;
let openai: OpenAI;
beforeAll(async () => {
  people = await startPeopled(undefined, {
    mail: { url: mail.url, from: "Gateway <noreply@example.com>" },
    webhookNetworks: ["127.0.0.0/8"],
    sandbox: true,
  });
  const made = await people.owner.json("POST", "/keys", { name: "night" });
  openai = new OpenAI({
    apiKey: textAt(made, "key"),
    baseURL: people.gateway().baseUrl,
    maxRetries: 0,
  });
}, 240_000);
afterAll(async () => {
  await people.stop();
  mail.stop();
  webhook.stop();
});

async function submit(notify: Record<string, unknown>) {
  const line = {
    custom_id: "a",
    method: "POST",
    url: "/v1/chat/completions",
    body: { model: "sandbox/chat:free", messages: [{ role: "user", content: "hello" }] },
  };
  const file = await openai.files.create({
    file: await toFile(Buffer.from(JSON.stringify(line)), "in.jsonl"),
    purpose: "batch",
  });
  const asked = {
    input_file_id: file.id,
    endpoint: "/v1/chat/completions" as const,
    completion_window: "24h" as const,
    notify,
  };
  return (await openai.batches.create(asked)) as OpenAI.Batch & { webhook_secret?: string };
}

const mails = () => mail.mails.filter(({ text }) => text.includes("Subject: Switchyard: batch"));

test("the end of a batch reaches its webhook, signed, and people of the workspace, once", async () => {
  const batch = await submit({ webhook_url: webhook.url, emails: ["owner@example.com"] });
  await pollUntil(() => webhook.hooks.length > 0 && mails().length > 0);
  const hook = webhook.hooks.at(-1);
  expect(hook && isSigned(hook, batch.webhook_secret ?? "")).toBe(true);
  expect(JSON.parse(hook?.body ?? "{}")).toMatchObject({
    type: "batch.completed",
    data: { batch_id: batch.id, request_counts: { total: 1, completed: 1, failed: 0 } },
  });
  expect(mails().at(-1)?.text).toContain(`The batch ${batch.id} is completed.`);
  // The end of a later batch shows that nothing more came of the first.
  await submit({ webhook_url: webhook.url });
  await pollUntil(() => webhook.hooks.length > 1);
  expect(webhook.hooks.length).toBe(2);
  expect(mails().length).toBe(1);
});

test.each([
  ["an address outside of the workspace", { emails: ["else@example.com"] }, "notify.emails"],
  [
    "an address of the operator's network",
    { webhook_url: "https://10.0.0.1/hook" },
    "notify.webhook_url",
  ],
])("%s is refused", async (_, notify, param) => {
  const refusal = await submit(notify).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ status: 400, param });
});
