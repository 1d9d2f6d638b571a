import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasChromium } from "../../support/chromium.ts";
import { isNightly } from "../../support/nightly.ts";
import {
  type FirefoxPage,
  hasFirefox,
  missingFirefox,
  startFirefox,
} from "../../support/firefox.ts";
import { startDashboardScene, type DashboardScene } from "./dashboard-scene.ts";
import { screens } from "./every-screen.ts";
import { geometryScript } from "./geometry.ts";
import { followLink } from "./screen.ts";

const sizes = [
  { width: 390, height: 844 },
  { width: 1280, height: 800 },
] as const;
/** Resolves once the screen stands: nothing on it is loading any more. */
const standing = `new Promise((resolve) => {
  const look = () => document.querySelector("main h1") !== null &&
    document.querySelector('main [data-loading="true"]') === null ? resolve("") : setTimeout(look, 30);
  look();
})`;
/** Charts take the new width with the frame after the one that has it. */
const painted = `new Promise((resolve) => {
  const next = (left) => left === 0 ? resolve("") : requestAnimationFrame(() => setTimeout(next, 0, left - 1));
  next(4);
})`;
const tabKey = "\uE004";

// The scene needs the other browser as well.
describe.skipIf(!hasFirefox || !hasChromium)(`the screens in Firefox${missingFirefox}`, () => {
  let scene: DashboardScene;
  let page: FirefoxPage;
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, { livelyRows: 2_000 });
    page = await startFirefox();
  }, 240_000);
  afterAll(async () => {
    await page.close();
    await scene.stop();
  });

  test("every screen stands without an error, a cut text or sideways scrolling", async () => {
    await page.setCookie({ ...scene.cookieOf("operator"), domain: "localhost" });
    const findings: string[] = [];
    await page.go(`${scene.origin}/dashboard`);
    await page.evaluate(standing);
    // The sections of a screen are of the same parts.
    const whole = screens.filter(([each]) => !each.includes("?"));
    for (const [place, [path]] of whole.entries()) {
      await page.evaluate(followLink(`/dashboard${path}`));
      await page.evaluate(standing);
      // By day at one size each, in turns.
      for (const size of sizes.filter((_, each) => isNightly || (each + place) % 2 === 0)) {
        await page.resize(size);
        await page.evaluate(painted);
        const found = JSON.parse(await page.evaluate(`JSON.stringify(${geometryScript})`));
        findings.push(...[found].flat().map((each) => `${path} ${size.width}: ${String(each)}`));
      }
    }
    expect(findings).toEqual([]);
    expect(page.problems).toEqual([]);
  }, 240_000);

  test("the tab key leads from the skip link through the navigation to the content", async () => {
    await page.resize(sizes[1]);
    await page.go(`${scene.origin}/dashboard/keys`);
    await page.evaluate(standing);
    const names: string[] = [];
    while (!names.includes("Create key") && names.length < 40) {
      await page.press(tabKey);
      names.push(await page.evaluate("document.activeElement.textContent.trim()"));
    }
    expect(names[0]).toBe("Skip to the content");
    expect(names.indexOf("Keys")).toBeGreaterThan(names.indexOf("Activity"));
    expect(names).toContain("Create key");
  }, 240_000);
});
