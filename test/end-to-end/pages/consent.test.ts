import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { brand } from "../../../src/platform/kernel/brand.ts";
import {
  axeFindings,
  darkFindings,
  hasChromium,
  missingChromium,
  sidewaysPixels,
  turn,
} from "../../support/chromium.ts";
import { textAt } from "../api/at.ts";
import { engines } from "../api/two-workspaces.ts";
import { ownersEmail, signIn, startPageScene, type PageScene } from "./page-scene.ts";

const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWBuGJSstw-cM";
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";

describe.skipIf(!hasChromium).each(engines)(
  `consent in a browser, on %s${missingChromium}`,
  (_, freshUrl) => {
    let scene: PageScene;
    let app: Bun.Server<undefined>;
    beforeAll(async () => {
      scene = await startPageScene(await freshUrl());
      app = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        fetch: () => new Response("back at the app"),
      });
    }, 240_000);
    afterEach(() => scene.putBackWindows());
    afterAll(async () => {
      await app.stop(true);
      await scene.stop();
    });

    const callback = (): string => `http://127.0.0.1:${app.port}/cb`;
    const post = async (path: string, body: string | URLSearchParams): Promise<unknown> =>
      (await fetch(scene.gateway.baseUrl + path, { method: "POST", body })).json();
    const authPath = (): string =>
      `/auth?callback_url=${encodeURIComponent(callback())}&code_challenge=${challenge}&state=mine&limit=5`;
    const oauthPath = async (): Promise<string> => {
      const client = await post(
        "/mcp/oauth/register",
        JSON.stringify({ redirect_uris: [callback()], client_name: "An app" }),
      );
      const query = {
        client_id: textAt(client, "client_id"),
        redirect_uri: callback(),
        response_type: "code",
        state: "mine",
      };
      const proof = { code_challenge: challenge, code_challenge_method: "S256" };
      return `/api/v1/mcp/oauth/authorize?${new URLSearchParams({ ...query, ...proof }).toString()}`;
    };
    const startDevice = async (): Promise<{ deviceCode: string; userCode: string }> => {
      const answer = await post(
        "/oauth/device/code",
        new URLSearchParams({ client_name: "A shell" }),
      );
      return { deviceCode: textAt(answer, "device_code"), userCode: textAt(answer, "user_code") };
    };
    const poll = (deviceCode: string): Promise<unknown> =>
      post(
        "/oauth/token",
        new URLSearchParams({ grant_type: deviceGrant, device_code: deviceCode }),
      );

    test.each(["Approve", "Decline"] as const)(
      "a device: %s, with signing in on the way",
      async (choice) => {
        const { deviceCode, userCode } = await startDevice();
        const { page } = await scene.open();
        await page.goto(`${scene.origin}/device?user_code=${userCode}`);
        await page.getByRole("button", { name: "Continue" }).click();
        await page.waitForURL(/sign-in/);
        await signIn(page, ownersEmail);
        await page.waitForURL(/device/);
        await page.getByRole("button", { name: "Continue" }).click();
        await page.getByRole("button", { name: choice }).click();
        await page
          .getByRole("heading", {
            name: choice === "Approve" ? "A shell is connected" : "Declined",
          })
          .waitFor();
        const answer = await poll(deviceCode);
        if (choice === "Approve") expect(textAt(answer, "access_token")).toStartWith("sk-svc-");
        else expect(textAt(answer, "error")).toBe("access_denied");
      },
    );

    test.each(["/auth", "OAuth"])(
      "%s redirects to the app with a code, or with an error when declined",
      async (kind) => {
        const { page } = await scene.openAs(ownersEmail);
        for (const choice of ["Decline", "Approve"]) {
          await page.goto(scene.origin + (kind === "/auth" ? authPath() : await oauthPath()));
          await page.getByRole("button", { name: choice }).click();
          await page.waitForURL(/\/cb\?/);
          const { searchParams } = new URL(page.url());
          expect(searchParams.get("state")).toBe("mine");
          expect([searchParams.has("code"), searchParams.get("error")]).toEqual(
            choice === "Approve" ? [true, null] : [false, "access_denied"],
          );
        }
      },
    );

    test("an ended session signs in again and returns to the decision", async () => {
      const { context, page } = await scene.openAs(ownersEmail);
      await page.goto(scene.origin + authPath());
      await context.clearCookies({ name: brand.sessionCookie });
      await page.getByRole("button", { name: "Approve" }).click();
      await page.waitForURL(/sign-in/);
      await signIn(page, ownersEmail);
      await page.getByRole("button", { name: "Approve" }).click();
      await page.waitForURL(/\/cb\?code=/);
    });

    test("the pages have no axe findings, light and dark, and fit a phone", async () => {
      const { page } = await scene.openAs(ownersEmail, {
        colorScheme: "light",
        javaScriptEnabled: true,
        viewport: { width: 390, height: 844 },
      });
      const look = async (): Promise<void> => {
        expect([await axeFindings(page), await sidewaysPixels(page)]).toEqual([[], 0]);
        expect(await darkFindings(page)).toEqual([]);
        await turn(page, "light");
      };
      const { userCode } = await startDevice();
      const open = [
        () => page.goto(scene.origin + authPath()),
        async () => page.goto(scene.origin + (await oauthPath())),
        async () => {
          await page.goto(`${scene.origin}/device?user_code=${userCode}`);
          await page.getByRole("button", { name: "Continue" }).click();
          await page.getByRole("button", { name: "Approve" }).waitFor();
        },
      ];
      for (const each of open) {
        await each();
        expect(await page.getByRole("button", { name: "Approve" }).count()).toBe(1);
        await look();
      }
      await page.getByRole("button", { name: "Approve" }).click();
      await page.getByRole("heading", { name: "A shell is connected" }).waitFor();
      await look();
      await page.goto(`${scene.origin}/api/v1/mcp/oauth/authorize?client_id=unknown`);
      await page
        .getByRole("heading", { name: "This app sent a request that cannot be trusted" })
        .waitFor();
      await look();
    });

    test("going back after a decision and deciding again shows the earlier decision", async () => {
      const { deviceCode, userCode } = await startDevice();
      const { page } = await scene.openAs(ownersEmail);
      await page.goto(`${scene.origin}/device?user_code=${userCode}`);
      await page.getByRole("button", { name: "Continue" }).click();
      await page.getByRole("button", { name: "Approve" }).dblclick();
      await page.getByRole("heading", { name: "A shell is connected" }).waitFor();
      expect(textAt(await poll(deviceCode), "access_token")).toStartWith("sk-svc-");
      await page.goto(`${scene.origin}/device?user_code=${userCode}`);
      await page.getByRole("button", { name: "Continue" }).click();
      await page.getByRole("heading", { name: "A shell is connected" }).waitFor();
    });

    test("switching accounts returns to the same request", async () => {
      const { page } = await scene.openAs(ownersEmail);
      await page.goto(scene.origin + authPath());
      await page.getByRole("link", { name: "Use another account" }).click();
      await page.getByRole("button", { name: "Sign out" }).click();
      await signIn(page, ownersEmail);
      await page.getByRole("button", { name: "Approve" }).click();
      await page.waitForURL(/\/cb\?code=/);
    });
  },
);
