import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { join, resolve } from "node:path";
import type { Page } from "playwright-core";
import { hasChromium, missingChromium, sidewaysPixels } from "../../support/chromium.ts";
import { at, listAt } from "../api/at.ts";
import { fillPerson, startPageScene } from "../pages/page-scene.ts";
import { settled } from "./screen.ts";

const root = resolve(import.meta.dirname, "../../..");
const phone = {
  javaScriptEnabled: true,
  viewport: { width: 390, height: 844 },
  isMobile: true,
  hasTouch: true,
} as const;

/** Opens a screen by the menu of a phone, and expects that all of it fits. */
async function enter(page: Page, screen: string): Promise<void> {
  await page.getByRole("button", { name: "Menu" }).click();
  await page
    .getByRole("navigation", { name: "Pages" })
    .getByRole("link", { name: screen, exact: true })
    .click();
  await page.getByRole("heading", { level: 1, name: screen }).waitFor();
  await settled(page);
  expect(await sidewaysPixels(page)).toBe(0);
}

test.skipIf(!hasChromium)(
  `a phone leads from the claim link over the first response to a capped key in a colleague's hands${missingChromium}`,
  async () => {
    const built = spawnSync(process.execPath, [join(root, "scripts", "build-dashboard.ts")], {
      encoding: "utf8",
    });
    expect([built.status, built.stderr]).toEqual([0, ""]);
    const scene = await startPageScene(undefined, {
      claimed: false,
      sandbox: "auto",
      dashboard: { folder: join(root, "dashboard", "dist"), buildScript: undefined },
      bootstrap: {
        llmKey: undefined,
        managementKey: undefined,
        creditsNanoUsd: 0n,
        plan: "enterprise",
      },
    });
    try {
      const { page, context } = await scene.open(phone);
      await page.goto(`${scene.origin}/claim?token=${await scene.gateway.app.issueClaim()}`);
      await fillPerson(page, { name: "Olga Owner", email: "owner@example.com" });
      await page.getByRole("button").click();
      await page.waitForURL(`${scene.origin}/dashboard`);
      await settled(page);
      await page.getByRole("link", { name: "Send a request" }).click();
      await page.waitForURL(`${scene.origin}/dashboard/playground`);
      await page.getByLabel("Message").fill("Hello");
      await page.getByRole("button", { name: "Send", exact: true }).click();
      await page.getByText('You wrote: "Hello"').waitFor();
      await page.getByRole("link", { name: "Open the record" }).click();
      await page.getByRole("dialog", { name: "Request" }).waitFor();
      await page.goto(`${scene.origin}/`);
      await settled(page);
      expect(await page.getByRole("link", { name: "Send a request" }).count()).toBe(0);

      await enter(page, "Members");
      await page.getByLabel("Name", { exact: true }).fill("Acme & Sons");
      await page.getByRole("button", { name: "Create organisation" }).click();
      await page.getByLabel("Invite by e-mail").fill("colleague@example.com");
      await page.getByRole("button", { name: "Invite", exact: true }).click();
      const link = await page.locator("code", { hasText: "/join?" }).innerText();

      await enter(page, "Keys");
      await page.getByRole("button", { name: "Create key" }).first().click();
      await page.getByLabel("Name").fill("Carla's agent");
      await page.getByLabel("Spending cap in USD").fill("5");
      await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
      const secret = page.getByRole("dialog").getByText(/^sk-svc-v1-\w{20}/);
      const key = await secret.innerText();
      expect(await sidewaysPixels(page)).toBe(0);

      const { page: theirs } = await scene.open(phone);
      await theirs.goto(link);
      await fillPerson(theirs, { name: "Carla Colleague" });
      await theirs.getByRole("button", { name: "Create an account and join" }).click();
      await theirs.getByRole("combobox", { name: "Workspace: Acme & Sons" }).waitFor();
      const answer = await fetch(`${scene.gateway.baseUrl}/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify({
          model: "sandbox/chat:free",
          messages: [{ role: "user", content: "Hello" }],
        }),
      });
      expect(answer.status).toBe(200);
      const [kept] = listAt(await scene.ask(context, "GET", "/api/v1/keys"), "data");
      expect([at(kept, "name"), at(kept, "limit")]).toEqual(["Carla's agent", 5]);
    } finally {
      await scene.stop();
    }
  },
  240_000,
);
