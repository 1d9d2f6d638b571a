import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { startFakeStripe, type FakeStripe } from "../../support/stripe/fake-stripe.ts";
import { paymentSettings, signed } from "../../support/stripe/paying-gateway.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { startMailServer, startWebhook } from "../api/receivers.ts";
import { emailOf, startDashboardScene, type DashboardScene } from "./dashboard-scene.ts";
import { act, expectSound, settled, tabTo } from "./screen.ts";

describe.skipIf(!hasChromium)(`budget, provider key and credit screens${missingChromium}`, () => {
  const [mail, webhook] = [startMailServer(), startWebhook()];
  let stripe: FakeStripe;
  let scene: DashboardScene;
  beforeAll(async () => {
    stripe = startFakeStripe();
    scene = await startDashboardScene(undefined, {
      runsOn: true,
      payments: paymentSettings(stripe.url),
      mail: { url: mail.url, from: "noreply@example.com" },
      referrals: {
        referrerNano: 5_000_000_000n,
        referredNano: 2_000_000_000n,
        after: "sign_up",
        maximumPerWorkspace: 20,
      },
      webhookNetworks: ["127.0.0.0/8"],
    });
  }, 240_000);
  afterAll(async () => {
    await scene.stop();
    await stripe.stop();
    mail.stop();
    webhook.stop();
  });

  test("a budget that blocks is set with the keyboard only and takes effect", async () => {
    const screen = await scene.open("owner", "/budgets");
    const { page } = screen;
    await tabTo(page, "Create budget");
    await page.keyboard.press("Enter");
    await page.getByLabel("Name").focus();
    await page.keyboard.type("Hold it");
    await page.getByLabel("Limit in USD").focus();
    await page.keyboard.type("0.000001");
    await page.getByLabel("When it is spent").focus();
    await page.keyboard.press("ArrowDown");
    await page.getByLabel("Limit in USD").focus();
    await page.keyboard.press("Enter");
    await page.getByText("refusing").waitFor();
    const refused = await scene.chat({
      model: "acme/large",
      messages: [{ role: "user", content: "Hello" }],
    });
    expect([refused.status, at(await refused.json(), "error.metadata.reason")]).toEqual([
      402,
      "budget_reached",
    ]);
    await expectSound(screen);
    await act(page.getByRole("row", { name: /Hold it/ }), "Delete");
    await page.getByRole("button", { name: "Delete budget" }).click();
    await page.getByText("No budget yet.").waitFor();
    const served = await scene.chat({
      model: "acme/large",
      messages: [{ role: "user", content: "Hello" }],
    });
    expect(served.status).toBe(200);
    await served.text();
    await screen.close();
  });

  test("a budget alerts by mail and webhook, shows its secret once, and a test reports each delivery", async () => {
    const screen = await scene.open("owner", "/budgets", "phone");
    const { page } = screen;
    await page.getByRole("button", { name: "Create budget" }).first().click();
    await page.getByLabel("Name").fill("Watch");
    await page.getByLabel("For", { exact: true }).selectOption("model");
    await page.getByRole("combobox", { name: "Model: Choose one" }).click();
    await page.getByLabel("Search models").fill("acme/lar");
    await page.getByRole("option", { name: "acme/large" }).click();
    await page.getByRole("combobox", { name: "Model: acme/large" }).waitFor();
    await page.getByLabel("Limit in USD").fill("100");
    await page.getByLabel("Time zone").fill("Europe/Berlin");
    await expectSound(screen);
    await page.getByLabel("Mail to").fill(emailOf("owner"));
    await page.getByLabel("Webhook").fill(webhook.url);
    await page.getByRole("button", { name: "Create budget" }).last().click();
    await page.getByRole("dialog", { name: "Secret of the webhook" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByText("model acme/large").waitFor();
    await page.getByText("(Europe/Berlin)", { exact: false }).waitFor();
    await act(page.getByRole("row", { name: /^Watch/ }), "Send test");
    const result = page.getByRole("dialog", { name: "Test of the alerts" });
    await result.waitFor();
    expect(await result.getByText("delivered").count()).toBe(2);
    expect(mail.mails.at(-1)?.to).toBe(emailOf("owner"));
    expect(JSON.parse(webhook.hooks.at(-1)?.body ?? "{}")).toMatchObject({ type: "budget.test" });
    await expectSound(screen);
    await screen.close();
  });

  test("a provider key is tested before it is saved, donated with consent and withdrawn", async () => {
    const screen = await scene.open("owner", "/provider-keys");
    const { page } = screen;
    await tabTo(page, "Add provider key");
    await page.keyboard.press("Enter");
    await page.getByLabel("Provider", { exact: true }).selectOption("acme");
    await page.getByLabel("Key", { exact: true }).fill("sk-acme-of-our-own-1");
    await page.getByLabel("Label").fill("Ours");
    await page.getByRole("button", { name: "Test key" }).click();
    await page
      .getByRole("status")
      .filter({ hasText: /provider/ })
      .waitFor();
    await page.getByLabel("Quota in USD").fill("3");
    await page.getByRole("button", { name: "Add provider key" }).last().click();
    const row = page.getByRole("row").filter({ hasText: "Ours" });
    await row.getByText("$0.00 of $3.00").waitFor();
    await act(row, "Test");
    await page.getByRole("dialog", { name: "Test of the key" }).waitFor();
    await page.keyboard.press("Escape");
    await act(row, "Donate");
    expect(await page.getByRole("button", { name: "Donate key" }).isDisabled()).toBe(true);
    await page.getByLabel("I agree that others use this key at my expense.").check();
    await page.getByRole("button", { name: "Donate key" }).click();
    await row.getByText("donated").waitFor();
    await expectSound(screen);
    await act(row, "Donation");
    await page.getByRole("button", { name: "Withdraw key" }).click();
    await row.getByText("own use only").waitFor();
    await act(row, "Delete");
    await page.getByRole("button", { name: "Delete provider key" }).click();
    await page.getByText("No provider key yet.").waitFor();
    await screen.close();
  });

  test("credits are bought with a test card, invoiced and then topped up automatically", async () => {
    const screen = await scene.open("owner", "/credits");
    const { page } = screen;
    await page.route("https://checkout.example/**", (route) =>
      route.fulfill({ contentType: "text/html", body: "<title>Checkout</title>" }),
    );
    await page.getByText(/a fee of \$1\.00: the card is charged \$11\.00/).waitFor();
    await page.getByLabel("Save the card for automatic top-ups").check();
    await tabTo(page, "Top up by card");
    await page.keyboard.press("Enter");
    await page.waitForURL(/checkout\.example/);
    const session = new URL(page.url()).pathname.slice(1);
    for (const event of stripe.world.pay(session)) {
      const body = JSON.stringify(event);
      const told = await fetch(`${scene.gateway.baseUrl}/webhooks/stripe`, {
        method: "POST",
        body,
        headers: signed(body, { atMs: Date.now() }),
      });
      expect(told.status).toBe(200);
    }
    await page.goto(`${scene.origin}/dashboard/credits`);
    await settled(page);
    await page.getByRole("group", { name: "Statement" }).getByText("+$10.00").waitFor();
    expect(await page.getByRole("link", { name: /INV/ }).count()).toBe(1);
    await page.getByLabel("I agree that the saved card is charged without asking again.").check();
    await page.getByRole("button", { name: "Turn automatic top-up on" }).click();
    await page.getByRole("button", { name: "End automatic top-up" }).waitFor();
    expect(await scene.ask("owner", "GET", "/credits/automatic")).toMatchObject({
      status: "on",
      amount: 20,
      monthly_limit: 100,
    });
    await expectSound(screen);
    await page.getByRole("button", { name: "End automatic top-up" }).click();
    await page.getByRole("button", { name: "Turn automatic top-up on" }).waitFor();
    const sum = listAt(
      await scene.ask("owner", "GET", "/credits/transactions"),
      "data",
    ).reduce<number>((total, entry) => total + Number(at(entry, "amount")), 0);
    expect(sum).toBeCloseTo(Number(at(await scene.ask("owner", "GET", "/credits"), "balance")), 5);
    await screen.close();
  });

  test("the referral link is shown with its results and copied with the keyboard only", async () => {
    const screen = await scene.open("owner", "/credits", "light", {
      permissions: ["clipboard-read", "clipboard-write"],
    });
    const { page } = screen;
    const url = textAt(await scene.ask("owner", "GET", "/referrals"), "url");
    const card = page.getByRole("region", { name: "Referrals" });
    await card
      .getByText(/gets \$2\.00 of monthly credits and this workspace \$5\.00, at once/)
      .waitFor();
    expect(await card.getByRole("definition").allInnerTexts()).toEqual([
      "0",
      "0",
      "0 of 20 at most",
      "$0.00",
    ]);
    await tabTo(page, "Copy link");
    await page.keyboard.press("Enter");
    await card.getByRole("button", { name: "Copied" }).waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(url);
    await expectSound(screen);
    await screen.close();
    const phone = await scene.open("owner", "/credits", "phone");
    await phone.page.getByRole("region", { name: "Referrals" }).waitFor();
    await expectSound(phone);
    await phone.close();
  });

  test("a member sees the balance but cannot buy credits or change budgets", async () => {
    const screen = await scene.open("member", "/credits");
    expect(await screen.page.getByRole("button", { name: "Top up by card" }).count()).toBe(0);
    await screen.go(`${scene.origin}/dashboard/budgets`);
    expect(await screen.page.getByRole("button", { name: "Create budget" }).count()).toBe(0);
    expect(textAt(await scene.ask("member", "GET", "/session"), "workspace.role")).toBe("member");
    await screen.close();
  });
});
