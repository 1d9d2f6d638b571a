import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { codeOf } from "../../support/authenticator-app.ts";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { passwordOf, startDashboardScene, type DashboardScene } from "./dashboard-scene.ts";
import { act, enterWorkspace, expectSound, settled, tabTo, pick } from "./screen.ts";

describe.skipIf(!hasChromium)(`member, security and account screens${missingChromium}`, () => {
  let scene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, { runsOn: true });
  }, 240_000);
  afterAll(() => scene.stop());

  test("who can use a key is in one place: owner, models, limits, and the people who see it", async () => {
    await scene.ask("developer", "POST", "/keys", {
      name: "Narrow",
      limit: 5,
      limit_reset: "monthly",
      allowed_models: ["sandbox/chat:free"],
    });
    const screen = await scene.open("developer", "/keys", "phone");
    const { page } = screen;
    await act(page.getByRole("row", { name: /Narrow/ }), "Who can use it");
    const drawer = page.getByRole("dialog", { name: "Who can use Narrow" });
    for (const text of [
      "Developer Example",
      "sandbox/chat:free",
      "Every tool of the workspace",
      "$5.00 a month, of which $5.00 are left",
      "Owner Example, owner",
      "Member Example, member",
    ])
      await drawer.getByText(text, { exact: true }).first().waitFor();
    await drawer.locator("summary").click();
    await drawer
      .getByText(/\/embeddings$/)
      .first()
      .waitFor();
    await expectSound(screen);
    await screen.close();
  });

  test("a colleague is invited with the keyboard only and joins on a phone", async () => {
    const screen = await scene.open("owner", "/members");
    const { page } = screen;
    await tabTo(page, "Invite by e-mail");
    await page.keyboard.type("colleague@example.com");
    await page.keyboard.press("Enter");
    await page.getByText("Send this link to colleague@example.com.").waitFor();
    const link = await page.locator("code").filter({ hasText: "/join?token=" }).innerText();
    await expectSound(screen);
    await screen.close();
    const phone = await scene.openSignedOut(link.slice(scene.origin.length), "phone");
    await phone.page.getByLabel("Your name").fill("Carla Colleague");
    await phone.page.getByLabel("Password", { exact: true }).fill("a password of some length");
    await phone.page.getByRole("button", { name: "Create an account and join" }).click();
    await phone.page.waitForURL(`${scene.origin}/dashboard`);
    await phone.go(`${scene.origin}/dashboard/members`);
    // The colleague works in the organisation, and not in an empty workspace of their own.
    await phone.page.getByRole("combobox", { name: "Workspace: Acme & Sons" }).waitFor();
    await phone.page.getByRole("cell", { name: "colleague@example.com" }).waitFor();
    await expectSound(phone);
    await phone.close();
  });

  test("a person who creates an organisation works in it at once", async () => {
    const { page, close } = await scene.open("member", "/members");
    await page.getByLabel("Name", { exact: true }).fill("Own venture");
    await page.getByRole("button", { name: "Create organisation" }).click();
    await page.getByRole("region", { name: "Settings of Own venture" }).waitFor();
    await page.getByRole("combobox", { name: "Workspace: Own venture" }).waitFor();
    // Of several organisations one is shown.
    const sections = page.getByRole("navigation", { name: "Sections" });
    await sections.getByRole("button", { name: "Acme & Sons" }).click();
    await page.getByRole("group", { name: "Members of Acme & Sons" }).waitFor();
    expect(await page.getByRole("region", { name: "Settings of Own venture" }).count()).toBe(0);
    await close();
  });

  test("roles are changed, a new owner needs confirmation, and a member is removed with their keys", async () => {
    const screen = await scene.open("owner", "/members");
    const { page } = screen;
    const roles = async (): Promise<Record<string, unknown>> =>
      Object.fromEntries(
        listAt(
          await scene.ask("operator", "GET", `/organizations/${scene.organizationId}/members`),
          "data",
        ).map((each) => [textAt(each, "name"), at(each, "role")]),
      );
    const changed = () =>
      page.waitForResponse((response) => response.request().method() === "PATCH" && response.ok());
    const promoted = changed();
    await page.getByLabel("Role of Member Example").selectOption("admin");
    await page.getByRole("button", { name: "Make admin" }).click();
    await promoted;
    await page.getByLabel("Role of Developer Example").selectOption("owner");
    const transferred = changed();
    await page.getByRole("button", { name: "Make owner" }).click();
    await transferred;
    expect(await roles()).toMatchObject({
      "Member Example": "admin",
      "Developer Example": "owner",
    });
    await page
      .getByRole("row")
      .filter({ hasText: "member@example.com" })
      .getByRole("button", { name: "Remove" })
      .click();
    const removed = page.waitForResponse(
      (response) => response.request().method() === "DELETE" && response.ok(),
    );
    await page
      .getByRole("dialog", { name: "Remove Member Example" })
      .getByRole("button", { name: "Remove member" })
      .click();
    await removed;
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(Object.keys(await roles())).not.toContain("Member Example");
    await expectSound(screen);
    await screen.close();
  });

  test("security shows the caller's address, prevents a lockout, saves privacy and lists the audit log", async () => {
    const screen = await scene.open("owner", "/security");
    const { page } = screen;
    await page.getByText(/You come from/).waitFor();
    await page.getByLabel("Address or range").fill("203.0.113.0/24");
    await page.getByRole("button", { name: "Allow range" }).click();
    await page.getByRole("alert").waitFor();
    await page.getByRole("button", { name: "Use your address" }).click();
    await page.getByRole("button", { name: "Allow range" }).click();
    await page.getByRole("group", { name: "Allowed addresses" }).getByText("127.0.0.1").waitFor();
    await page
      .getByRole("group", { name: "Allowed addresses" })
      .getByRole("button", { name: "Remove" })
      .click();
    await page.getByText("Every address may use this workspace.").waitFor();
    await pick(page, "Blocked providers", /acme/);
    await page.getByRole("button", { name: /^Remove Acme/ }).click();
    await pick(page, "Blocked providers", /broken/);
    await page.getByRole("button", { name: "Save privacy" }).click();
    await page.getByText("Privacy saved").waitFor();
    expect(await scene.ask("owner", "GET", "/security/privacy")).toMatchObject({
      blocked_providers: ["broken"],
    });
    await page.reload();
    await settled(page);
    await page
      .getByRole("group", { name: "Audit log" })
      .getByText("Change the privacy settings of the workspace")
      .first()
      .waitFor();
    await page.getByLabel("Action").selectOption("PATCH /security/privacy");
    await page
      .getByRole("group", { name: "Audit log" })
      .getByText("Add to the IP allowlist")
      .first()
      .waitFor({ state: "detached" });
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download CSV" }).click();
    expect((await saved).suggestedFilename()).toBe("audit.csv");
    // The range that shut the own address out.
    expect(screen.problems.splice(0)).toEqual(["400 POST /api/v1/security/ip-allowlist"]);
    await expectSound(screen);
    await screen.close();
  });

  test("preferences are stored per person, and a second factor is set up with its codes", async () => {
    const screen = await scene.open("operator", "/account");
    const { page } = screen;
    await page.getByLabel("Theme", { exact: true }).selectOption("dark");
    await page.getByLabel("Time zone").selectOption("UTC");
    await tabTo(page, "Save preferences");
    await page.keyboard.press("Enter");
    await page.getByText("Preferences saved").waitFor();
    expect(await scene.ask("operator", "GET", "/session/preferences")).toMatchObject({
      preferences: { theme: "dark", time_zone: "UTC" },
    });
    await expectSound(screen);
    await page.getByRole("button", { name: "Set up authenticator app" }).click();
    await page.getByLabel("Your password").fill(passwordOf("operator"));
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("img", { name: "QR code of the secret" }).waitFor();
    const uri = await page.getByRole("link", { name: "Open the app with it" }).getAttribute("href");
    await page.getByLabel("Code of the app").fill(codeOf(uri ?? "", Date.now()));
    await page.getByRole("button", { name: "Turn it on" }).click();
    await page.getByText("authenticator app", { exact: true }).waitFor();
    // An owner who has one may require it; a member without it is shown the way.
    await screen.go(`${scene.origin}/dashboard/members`);
    await page.getByRole("button", { name: "Require a second factor" }).click();
    await page.getByRole("button", { name: "Require it", exact: true }).click();
    await page.getByText("required of all members").waitFor();
    await expectSound(screen);
    const barred = await scene.open("developer", "/account", "phone");
    await barred.page.getByText("Acme & Sons requires a second factor.").waitFor();
    await enterWorkspace(barred.page, "Acme & Sons");
    await barred.page
      .getByRole("alert")
      .getByText(/Set one up in your account/)
      .waitFor();
    expect(barred.problems.splice(0)).toEqual(["403 PATCH /api/v1/session"]);
    await barred.page.keyboard.press("Escape");
    await barred.close();
    await page.getByRole("button", { name: "Require it no longer" }).click();
    await page.getByText("Left to each member").waitFor();
    await screen.close();
  });

  test("the set-up list is dismissed once for every browser of the person", async () => {
    const screen = await scene.open("developer", "");
    await screen.page.getByText(/^Set up: \d of 4$/).waitFor();
    await screen.page.getByRole("button", { name: "Dismiss" }).click();
    await screen.page.getByText(/^Set up:/).waitFor({ state: "detached" });
    await screen.close();
    const again = await scene.open("developer", "", "phone");
    expect(await again.page.getByText(/^Set up:/).count()).toBe(0);
    await again.close();
  });

  test("an app is disconnected with the keyboard only, and its key is refused at once", async () => {
    const key = textAt(await scene.ask("developer", "POST", "/session/playground-key"), "key");
    const status = async (): Promise<number> =>
      (
        await fetch(`${scene.gateway.baseUrl}/models`, {
          headers: { authorization: `Bearer ${key}` },
        })
      ).status;
    expect(await status()).toBe(200);
    const screen = await scene.open("developer", "/connections");
    await tabTo(screen.page, "Disconnect");
    await screen.page.keyboard.press("Enter");
    await screen.page.getByRole("dialog", { name: "Disconnect Playground" }).waitFor();
    await tabTo(screen.page, "Disconnect app");
    await screen.page.keyboard.press("Enter");
    await screen.page.getByText("No app is connected.").waitFor();
    expect(await status()).toBe(401);
    await expectSound(screen);
    await screen.close();
  });
});
