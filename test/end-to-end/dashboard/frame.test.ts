import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { listAt, textAt } from "../api/at.ts";
import {
  emailOf,
  passwordOf,
  startDashboardScene,
  type DashboardScene,
} from "./dashboard-scene.ts";
import { enterWorkspace, expectSound, focusedName, settled, tabTo } from "./screen.ts";

describe.skipIf(!hasChromium)(`the frame of all screens${missingChromium}`, () => {
  let scene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, { runsOn: true });
  }, 240_000);
  afterAll(() => scene.stop());

  test("the palette finds screens, keys, models and requests with the keyboard only", async () => {
    const screen = await scene.open("developer", "");
    const { page } = screen;
    const choose = async (text: string, url: RegExp): Promise<void> => {
      await page.keyboard.press("Control+k");
      const field = page.getByRole("combobox", { name: "Search" });
      await field.waitFor();
      await page.locator('[role="combobox"]:focus').waitFor();
      await page.keyboard.type(text);
      await page.locator('[role="option"][data-highlighted]', { hasText: text }).waitFor();
      await page.keyboard.press("Enter");
      await page.waitForURL(url);
      await settled(page);
    };
    await choose("usag", /\/dashboard\/usage$/);
    // A model without requests: those would come before it.
    await choose("sandbox/reran", /\/dashboard\/models\/sandbox\/rerank:free$/);
    await choose("acme/larg", /\/dashboard\/activity\?id=/);
    await page.getByRole("dialog", { name: "Request" }).waitFor();
    await choose("Night wat", /\/dashboard\/activity\?key_id=/);
    const [newest] = listAt(
      await scene.ask("developer", "GET", "/analytics/generations?limit=1"),
      "data",
    );
    const id = textAt(newest, "id");
    await choose(id, new RegExp(`/dashboard/activity\\?id=${id}`));
    await page.getByRole("dialog", { name: "Request" }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Search" }).waitFor();
    await expectSound(screen);
    await screen.close();
  });

  test("a low window shows where one is in the navigation", async () => {
    const { page, close } = await scene.open("operator", "", "light", {
      viewport: { width: 1280, height: 600 },
    });
    const isInSight = async (name: string): Promise<boolean> => {
      const box = await page.getByRole("link", { name, exact: true }).first().boundingBox();
      return box !== null && box.y >= 0 && box.y + box.height <= 600;
    };
    expect(await isInSight("Operator")).toBe(false);
    await page.keyboard.press("g");
    await page.keyboard.press("x");
    await page.getByRole("heading", { level: 1, name: "Operator" }).waitFor();
    expect(await isInSight("Operator")).toBe(true);
    await close();
  });

  test("g and a letter open a screen, / focuses the filter, ? lists the keys, and fields take them as text", async () => {
    const { page, close } = await scene.open("developer", "");
    await page.keyboard.press("g");
    await page.keyboard.press("a");
    await page.waitForURL(/\/dashboard\/activity$/);
    // The address changes before the screen, whose code is loaded then.
    await page.getByRole("heading", { level: 1, name: "Activity" }).waitFor();
    await page.getByRole("combobox", { name: "Model: Any model" }).waitFor();
    await settled(page);
    await page.keyboard.press("/");
    const search = page.getByRole("combobox", { name: "Search models" });
    await search.waitFor();
    await page.keyboard.type("g/?");
    expect(await search.inputValue()).toBe("g/?");
    await page.keyboard.press("Escape");
    await search.waitFor({ state: "detached" });
    await page.locator("body").click({ position: { x: 2, y: 2 } });
    await page.keyboard.press("?");
    await page
      .getByRole("dialog", { name: "Keyboard" })
      .getByText("g a", { exact: true })
      .waitFor();
    await close();
  });

  test("nothing moves for people who asked for less motion", async () => {
    const { page, close } = await scene.open("developer", "/activity", "light", {
      reducedMotion: "reduce",
    });
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Search" }).waitFor();
    const moving = `[...document.querySelectorAll("*")].filter((each) => {
      const { animationName, transitionDuration } = getComputedStyle(each);
      return animationName !== "none" || /[1-9]/.test(transitionDuration);
    }).length`;
    expect(await page.evaluate(moving)).toBe(0);
    await close();
  });

  test("a skip link leads to the content, and the navigation follows the visual order", async () => {
    const { page, close } = await scene.open("developer", "");
    await page.keyboard.press("Tab");
    expect(await focusedName(page)).toBe("Skip to the content");
    await tabTo(page, "Usage");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/dashboard\/usage$/);
    await close();
  });

  test("an expired session leads to sign-in and back to the same page with its filters", async () => {
    const { page, context, close } = await scene.open("developer", "/activity?status=failed");
    await context.clearCookies();
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.waitForURL(/\/sign-in\?return_to=/);
    await page.getByLabel("E-mail address").fill(emailOf("developer"));
    await page.getByLabel("Password", { exact: true }).fill(passwordOf("developer"));
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.waitForURL(`${scene.origin}/dashboard/activity?status=failed`);
    await settled(page);
    await close();
  });

  test("signing in without return_to opens the overview", async () => {
    const { page, close } = await scene.openSignedOut("/sign-in");
    await page.getByLabel("E-mail address").fill(emailOf("developer"));
    await page.getByLabel("Password", { exact: true }).fill(passwordOf("developer"));
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.waitForURL(`${scene.origin}/dashboard`);
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await close();
  });

  test("two tabs of one session can use two workspaces without seeing each other's data", async () => {
    const first = await scene.open("developer", "/keys");
    await first.page.getByText("Night watch", { exact: true }).first().waitFor();
    const page = await first.context.newPage();
    await page.goto(`${scene.origin}/dashboard/keys`);
    await settled(page);
    await enterWorkspace(page, "Personal");
    await page.getByText(/^No key yet\./).waitFor();
    // The other tab stays, although the session has gone on: also when it loads everything again.
    await first.page.reload();
    await first.page.getByText("Night watch", { exact: true }).first().waitFor();
    await first.page.getByRole("combobox", { name: "Workspace: Acme & Sons" }).waitFor();
    await page.reload();
    await page.getByText(/^No key yet\./).waitFor();
    await scene.ask("developer", "PATCH", "/session", { workspace_id: scene.workspaceId });
    await first.close();
  });

  test("a workspace is found by its name, and an organisation is created where one is chosen", async () => {
    const screen = await scene.open("owner", "/keys");
    const { page } = screen;
    const switching = page.getByRole("combobox", { name: "Workspace: Acme & Sons" });
    await tabTo(page, "Workspace: Acme & Sons");
    await page.keyboard.press("Enter");
    await page.getByLabel("Search workspaces").fill("pers");
    await page.getByRole("option", { name: "Personal" }).waitFor();
    expect(await page.getByRole("option").count()).toBe(1);
    await page.getByLabel("Search workspaces").fill("nothing of that name");
    await page.getByText("No workspace has that in its name.").waitFor();
    await expectSound(screen);
    await page.keyboard.press("Escape");
    await switching.click();
    await page.getByRole("button", { name: "Create organisation" }).click();
    const dialog = page.getByRole("dialog", { name: "Create organisation" });
    await dialog.getByLabel("Name", { exact: true }).fill("Second venture");
    await dialog.getByRole("button", { name: "Create organisation" }).click();
    await page.getByRole("combobox", { name: "Workspace: Second venture" }).waitFor();
    await page.getByText(/^No key yet\./).waitFor();
    await scene.ask("owner", "PATCH", "/session", { workspace_id: scene.workspaceId });
    await screen.close();
  });

  test("times are in the browser's time zone, with UTC in the tooltip", async () => {
    const { page, close } = await scene.open("developer", "/activity", "light", {
      timezoneId: "Asia/Tokyo",
      locale: "en-GB",
    });
    const time = page.getByRole("table").locator("time").first();
    const utc = new Date((await time.getAttribute("datetime")) ?? "");
    expect(await time.getAttribute("title")).toBe(
      `${utc.toISOString().slice(0, 19).replace("T", " ")} UTC`,
    );
    expect(await time.innerText()).toContain(
      utc.toLocaleTimeString("en-GB", { timeZone: "Asia/Tokyo" }),
    );
    await close();
  });

  test("the bell counts unseen alerts across browsers and links to them", async () => {
    const made = await scene.ask("owner", "POST", "/budgets", {
      name: "Watch",
      scope: "workspace",
      period: "monthly",
      action: "alert",
      limit: 10,
      thresholds: [50, 80],
    });
    const { budgets } = scene.gateway.app;
    const budget = await budgets.editor.find({
      workspaceId: scene.workspaceId,
      id: textAt(made, "data.id"),
    });
    await budgets.alerts.raise({
      budget,
      periodStartMs: 0,
      thresholds: [50, 80],
      spentNano: 8_000_000_000n,
      nowMs: Date.now(),
    });
    const screen = await scene.open("owner", "/keys");
    const { page } = screen;
    await page.getByRole("link", { name: "Alerts: 2 new" }).waitFor();
    await expectSound(screen);
    await tabTo(page, "Alerts: 2 new");
    const kept = page.waitForResponse(
      (response) => response.request().method() === "PATCH" && response.ok(),
    );
    await page.keyboard.press("Enter");
    await kept;
    await page.getByRole("group", { name: "Alerts" }).getByText("80 %").waitFor();
    await page.getByRole("link", { name: "Alerts", exact: true }).waitFor();
    await screen.close();
    const phone = await scene.open("owner", "/keys", "phone");
    await phone.page.getByRole("link", { name: "Alerts", exact: true }).waitFor();
    await expectSound(phone);
    await phone.close();
    const other = await scene.open("developer", "/keys", "phone");
    await other.page.getByRole("link", { name: "Alerts: 2 new" }).waitFor();
    await expectSound(other);
    await other.close();
  });
});
