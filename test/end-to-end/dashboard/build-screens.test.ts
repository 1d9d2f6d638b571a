import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { PeopleTables } from "../../../src/identity/people/people-tables.ts";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { startDashboardScene, type DashboardScene } from "./dashboard-scene.ts";
import { act, expectSound, settled, tabTo, pick } from "./screen.ts";
import { withTables } from "../../../src/platform/storage/with-tables.ts";

describe.skipIf(!hasChromium)(`the presets, routing and keys screens${missingChromium}`, () => {
  let scene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, { runsOn: true });
  }, 240_000);
  afterAll(() => scene.stop());

  test("a preset is created, configured and tested against the sandbox with the keyboard only", async () => {
    const screen = await scene.open("developer", "/presets");
    const { page } = screen;
    await tabTo(page, "Create preset");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Create preset" }).waitFor();
    await page.getByLabel("Name").focus();
    await page.keyboard.type("Short answers");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/dashboard\/presets\/short-answers$/);
    await settled(page);
    await tabTo(page, /^Model: /);
    await page.keyboard.press("Enter");
    await page.getByRole("combobox", { name: "Search models" }).waitFor();
    await page.keyboard.type("sandbox/chat");
    await page.locator('[role="option"][data-highlighted]', { hasText: "sandbox/chat" }).waitFor();
    await page.keyboard.press("Enter");
    await tabTo(page, /^System prompt$/);
    await page.keyboard.type("Be brief.");
    await tabTo(page, "Temperature");
    await page.keyboard.type("0.2");
    await page.keyboard.press("Enter");
    await page.getByText("2, in force").waitFor();
    await page.getByRole("cell", { name: "Developer Example" }).first().waitFor();
    expect(await scene.ask("developer", "GET", "/presets/short-answers")).toMatchObject({
      version: 2,
      config: { model: "sandbox/chat:free", system: "Be brief.", temperature: 0.2 },
    });
    await page.getByLabel("Message").focus();
    await page.keyboard.type("Hello");
    await tabTo(page, "Run preset");
    await page.keyboard.press("Enter");
    await page
      .getByRole("region", { name: "Stored preset" })
      .getByText("Open the record")
      .waitFor();
    await expectSound(screen);
    await screen.close();
  });

  test("an invalid field is named, the draft runs beside the stored preset, and a version is restored", async () => {
    await scene.ask("owner", "POST", "/presets", {
      slug: "versions",
      name: "Versions",
      config: { model: "sandbox/chat:free", seed: 1 },
    });
    await scene.ask("owner", "PATCH", "/presets/versions", { config: { seed: 2 } });
    const screen = await scene.open("developer", "/presets/versions", "phone");
    const { page } = screen;
    await page.getByLabel("Temperature").fill("warm");
    await page.getByRole("button", { name: "Save preset" }).click();
    await page.getByText("Temperature: this is no number.").waitFor();
    await page.getByLabel("Temperature").fill("1");
    await page.getByLabel("Message").fill("Hello");
    await page.getByRole("button", { name: "Run preset and draft" }).click();
    await page
      .getByRole("region", { name: "Draft in the editor" })
      .getByText("Open the record")
      .waitFor();
    await page.getByRole("button", { name: "Show" }).last().click();
    await page.getByRole("dialog", { name: "Version 1" }).getByText('"seed": 1').waitFor();
    await page.getByRole("button", { name: "Restore this version" }).click();
    await page.getByText("3, in force").waitFor();
    expect(await scene.ask("owner", "GET", "/presets/versions")).toMatchObject({
      version: 3,
      config: { seed: 1 },
    });
    await expectSound(screen);
    await page.getByRole("button", { name: "Delete preset" }).first().click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete preset" }).click();
    await page.waitForURL(/\/dashboard\/presets$/);
    await page.getByRole("heading", { name: "Presets" }).waitFor();
    await page.getByRole("link", { name: "Versions" }).waitFor({ state: "detached" });
    await screen.close();
  });

  test("an alias is created, shown in words, edited and deleted", async () => {
    const screen = await scene.open("developer", "/aliases", "phone");
    const { page } = screen;
    await page.getByText("No alias yet.", { exact: false }).waitFor();
    await page.getByRole("button", { name: "Create alias" }).first().click();
    await page.getByLabel("Name").fill("house:fast");
    const way = page.getByLabel("Models", { exact: true });
    const target = page.getByLabel("Conditions", { exact: true });
    await way.selectOption("By conditions");
    await target.fill('["nobody/none"]');
    await page.getByRole("dialog").getByRole("button", { name: "Create alias" }).click();
    await page.getByText("is not in the catalog", { exact: false }).waitFor();
    await target.fill("");
    await way.selectOption("One model, or several in order");
    await pick(page, "Catalog", /^acme\/large/);
    await pick(page, "Catalog", /^sandbox\/chat:free/, "chat:free");
    await page.getByRole("button", { name: "Move sandbox/chat:free up" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Create alias" }).click();
    await page.getByText("sandbox/chat:free, then acme/large").waitFor();
    const row = page.getByRole("row").filter({ hasText: "house:fast" });
    const save = (): Promise<void> => page.getByRole("button", { name: "Save alias" }).click();
    const [large, free] = [{ model: "acme/large" }, { model: "sandbox/chat:free" }];
    await act(row, "Edit");
    await way.selectOption("Several, by weight");
    await page.getByLabel("Weight of sandbox/chat:free").fill("9");
    await page.getByText("90 % of the requests").waitFor();
    expect(screen.problems.splice(0)).toEqual(["400 POST /api/v1/aliases"]);
    await expectSound(screen);
    await save();
    await row.getByText("sandbox/chat:free, 90 %").waitFor();
    await row.getByText("acme/large, 10 %").waitFor();
    await act(row, "Edit");
    await way.selectOption("By conditions");
    const condition = { tag: "beta", header: { "x-team": "research" } };
    await target.fill(JSON.stringify([{ ...large, when: condition }, free]));
    await save();
    await row.getByText("if tag is beta and header x-team is research: acme/large").waitFor();
    await row.getByText("otherwise: sandbox/chat:free").waitFor();
    await act(row, "Delete");
    await page.getByRole("button", { name: "Delete alias" }).click();
    await page.getByText("No alias yet.", { exact: false }).waitFor();
    expect(listAt(await scene.ask("developer", "GET", "/aliases"), "data")).toEqual([]);
    await screen.close();
  });

  test("routing shows candidates and excluded providers before sending, and an order set by keyboard", async () => {
    const screen = await scene.open("developer", "/routing");
    const { page } = screen;
    await pick(page, "Model", /^acme\/large/);
    await pick(page, "Never these providers", /^Sandbox/);
    await tabTo(page, "Show the order");
    await page.keyboard.press("Enter");
    const candidates = page.getByRole("group", { name: "Candidates" }).getByRole("row");
    await candidates.nth(1).waitFor();
    const places = async (): Promise<string[]> =>
      (await candidates.allInnerTexts()).slice(1).map((text) => text.split(/\s+/)[1] ?? "");
    expect((await places()).toSorted()).toEqual(["Acme", "Broken"]);
    for (const provider of ["Broken Inference", "Acme Inference"]) {
      await page.getByRole("button", { name: `Add ${provider}` }).focus();
      await page.keyboard.press("Enter");
    }
    await page.getByRole("button", { name: "Move Acme Inference up" }).focus();
    await page.keyboard.press("Alt+ArrowUp");
    await page.getByText("Acme Inference is now 1 of 2.").waitFor();
    await page.getByRole("button", { name: "Show the order" }).click();
    await page.getByRole("cell", { name: /order/ }).first().waitFor();
    expect(await places()).toEqual(["Acme", "Broken"]);
    await pick(page, "Only these providers", /acme/);
    await page.getByRole("button", { name: "Show the order" }).click();
    await page.getByRole("group", { name: "Left out" }).getByText("Broken Inference").waitFor();
    await expectSound(screen);
    await screen.close();
  });

  test("providers are dragged into an order that is saved as a preset, and no candidates are reported", async () => {
    const screen = await scene.open("developer", "/routing");
    const { page } = screen;
    await pick(page, "Model", /^acme\/large/);
    await page.getByRole("button", { name: "Add Acme Inference" }).click();
    await page.getByRole("button", { name: "Add Broken Inference" }).click();
    const items = page.getByRole("list", { name: "Order of providers" }).getByRole("listitem");
    await items.nth(1).dragTo(items.nth(0));
    await page.getByText("Broken Inference is now 1 of 2.").waitFor();
    await page.getByLabel("Name of the preset").fill("Broken first");
    await page.getByRole("button", { name: "Save as preset" }).click();
    await page.getByRole("link", { name: "@preset/broken-first" }).waitFor();
    expect(at(await scene.ask("owner", "GET", "/presets/broken-first"), "config")).toEqual({
      model: "acme/large",
      provider: { order: ["broken", "acme"] },
    });
    await page.getByLabel("Zero retention only").check();
    await page.getByRole("button", { name: "Show the order" }).click();
    await page.getByText("No provider is left. Loosen a rule above.").waitFor();
    await screen.close();
  });

  test("a key is created with a limit, shown once, edited, rotated, given a child and deleted", async () => {
    const screen = await scene.open("developer", "/keys");
    const { page } = screen;
    await tabTo(page, "Create key");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").locator("input:focus").waitFor();
    await page.keyboard.type("Robot");
    await page.getByLabel("Spending cap in USD").focus();
    await page.keyboard.type("5");
    await page.keyboard.press("Enter");
    const secret = await page
      .getByRole("dialog", { name: "Your key" })
      .locator("code")
      .first()
      .innerText();
    expect(secret).toStartWith("sk-svc-v1-");
    for (const [client, words] of [
      ["codex", "wire_api"],
      ["claude", "ANTHROPIC_AUTH_TOKEN"],
      ["python", "from openai"],
    ] as const) {
      await page.getByLabel("Use it with").selectOption(client);
      expect(await page.getByRole("dialog").locator("code").last().innerText()).toContain(words);
    }
    await expectSound(screen);
    await page.getByRole("button", { name: "I have copied it" }).click();
    const row = page.getByRole("row").filter({ hasText: "Robot" }).first();
    await act(row, "Edit");
    await page.getByText("More limits").click();
    await page.getByLabel("Allowed models").fill("acme/large");
    await page.getByLabel("Allowed tools").fill("docs/search");
    await page.getByLabel("Tokens a minute").fill("1000");
    const endpoints = page.getByLabel("Allowed endpoints");
    await endpoints.fill("nonsense");
    await page.getByText("More limits").click();
    await page.getByRole("button", { name: "Save key" }).click();
    await page.locator("textarea[aria-invalid]:focus + [role=alert]").waitFor();
    expect(screen.problems.splice(0)).toHaveLength(1);
    await endpoints.fill("");
    await page.getByRole("button", { name: "Save key" }).click();
    await page.getByText("Key saved").waitFor();
    await row.getByText("1 model, 1,000 tokens a minute").waitFor();
    await act(row, "Disable");
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Key enabled").waitFor();
    await act(row, "Add child");
    await page.getByLabel("Name").fill("Robot's child");
    await page.getByRole("button", { name: "Create key" }).last().click();
    await page.getByRole("dialog", { name: "Your key" }).waitFor();
    await page.getByRole("button", { name: "I have copied it" }).click();
    await page.getByText("↳ Robot's child").waitFor();
    const status = async (key: string): Promise<number> =>
      (await fetch(`${scene.gateway.baseUrl}/key`, { headers: { authorization: `Bearer ${key}` } }))
        .status;
    const rotated = async (grace: string): Promise<string> => {
      await act(row, "Rotate");
      await page.getByLabel("The old secret").selectOption(grace);
      await page.getByRole("button", { name: "Rotate key" }).click();
      const fresh = await page
        .getByRole("dialog", { name: "Your key" })
        .locator("code")
        .first()
        .innerText();
      // A secret that is shown once is not lost by a key pressed by mistake.
      await page.keyboard.press("Escape");
      expect(await page.getByRole("dialog", { name: "Your key" }).isVisible()).toBe(true);
      await page.getByRole("button", { name: "I have copied it" }).click();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      return fresh;
    };
    const second = await rotated("3600");
    expect([await status(secret), await status(second)]).toEqual([200, 200]);
    const third = await rotated("0");
    expect([await status(second), await status(third)]).toEqual([401, 200]);
    await act(row, "Delete");
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await act(row, "Delete");
    await page.getByRole("button", { name: "Delete key" }).click();
    await page.getByText("↳ Robot's child").waitFor({ state: "detached" });
    const names = listAt(await scene.ask("developer", "GET", "/keys"), "data").map((key) =>
      textAt(key, "name"),
    );
    expect(names).not.toContain("Robot");
    await screen.close();
  });

  test("operators give keys of their personal workspace their rights, right after signing in", async () => {
    const enter = (id: string): Promise<unknown> =>
      scene.ask("operator", "PATCH", "/session", { workspace_id: id });
    const workspaces = listAt(await scene.ask("operator", "GET", "/workspaces"), "data");
    const personal = workspaces
      .map((each) => textAt(each, "id"))
      .find((id) => id !== scene.workspaceId);
    await enter(personal ?? "");
    const screen = await scene.open("operator", "/keys");
    const { page } = screen;
    await page.getByRole("button", { name: "Create key" }).first().click();
    await page.getByLabel("Name").fill("Steward");
    await page.getByLabel("Operator's rights").check();
    await expectSound(screen);
    await page.getByRole("button", { name: "Create key" }).last().click();
    await page.getByRole("button", { name: "I have copied it" }).click();
    const row = page.getByRole("row").filter({ hasText: "Steward" });
    const mark = row.getByText("operator", { exact: true });
    await mark.waitFor();
    const isOperator = async (): Promise<unknown> =>
      at(await scene.ask("operator", "GET", "/keys"), "data.0.operator");
    expect(await isOperator()).toBe(true);
    await act(row, "Edit");
    await page.getByLabel("Operator's rights").uncheck();
    await page.getByRole("button", { name: "Save key" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await mark.waitFor({ state: "detached" });
    expect(await isOperator()).toBe(false);
    // A session of an hour.
    const anHourAgo = new Date(Date.now() - 3_600_000).toISOString();
    await withTables<Pick<PeopleTables, "user_sessions">>(scene.gateway.app.storage.database)
      .updateTable("user_sessions")
      .set({ created_at: anHourAgo })
      .execute();
    await act(row, "Edit");
    await page.getByLabel("Operator's rights").check();
    await page.getByRole("button", { name: "Save key" }).click();
    await page
      .getByText("sign in again first: this needs a session of at most 15 minutes")
      .waitFor();
    expect(await isOperator()).toBe(false);
    await screen.close();
    await enter(scene.workspaceId);
    const shared = await scene.open("operator", "/keys");
    await shared.page.getByRole("button", { name: "Create key" }).first().click();
    await shared.page.getByLabel("Name").waitFor();
    expect(await shared.page.getByLabel("Operator's rights").count()).toBe(0);
    await shared.close();
  });

  test("a management key is created with the chosen scopes and revoked", async () => {
    const screen = await scene.open("owner", "/keys");
    const { page } = screen;
    await tabTo(page, "Create management key");
    await page.keyboard.press("Enter");
    await page.getByLabel("Name").fill("Deployer");
    await page.getByLabel("see usage and requests").check();
    await page.getByRole("button", { name: "Create management key" }).last().click();
    const secret = await page
      .getByRole("dialog", { name: "Your management key" })
      .locator("code")
      .first()
      .innerText();
    const status = async (path: string): Promise<number> =>
      (
        await fetch(scene.gateway.baseUrl + path, {
          headers: { authorization: `Bearer ${secret}` },
        })
      ).status;
    expect([await status("/budgets"), await status("/keys")]).toEqual([200, 403]);
    await page.getByRole("button", { name: "I have copied it" }).click();
    await expectSound(screen);
    await page
      .getByRole("row")
      .filter({ hasText: "Deployer" })
      .getByRole("button", { name: "Revoke" })
      .click();
    await page.getByLabel("Reason").fill("no longer needed");
    await page.getByRole("button", { name: "Revoke key" }).click();
    // Rows are hidden from roles while the dialog is open, which closes when the key is revoked.
    await page.getByRole("alertdialog").or(page.getByRole("dialog")).waitFor({ state: "detached" });
    await page.getByRole("row").filter({ hasText: "Deployer" }).waitFor({ state: "detached" });
    expect(await status("/budgets")).toBe(401);
    await screen.close();
  });
});
