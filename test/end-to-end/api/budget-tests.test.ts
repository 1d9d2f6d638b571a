import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { at, listAt, textAt } from "./at.ts";
import { isSigned, startMailServer, startWebhook } from "./receivers.ts";
import { startPeopled, type PeopledGateway } from "./people-browser.ts";
import { engines } from "./two-workspaces.ts";

describe.each(engines)("budget alerts on %s", (_, freshUrl) => {
  const [mail, webhook] = [startMailServer(), startWebhook()];
  let people: PeopledGateway;
  beforeAll(async () => {
    people = await startPeopled(await freshUrl(), {
      mail: { url: mail.url, from: "Gateway <noreply@example.com>" },
      webhookNetworks: ["127.0.0.0/8"],
    });
  }, 240_000);
  afterAll(async () => {
    await people.stop();
    mail.stop();
    webhook.stop();
  });

  test("a test alert goes to every receiver, signed, reports each delivery and is not listed as an alert", async () => {
    const made = await people.owner.json("POST", "/budgets", {
      name: "Everything",
      limit: 10,
      emails: ["owner@example.com"],
      webhook_url: webhook.url,
    });
    const [id, secret] = [textAt(made, "data.id"), textAt(made, "webhook_secret")];
    expect(await people.owner.json("POST", `/budgets/${id}/test`)).toEqual({
      object: "budget_test",
      deliveries: [
        {
          channel: "email",
          target: "owner@example.com",
          delivered: true,
          status: null,
          error: null,
        },
        { channel: "webhook", target: webhook.url, delivered: true, status: 200, error: null },
      ],
    });
    expect(mail.mails.at(-1)?.text).toContain("This is a test of the alerts");
    const hook = webhook.hooks.at(-1);
    expect(hook && isSigned(hook, secret)).toBe(true);
    expect(JSON.parse(hook?.body ?? "{}")).toMatchObject({
      type: "budget.test",
      data: { budget_id: id, name: "Everything" },
    });
    webhook.answerWith(500);
    const failed = await people.owner.json("POST", `/budgets/${id}/test`);
    expect(listAt(failed, "deliveries")[1]).toMatchObject({
      delivered: false,
      status: 500,
      error: "The webhook answered 500.",
    });
    webhook.answerWith(200);
    expect(await people.owner.json("GET", "/budgets/alerts")).toEqual({ object: "list", data: [] });
  });

  test("lists the alerts of every budget in the workspace and of no other workspace", async () => {
    const made = await people.owner.json("POST", "/budgets", {
      name: "Small",
      limit: 0.000_001,
      thresholds: [1],
    });
    const budget = await people.gateway().app.budgets.editor.find({
      workspaceId: await workspaceId(),
      id: textAt(made, "data.id"),
    });
    await people.gateway().app.budgets.alerts.raise({
      budget,
      periodStartMs: 1,
      thresholds: [1],
      spentNano: 5n,
      nowMs: Date.now(),
    });
    const alerts = listAt(await people.owner.json("GET", "/budgets/alerts"), "data");
    expect(alerts).toMatchObject([{ object: "budget_alert", budget_id: budget.id, threshold: 1 }]);
    const organization = await people.owner.json("POST", "/organizations", { name: "Other" });
    await people.owner.json("PATCH", "/session", {
      workspace_id: textAt(organization, "workspace_id"),
    });
    expect(listAt(await people.owner.json("GET", "/budgets/alerts"), "data")).toEqual([]);
    expect((await people.owner.api("POST", `/budgets/${budget.id}/test`)).status).toBe(404);
  });

  const workspaceId = async (): Promise<string> =>
    textAt(at(await people.owner.json("GET", "/session"), "workspace"), "id");
});
