import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { listAt, textAt } from "../api/at.ts";
import { startDashboardScene, type DashboardScene } from "./dashboard-scene.ts";
import { expectSound } from "./screen.ts";

describe.skipIf(!hasChromium)(`the screens of teams${missingChromium}`, () => {
  let scene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, { runsOn: true });
  }, 240_000);
  afterAll(() => scene.stop());

  test("a team is created, gets people and keys, and shows what is left of its limit", async () => {
    const screen = await scene.open("owner", "/teams", "phone");
    const { page } = screen;
    await page.getByRole("button", { name: "Create team" }).first().click();
    await page.getByLabel("Name").fill("Research");
    await page.getByLabel("Limit in USD").fill("2");
    await page.getByLabel("Period").selectOption("weekly");
    await page.getByLabel("Time zone").fill("Europe/Berlin");
    await page.getByRole("dialog").getByRole("button", { name: "Create team" }).click();
    await page.getByText("$0.00 of $2.00").waitFor();
    await expectSound(screen);
    await page.getByRole("link", { name: "Research" }).click();
    await page.getByLabel("Name of a new key").fill("notebook");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByText("notebook").waitFor();
    const team = listAt(await scene.ask("owner", "GET", "/teams"), "data")[0];
    expect(team).toMatchObject({ period: "weekly", time_zone: "Europe/Berlin", keys: 1 });
    await expectSound(screen);
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete team" }).click();
    await page.getByText("No team yet.", { exact: false }).waitFor();
    await screen.close();
    const left = listAt(
      await scene.ask("owner", "GET", `/keys?team=${textAt(team, "id")}`),
      "data",
    );
    expect(left).toEqual([]);
  }, 240_000);
});
