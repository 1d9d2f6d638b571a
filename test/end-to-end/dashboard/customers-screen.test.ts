import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { textAt } from "../api/at.ts";
import { startDashboardScene, type DashboardScene } from "./dashboard-scene.ts";
import { expectSound } from "./screen.ts";

describe.skipIf(!hasChromium)(`the screens of customers${missingChromium}`, () => {
  let scene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, { runsOn: true });
  }, 240_000);
  afterAll(() => scene.stop());

  test("a customer is created, given credits, and shown with its margin", async () => {
    const screen = await scene.open("owner", "/customers", "phone");
    await screen.page.getByRole("button", { name: "Create customer" }).first().click();
    await screen.page.getByLabel("External id").fill("shop-17");
    await screen.page.getByLabel("Name").fill("The shop");
    await screen.page.getByLabel("Plan").selectOption("prepaid");
    await screen.page.getByLabel("Markup in percent of the cost").fill("25");
    await screen.page.getByRole("dialog").getByRole("button", { name: "Create customer" }).click();
    await screen.page.getByRole("link", { name: "The shop" }).click();
    await screen.page.getByLabel("Add, in USD").fill("2");
    await screen.page.getByRole("button", { name: "Add credits" }).click();
    await screen.page.getByText("$2.00 were added so far.").waitFor();
    const made = await scene.ask("owner", "POST", "/customers/shop-17/keys", { name: "app" });
    const answer = await fetch(`${scene.gateway.baseUrl}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${textAt(made, "key")}` },
      body: JSON.stringify({
        model: "acme/large",
        messages: [{ role: "user", content: "Hello" }],
        max_tokens: 7,
      }),
    });
    expect(answer.status).toBe(200);
    await screen.page.reload();
    await screen.page.getByRole("button", { name: "Download CSV" }).waitFor();
    await screen.page.getByText("acme/large").first().waitFor();
    await screen.page.getByRole("button", { name: "Share balance" }).click();
    await screen.page.getByText("/balance/", { exact: false }).waitFor();
    await expectSound(screen);
    await screen.close();
    const shown = await scene.ask("owner", "GET", "/customers/shop-17");
    expect(shown).toMatchObject({ plan: { type: "prepaid", markup: 0.25 }, credits: 2 });
  }, 240_000);
});
