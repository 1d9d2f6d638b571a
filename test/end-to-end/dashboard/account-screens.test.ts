import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { linkIn, startMailServer } from "../api/receivers.ts";
import {
  emailOf,
  passwordOf,
  startDashboardScene,
  type DashboardScene,
} from "./dashboard-scene.ts";
import { expectSound, settled, tabTo } from "./screen.ts";

/** Gives the browser of a page a key that confirms every touch (WebAuthn, CDP); returns what takes it away. */
async function plugInAuthenticator(page: Page): Promise<() => Promise<void>> {
  const devTools = await page.context().newCDPSession(page);
  await devTools.send("WebAuthn.enable");
  await devTools.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  return () => devTools.detach();
}

async function signIn(page: Page, email: string, password: string): Promise<void> {
  await page.getByLabel("E-mail address").fill(email);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

describe.skipIf(!hasChromium)(`the account screen${missingChromium}`, () => {
  const mail = startMailServer();
  let scene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, {
      runsOn: true,
      seeded: false,
      mail: { url: mail.url, from: "noreply@example.com" },
    });
  }, 240_000);
  afterAll(async () => {
    await scene.stop();
    mail.stop();
  });

  test("a passkey can be added, used to sign in and removed", async () => {
    const screen = await scene.open("developer", "/account");
    const { page, context } = screen;
    const unplug = await plugInAuthenticator(page);
    await page.getByRole("button", { name: "Add passkey" }).click();
    const ways = page.getByRole("group", { name: "Ways to sign in" });
    await ways.getByText(/^Passkey/).waitFor();
    const methods = await scene.ask("developer", "GET", "/session/sign-in-methods");
    expect(
      listAt(methods, "data")
        .map((each) => at(each, "type"))
        .toSorted(),
    ).toEqual(["passkey", "password"]);
    await expectSound(screen);
    await context.clearCookies();
    await page.goto(`${scene.origin}/sign-in`);
    await page.getByRole("button", { name: /passkey/i }).click();
    await page.waitForURL(`${scene.origin}/dashboard`);
    await settled(page);
    await screen.go(`${scene.origin}/dashboard/account`);
    await ways
      .getByRole("row")
      .filter({ hasText: "Passkey" })
      .getByRole("button", { name: "Remove" })
      .click();
    await ways.getByText(/^Passkey/).waitFor({ state: "detached" });
    await unplug();
    await screen.close();
  });

  test("a session of another browser can be ended with the keyboard only, and can sign in again", async () => {
    const other = await scene.openSignedOut("/sign-in?return_to=/dashboard/models");
    await signIn(other.page, emailOf("owner"), passwordOf("owner"));
    await other.page.waitForURL(`${scene.origin}/dashboard/models`);
    await settled(other.page);
    const screen = await scene.open("owner", "/account");
    const { page } = screen;
    const sessions = page.getByRole("group", { name: "Sessions" });
    const ends = sessions.getByRole("button", { name: "End session" });
    expect(await sessions.getByText("this one").count()).toBe(1);
    expect(await ends.count()).toBe(1);
    await tabTo(page, "End session");
    await page.keyboard.press("Enter");
    await ends.waitFor({ state: "detached" });
    await expectSound(screen);
    await other.page.reload();
    await other.page.waitForURL(/\/sign-in\?return_to=/);
    await other.close();
    await screen.go(`${scene.origin}/dashboard/account`);
    expect(await sessions.getByText("this one").count()).toBe(1);
    await screen.close();
  });

  test("the e-mail address changes only after the link sent to the new address is used", async () => {
    const screen = await scene.open("developer", "/account");
    const { page } = screen;
    const sent = mail.mails.length;
    await page.getByText("Change the e-mail address").click();
    await page.getByLabel("New address").fill("moved@example.com");
    await page.getByLabel("Password of the account").fill(passwordOf("developer"));
    await page.getByRole("button", { name: "Change address" }).click();
    await page.getByText("A link was sent to moved@example.com.").waitFor();
    await scene.gateway.app.people.recovery.idle();
    const session = await scene.ask("developer", "GET", "/session");
    expect(textAt(session, "user.email")).toBe(emailOf("developer"));
    const link = mail.mails
      .slice(sent)
      .filter(({ to }) => to === "moved@example.com")
      .map(linkIn)
      .at(-1);
    await page.goto(link ?? "about:blank");
    await page.getByRole("button", { name: "Confirm the address" }).click();
    await page.getByText("Your account has this address.").waitFor();
    await screen.close();
    const other = await scene.openSignedOut("/sign-in");
    await signIn(other.page, emailOf("developer"), passwordOf("developer"));
    await other.page.getByRole("alert").waitFor();
    await signIn(other.page, "moved@example.com", passwordOf("developer"));
    await other.page.waitForURL(`${scene.origin}/dashboard`);
    await other.close();
  });

  test("deleting an account needs its typed address, and the account can no longer sign in", async () => {
    const screen = await scene.open("member", "/account");
    const { page } = screen;
    await page.getByRole("button", { name: "Delete account" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete your account" });
    const remove = dialog.getByRole("button", { name: "Delete account" });
    expect(await remove.isDisabled()).toBe(true);
    await dialog.getByLabel(`Type ${emailOf("member")} to confirm`).fill(emailOf("member"));
    await dialog.getByLabel("Your password").fill("not the password");
    await remove.click();
    await dialog.getByRole("alert").waitFor();
    await dialog.getByLabel("Your password").fill(passwordOf("member"));
    await remove.click();
    await page.waitForURL(/\/sign-in/);
    const members = await scene.ask(
      "operator",
      "GET",
      `/organizations/${scene.organizationId}/members`,
    );
    expect(listAt(members, "data").map((each) => at(each, "email"))).not.toContain(
      emailOf("member"),
    );
    await signIn(page, emailOf("member"), passwordOf("member"));
    await page.getByRole("alert").waitFor();
    await screen.close();
  });

  test("deleting an organization needs its typed name, and consent to give up credits; its keys stop working", async () => {
    const key = textAt(await scene.ask("owner", "POST", "/keys", { name: "Ends" }), "key");
    const status = async (): Promise<number> =>
      (
        await fetch(`${scene.gateway.baseUrl}/models`, {
          headers: { authorization: `Bearer ${key}` },
        })
      ).status;
    expect(await status()).toBe(200);
    const screen = await scene.open("owner", "/members");
    const { page } = screen;
    await page.getByRole("button", { name: "Delete organisation" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete Acme & Sons" });
    const remove = dialog.getByRole("button", { name: "Delete organisation" });
    await dialog.getByLabel("Type Acme & Sons to confirm").fill("Acme");
    expect(await remove.isDisabled()).toBe(true);
    await dialog.getByLabel("Type Acme & Sons to confirm").fill("Acme & Sons");
    await remove.click();
    // 25 USD are left of it.
    await dialog.getByRole("alert").waitFor();
    expect(await status()).toBe(200);
    await dialog.getByLabel("Give up what is left of the credits").check();
    await remove.click();
    await dialog.waitFor({ state: "detached" });
    await page.getByText("You are in no organisation.").waitFor();
    expect(await status()).toBe(401);
    await screen.close();
  });
});
