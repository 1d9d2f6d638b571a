import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { startDashboardScene, type DashboardScene } from "./dashboard-scene.ts";
import { expectSound, type Screen } from "./screen.ts";

describe.skipIf(!hasChromium)(
  `screens with failed parts, and wide screens${missingChromium}`,
  () => {
    let scene: DashboardScene;
    beforeAll(async () => {
      scene = await startDashboardScene(undefined, { runsOn: true });
    }, 240_000);
    afterAll(() => scene.stop());

    /** Opens a screen for the owner while one path of the API answers 503. */
    const openWithout = async (path: string, failing: string): Promise<Screen> => {
      const screen = await scene.open("owner", "/account");
      await screen.page.route(
        (url) => url.pathname === `/api/v1/${failing}`,
        (route) => route.fulfill({ status: 503, json: { error: { message: "It is away." } } }),
      );
      await screen.follow(path);
      return screen;
    };

    test.each([
      ["", "health", "Providers, last hour", "Latest requests"],
      ["", "analytics/generations", "Latest requests", "Spend by model, last 14 days, UTC"],
      ["/activity", "analytics/errors", "Figures of the range", "Requests"],
      ["/activity", "analytics/generations/histogram", "Figures of the range", "Requests"],
    ])(
      "%s without the response of %s reports it in one card and shows the rest",
      async (path, failing, card, alive) => {
        const screen = await openWithout(path, failing);
        const { page } = screen;
        const region = page.getByRole("region", { name: card });
        await region.getByRole("alert").getByText("It is away.").waitFor();
        expect(await page.getByRole("alert").count()).toBe(1);
        const rest = page.getByRole("region", { name: alive });
        expect(await rest.getByRole("row").or(rest.getByRole("img")).count()).toBeGreaterThan(0);
        await page.unrouteAll();
        await region.getByRole("button", { name: "Try again" }).click();
        await region.getByRole("alert").waitFor({ state: "detached" });
        expect(new Set(screen.problems.splice(0))).toEqual(new Set([`503 GET /api/v1/${failing}`]));
        await expectSound(screen);
        await screen.close();
      },
    );

    test("the set-up steps leave out what could not be loaded", async () => {
      const screen = await openWithout("", "credits");
      const { page } = screen;
      await page.getByText("Set up: 2 of 3").waitFor();
      await page.getByRole("link", { name: "Set a budget" }).waitFor();
      expect(await page.getByText("Add credits or a provider key").count()).toBe(0);
      await screen.close();
    });

    test.each([
      ["", "credits", ["The balance"], "Balance"],
      ["", "analytics/usage", ["Spend and requests", "The period before"], "Spend"],
      ["/credits", "credits", ["The balance"], "Balance"],
    ])(
      "%s names the figures that could not be loaded without the response of %s, and retries",
      async (path, failing, unread, shown) => {
        const screen = await openWithout(path, failing);
        const { page } = screen;
        const alerts = unread.map((what) =>
          page.getByRole("alert").filter({ hasText: `${what} could not be read.It is away.` }),
        );
        for (const alert of alerts) await alert.waitFor();
        expect(await page.getByRole("region", { name: /./ }).count()).toBeGreaterThan(1);
        await page.unrouteAll();
        for (const alert of alerts) {
          await alert.getByRole("button", { name: "Try again" }).click();
          await alert.waitFor({ state: "detached" });
        }
        const figure = page.getByText(shown, { exact: true }).locator("..");
        await figure.getByText(/^\$\d/).first().waitFor();
        expect(new Set(screen.problems.splice(0))).toEqual(new Set([`503 GET /api/v1/${failing}`]));
        await screen.close();
      },
    );

    test.each(["", "/activity", "/usage", "/models", "/operator"])(
      "%s passes the layout checks at 3840 pixels",
      async (path) => {
        const screen = await scene.open("operator", path, "light", {
          viewport: { width: 3840, height: 900 },
        });
        await expectSound(screen);
        const widest = await screen.page.evaluate(
          "Math.max(...[...document.querySelectorAll('main > *')].map((each) => each.getBoundingClientRect().width))",
        );
        expect(Number(widest)).toBeLessThanOrEqual(1_240);
        await screen.close();
      },
    );
  },
);
