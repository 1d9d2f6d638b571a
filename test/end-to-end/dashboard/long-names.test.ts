import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasChromium, missingChromium, sidewaysPixels } from "../../support/chromium.ts";
import { textAt } from "../api/at.ts";
import { startDashboardScene, type DashboardScene } from "./dashboard-scene.ts";

/** A name as people paste it: too long for a line, and nowhere to break it. */
const longName = `production-${"0123456789abcdef".repeat(6)}`;
const wide = { viewport: { width: 1440, height: 900 } };
const narrow = { viewport: { width: 1024, height: 768 } };

/** The heights of the lines that texts take: one for each text that is not broken. */
const linesOf = (selector: string): string =>
  `[...document.querySelectorAll(${JSON.stringify(selector)})].map((each) => {
    const range = document.createRange();
    range.selectNodeContents(each);
    return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
  })`;

/** By how much the buttons of a row differ at most in height, in pixels. */
const buttonSteps = `Math.max(...[...document.querySelectorAll("tbody tr")].map((row) => {
  const tops = [...row.querySelectorAll("button")].map((each) => each.getBoundingClientRect().top);
  return tops.length === 0 ? 0 : Math.max(...tops) - Math.min(...tops);
}))`;

/** By how much the table of keys is wider than its place, in pixels. */
const hiddenPixels = `(() => {
  const { scrollWidth, clientWidth } = document.querySelector('[role="group"][aria-label="Keys"]');
  return scrollWidth - clientWidth;
})()`;

describe.skipIf(!hasChromium)(`tables with long names${missingChromium}`, () => {
  let scene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, { runsOn: true });
    const key = textAt(await scene.ask("owner", "POST", "/keys", { name: longName }), "key");
    const answer = await fetch(`${scene.gateway.baseUrl}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "x-title": longName },
      body: JSON.stringify({
        model: "sandbox/chat:free",
        messages: [{ role: "user", content: "Hi" }],
      }),
    });
    expect(answer.status).toBe(200);
    await answer.text();
  }, 240_000);
  afterAll(() => scene.stop());

  test.each(["", "/activity", "/keys"])(
    "%s breaks no time and no model's name, and shows two lines of a long one",
    async (path) => {
      const { page, close } = await scene.open("owner", path, "light", wide);
      expect(await page.evaluate(linesOf("td time, td [class*=line], td code"))).not.toContain(2);
      const name = page.getByTitle(longName).first();
      expect(await name.getAttribute("title")).toContain(longName);
      const box = await name.boundingBox();
      expect(box?.height).toBeLessThan(50);
      expect(await sidewaysPixels(page)).toBe(0);
      await close();
    },
  );

  test("the buttons of a key stand in one line, and fit beside what is known of it", async () => {
    const { page, close } = await scene.open("owner", "/keys", "light", wide);
    expect(await page.evaluate(buttonSteps)).toBe(0);
    expect(await page.evaluate(hiddenPixels)).toBe(0);
    await close();
  });

  test("they stay in sight in a narrow window, where the table scrolls", async () => {
    const { page, close } = await scene.open("owner", "/keys", "light", narrow);
    const row = page.getByRole("row").filter({ hasText: longName });
    const box = await row.getByRole("button", { name: /^Actions of / }).boundingBox();
    expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThan(narrow.viewport.width);
    expect(await sidewaysPixels(page)).toBe(0);
    await close();
  });

  test("the charts have a place for each day of the range", async () => {
    const { page, close } = await scene.open("owner", "", "light", wide);
    const chart = page.getByRole("img", { name: /a day$/ });
    expect(await chart.locator("g").count()).toBe(14);
    await close();
  });
});
