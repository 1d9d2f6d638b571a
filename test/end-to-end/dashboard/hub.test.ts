import { readFileSync } from "node:fs";
import { strFromU8, unzipSync } from "fflate";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { listAt, textAt } from "../api/at.ts";
import { startDashboardScene, type DashboardScene } from "./dashboard-scene.ts";
import { expectSound, expectSoundInEachLook, tabTo } from "./screen.ts";

const skill = (text: string): string =>
  `---\nname: deploy\ndescription: How it is deployed.\n---\n\n${text}\n`;

describe.skipIf(!hasChromium)(`the hub screen${missingChromium}`, () => {
  let scene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, { runsOn: true, seeded: false });
  }, 240_000);
  afterAll(() => scene.stop());

  test("a collection is created, filled, edited in versions and deleted with the keyboard only", async () => {
    const screen = await scene.open("developer", "/hub?group=hubs");
    const { page } = screen;
    await tabTo(page, "Create collection");
    await page.keyboard.press("Enter");
    const making = page.getByRole("dialog", { name: "Create a collection" });
    await making.getByLabel("Name").focus();
    await page.keyboard.type("Runbooks");
    await page.keyboard.press("Enter");
    await page.waitForURL(/id=runbooks/);
    const drawer = page.getByRole("dialog", { name: "Collection" });
    await drawer.getByText("It holds nothing yet.").waitFor();
    await tabTo(page, "Add an entry");
    await page.keyboard.press("Enter");
    await tabTo(page, "Name");
    await page.keyboard.type("Outage");
    await tabTo(page, "Document");
    await page.keyboard.type("Call the operator.");
    await tabTo(page, "Add entry");
    await page.keyboard.press("Enter");
    await drawer.getByRole("button", { name: "Outage" }).waitFor();
    await expectSound(screen);
    await tabTo(page, "Outage");
    await page.keyboard.press("Enter");
    await page.waitForURL(/item=kbd_/);
    const entry = page.getByRole("dialog", { name: "Entry" });
    await entry.getByText("Call the operator.").waitFor();
    await tabTo(page, "Edit");
    await page.keyboard.press("Enter");
    await tabTo(page, "Document");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("Look at the status page first.");
    await tabTo(page, "Save changes");
    await page.keyboard.press("Enter");
    await entry.getByLabel("Version", { exact: true }).waitFor();
    await entry.getByText("Look at the status page first.").waitFor();
    await expectSound(screen);
    const items = await scene.ask("developer", "GET", "/hubs/runbooks/items");
    expect(listAt(items, "data")).toMatchObject([{ name: "Outage", version: 2 }]);
    await tabTo(page, "Back to the collection");
    await page.keyboard.press("Enter");
    await tabTo(page, "Delete collection");
    await page.keyboard.press("Enter");
    const asking = page.getByRole("dialog", { name: "Delete Runbooks" });
    await asking.getByLabel("Type runbooks to confirm").fill("runbooks");
    await asking.getByRole("button", { name: "Delete collection" }).press("Enter");
    await page.getByText("No collection yet.").waitFor();
    expect(screen.problems).toEqual([]);
    await screen.close();
  });

  test("an older version is restored as the newest and is in the archive", async () => {
    const made = await scene.ask("owner", "POST", "/skills", { body: skill("First text.") });
    const id = textAt(made, "id");
    await scene.ask("owner", "PATCH", `/skills/${id}`, { body: skill("Second text.") });
    const screen = await scene.open("owner", `/hub?group=skills&id=${id}`);
    const { page } = screen;
    await page.getByText("Second text.").waitFor();
    const versions = page.getByLabel("Version", { exact: true });
    await versions.selectOption("1");
    await page.getByText("First text.").waitFor();
    expect(await page.getByText("Second text.").count()).toBe(0);
    await page.getByRole("button", { name: "Restore this version" }).click();
    await versions.locator('option[value="3"]').waitFor({ state: "attached" });
    expect(await versions.inputValue()).toBe("3");
    await page.getByText("First text.").waitFor();
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download" }).click();
    const archive = unzipSync(readFileSync(await (await saved).path()));
    expect(strFromU8(archive["deploy/SKILL.md"] ?? new Uint8Array())).toBe(skill("First text."));
    await screen.close();
  });

  test("a prompt can be edited by its author and admins, and read by other members", async () => {
    const made = await scene.ask("owner", "POST", "/prompts", {
      title: "Summarise",
      description: "For threads",
      body: "In one sentence.",
      category: "Writing",
      visibility: "workspace",
    });
    const path = `/hub?id=${textAt(made, "id")}`;
    const reader = await scene.open("member", path);
    await reader.page.getByText("In one sentence.").waitFor();
    expect(await reader.page.getByRole("button", { name: "Star", exact: true }).count()).toBe(1);
    for (const name of ["Edit", "Delete"])
      expect(await reader.page.getByRole("button", { name, exact: true }).count()).toBe(0);
    await reader.close();
    const { page, close } = await scene.open("developer", path);
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    await page.getByLabel("Title").fill("Summarise briefly");
    await page.getByLabel("Tags").fill("short, mail");
    await page.getByRole("button", { name: "Save changes" }).click();
    await page.getByRole("heading", { name: "Summarise briefly" }).waitFor();
    expect(await scene.ask("owner", "GET", `/prompts/${textAt(made, "id")}`)).toMatchObject({
      title: "Summarise briefly",
      description: "For threads",
      category: "Writing",
      tags: ["short", "mail"],
      version: 2,
    });
    await close();
  });

  test("a collection longer than a page shows the rest on request", async () => {
    await scene.ask("owner", "POST", "/hubs", { name: "Archive" });
    for (let number = 1; number <= 51; number += 1)
      await scene.ask("owner", "POST", "/hubs/archive/items", {
        name: `Note ${number}`,
        body: `Text ${number}`,
      });
    const { page, close } = await scene.open("developer", "/hub?group=hubs&id=archive");
    const rows = page.getByRole("dialog").getByRole("table").locator("tbody tr");
    await page.getByText("50 so far.").waitFor();
    expect(await rows.count()).toBe(50);
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByRole("button", { name: "Note 1", exact: true }).waitFor();
    expect(await rows.count()).toBe(51);
    await close();
  });

  test("a collection and an edited entry pass the accessibility and layout checks", async () => {
    const hub = await scene.ask("owner", "POST", "/hubs", { name: "Team" });
    const slug = textAt(hub, "slug");
    const item = await scene.ask("owner", "POST", `/hubs/${slug}/items`, {
      name: "A name that goes on for longer than a phone is wide, as names of people's notes do",
      body: `# Long\n\n${"unbroken".repeat(40)}`,
      tags: ["one", "two"],
    });
    const screen = await scene.open("owner", `/hub?group=hubs&id=${slug}`);
    const { page } = screen;
    for (const name of ["Add an entry", "Import a skill", "Edit collection"]) {
      await page.getByRole("button", { name }).click();
      await expectSoundInEachLook(screen);
    }
    await screen.go(
      `${scene.origin}/dashboard/hub?group=hubs&id=${slug}&item=${textAt(item, "id")}`,
    );
    await expectSoundInEachLook(screen);
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    await expectSoundInEachLook(screen);
    await screen.close();
  });
});
