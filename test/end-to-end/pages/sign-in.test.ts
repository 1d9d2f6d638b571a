import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { brand } from "../../../src/platform/kernel/brand.ts";
import { codeOf } from "../../support/authenticator-app.ts";
import { cookieOf, hasChromium, missingChromium, otherName } from "../../support/chromium.ts";
import { textAt } from "../api/at.ts";
import { engines } from "../api/two-workspaces.ts";
import {
  fillPerson,
  ownersEmail,
  password,
  signIn,
  startPageScene,
  type PageScene,
} from "./page-scene.ts";

describe.skipIf(!hasChromium).each(engines)(
  `in a browser without JavaScript, on %s${missingChromium}`,
  (_, freshUrl) => {
    let scene: PageScene;
    beforeAll(async () => {
      scene = await startPageScene(await freshUrl());
    }, 240_000);
    afterEach(() => scene.putBackWindows());
    afterAll(() => scene.stop());

    test("claiming opens the start page, also after a double click, and later shows that there is an owner", async () => {
      const fresh = await startPageScene(await freshUrl(), { claimed: false });
      try {
        const { page } = await fresh.open();
        await page.goto(fresh.origin);
        expect(await page.getByText("This service has no owner yet").isVisible()).toBe(true);
        const dead = await page.goto(`${fresh.origin}/claim?token=dead`);
        expect([
          dead?.status(),
          await page.getByRole("heading", { level: 1 }).textContent(),
        ]).toEqual([404, "This link does not work"]);
        const token = await fresh.gateway.app.issueClaim();
        await page.goto(`${fresh.origin}/claim?token=${token}`);
        await fillPerson(page, { name: "Olga", email: ownersEmail });
        await page.getByRole("button").dblclick();
        // The second click may end the first one's navigation, so the page itself is waited for.
        await page.getByRole("heading", { name: "Welcome, Olga", level: 1 }).waitFor();
        expect(page.url()).toBe(`${fresh.origin}/`);
        expect(await page.getByRole("heading", { level: 2 }).count()).toBe(3);
        await page.goto(`${fresh.origin}/claim?token=${token}`);
        expect(page.url()).toBe(`${fresh.origin}/`);
        const other = await fresh.open();
        await other.page.goto(`${fresh.origin}/claim?token=${token}`);
        expect(await other.page.getByRole("heading", { level: 1 }).textContent()).toBe(
          "This service has an owner",
        );
      } finally {
        await fresh.stop();
      }
    }, 240_000);

    test("a wrong password shows an error and keeps the address, and the right one opens the requested page", async () => {
      const { context, page } = await scene.open();
      await page.goto(`${scene.origin}/device?user_code=BCDF-GHJK`);
      await page.getByRole("button").click();
      await page.waitForURL(/sign-in/);
      await signIn(page, ownersEmail, "not the password");
      expect(await page.getByRole("alert").textContent()).toBe(
        "The e-mail address or the password is wrong.",
      );
      expect(await page.getByLabel("E-mail address").inputValue()).toBe(ownersEmail);
      expect(await cookieOf(context, brand.sessionCookie)).toBeUndefined();
      await signIn(page, ownersEmail);
      await page.waitForURL(`${scene.origin}/device?user_code=BCDF-GHJK`);
    });

    test("signing out needs a button press, and neither going back nor the old cookie signs in", async () => {
      const { context, page } = await scene.openAs(ownersEmail);
      const old = await context.cookies();
      await page.goto(`${scene.origin}/sign-out`);
      expect(await cookieOf(context, brand.sessionCookie)).toBeDefined();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.waitForURL(/sign-in/);
      expect(await page.getByText("You are signed out.").isVisible()).toBe(true);
      await page.goBack();
      await page.goBack();
      expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe("Sign in");
      await context.addCookies(old);
      await page.goto(scene.origin);
      expect(page.url()).toBe(`${scene.origin}/sign-in`);
    });

    test("a new session has a new id, even if the browser already has a cookie", async () => {
      const { context, page } = await scene.openAs(ownersEmail);
      const planted = await cookieOf(context, brand.sessionCookie);
      const victim = await scene.open();
      await victim.context.addCookies([
        { name: brand.sessionCookie, value: "planted.by-somebody", url: scene.origin },
      ]);
      await victim.page.goto(`${scene.origin}/sign-in`);
      await signIn(victim.page, ownersEmail);
      await victim.page.waitForURL(`${scene.origin}/`);
      const own = await cookieOf(victim.context, brand.sessionCookie);
      expect([own === planted, own === "planted.by-somebody"]).toEqual([false, false]);
      await page.goto(`${scene.origin}/sign-in`);
      expect(page.url()).toBe(`${scene.origin}/`);
    });

    test("a reset link replaces a password once, and an expired one says so before a password is typed", async () => {
      const link = await scene.invitation("rita@example.com");
      const { page } = await scene.open();
      await page.goto(link);
      await fillPerson(page, { name: "Rita" });
      await page.getByRole("button", { name: "Create an account and join" }).click();
      await page.waitForURL(/joined=/);
      const fresh = await scene.open();
      await fresh.page.goto(`${scene.origin}/sign-in`);
      await fresh.page.getByRole("link", { name: "Forgot your password?" }).click();
      await fresh.page.getByLabel("E-mail address").fill("rita@example.com");
      await fresh.page.getByRole("button", { name: "Send the link" }).click();
      await fresh.page.waitForURL(/sent/);
      const reset = await scene.mailedLink("rita@example.com");
      await fresh.page.goto(reset);
      await fresh.page.getByLabel("New password").fill("another long password");
      await fresh.page.getByRole("button").click();
      await fresh.page.waitForURL(/note=password/);
      await page.goto(scene.origin);
      expect(page.url()).toBe(`${scene.origin}/sign-in`);
      await signIn(fresh.page, "rita@example.com", "another long password");
      await fresh.page.waitForURL(`${scene.origin}/`);
      const dead = await page.goto(reset);
      expect([dead?.status(), await page.getByLabel("New password").count()]).toEqual([404, 0]);
      expect(await page.getByRole("button", { name: "Send another link" }).isVisible()).toBe(true);
    });

    test("signing up completes with the mailed link", async () => {
      const { page } = await scene.open();
      await page.goto(`${scene.origin}/sign-in?return_to=/device`);
      await page.getByRole("link", { name: "Create an account" }).click();
      await fillPerson(page, { name: "Sina", email: "sina@example.com" });
      await page.getByRole("button", { name: "Create the account" }).click();
      await page.waitForURL(/sent/);
      await page.goto(await scene.mailedLink("sina@example.com"));
      await page.getByRole("button", { name: "Confirm the address" }).click();
      await page.waitForURL(/note=confirmed/);
      await signIn(page, "sina@example.com");
      await page.waitForURL(`${scene.origin}/`);
    });

    test("an invitation is accepted with a new account, an existing one, or a button when signed in", async () => {
      const { page } = await scene.open();
      const email = "gustav@example.com";
      await page.goto(await scene.invitation(email));
      await fillPerson(page, { name: "Gustav" });
      await page.getByRole("button", { name: "Create an account and join" }).dblclick();
      await page.getByRole("heading", { name: "You are a member of Acme & Sons" }).waitFor();
      expect(page.url()).toContain("joined=");
      await scene.removeMember(email);
      const elsewhere = await scene.open();
      await elsewhere.page.goto(await scene.invitation(email));
      await elsewhere.page.getByLabel("Password of your account").fill(password);
      await elsewhere.page.getByRole("button", { name: "Sign in and join" }).click();
      await elsewhere.page.waitForURL(/joined=/);
      await scene.removeMember(email);
      await page.goto(await scene.invitation(email));
      expect(await page.getByRole("button").count()).toBe(1);
      await page.getByRole("button", { name: "Join" }).click();
      await page.waitForURL(/joined=/);
      await scene.removeMember(email);
      const owner = await scene.openAs(ownersEmail);
      await owner.page.goto(await scene.invitation(email));
      await owner.page.getByRole("link", { name: "Use another account" }).click();
      await owner.page.getByRole("button", { name: "Sign out" }).click();
      await signIn(owner.page, email);
      await owner.page.waitForURL(/join\?token=/);
    });

    test("a second factor is requested on a separate page", async () => {
      const { page } = await scene.open();
      await page.goto(await scene.invitation("theo@example.com"));
      await fillPerson(page, { name: "Theo" });
      await page.getByRole("button", { name: "Create an account and join" }).click();
      await page.waitForURL(/joined=/);
      const { context } = await scene.openAs("theo@example.com");
      const set = await scene.ask(context, "POST", "/api/auth/two-factor/enable", { password });
      const uri = textAt(set, "totp_uri");
      await scene.ask(context, "POST", "/api/auth/two-factor/confirm", {
        code: codeOf(uri, Date.now()),
      });
      const fresh = await scene.open();
      await fresh.page.goto(`${scene.origin}/sign-in?return_to=/device`);
      await signIn(fresh.page, "theo@example.com");
      await fresh.page.waitForURL(/sign-in\/code/);
      expect(await cookieOf(fresh.context, brand.sessionCookie)).toBeUndefined();
      await fresh.page.getByLabel("Code").fill("000000");
      await fresh.page.getByRole("button", { name: "Sign in" }).click();
      expect(await fresh.page.getByRole("alert").textContent()).toContain("This code is not valid");
      await fresh.page.getByLabel("Code").fill(textAt(set, "backup_codes.0"));
      await fresh.page.getByRole("button", { name: "Sign in" }).click();
      await fresh.page.waitForURL(`${scene.origin}/device`);
    });

    test("an OpenID provider signs in with its button and returns to the requested page", async () => {
      scene.provider.person = {
        sub: "pia",
        email: "pia@example.com",
        emailVerified: true,
        name: "Pia",
      };
      const { page } = await scene.open();
      await page.goto(
        `${scene.origin}/sign-in?return_to=${encodeURIComponent("/device?user_code=BCDF-GHJK")}`,
      );
      await page.getByRole("button", { name: "Sign in with Acme" }).click();
      await page.waitForURL(`${scene.origin}/device?user_code=BCDF-GHJK`);
    });

    test("another host name works, and links to the public one for passkeys", async () => {
      const there = scene.origin.replace("localhost", otherName);
      const { page } = await scene.open();
      await page.goto(there);
      expect(await page.getByRole("link", { name: `${scene.origin}/sign-in` }).isVisible()).toBe(
        true,
      );
      await signIn(page, ownersEmail);
      await page.waitForURL(`${there}/`);
      await page.goto(`${there}/sign-out`);
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.waitForURL(/note=signed-out/);
    });

    test("a passkey can be added and used to sign in", async () => {
      const { context, page } = await scene.openAs(ownersEmail, { javaScriptEnabled: true });
      const session = await context.newCDPSession(page);
      await session.send("WebAuthn.enable");
      await session.send("WebAuthn.addVirtualAuthenticator", {
        options: {
          protocol: "ctap2",
          transport: "internal",
          hasResidentKey: true,
          hasUserVerification: true,
          isUserVerified: true,
          automaticPresenceSimulation: true,
        },
      });
      await page.getByRole("button", { name: "Add a passkey" }).click();
      await page.getByText("The passkey is added.").waitFor();
      await context.clearCookies();
      await page.goto(`${scene.origin}/sign-in?return_to=/device`);
      await page.getByRole("button", { name: "Sign in with a passkey" }).click();
      await page.waitForURL(`${scene.origin}/device`);
      // With the passkey's device, which would sign in others.
      await context.close();
    });
  },
);
