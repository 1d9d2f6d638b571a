import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { join, resolve } from "node:path";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { fillPerson, startPageScene } from "../pages/page-scene.ts";
import { settled } from "./screen.ts";

const root = resolve(import.meta.dirname, "../../..");

test.skipIf(!hasChromium)(
  `the first response is reached from the claim link without a terminal${missingChromium}`,
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
      const { page } = await scene.open({ javaScriptEnabled: true });
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
    } finally {
      await scene.stop();
    }
  },
  120_000,
);
