import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Page, Route } from "playwright-core";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { isNightly } from "../../support/nightly.ts";
import {
  startDashboardScene,
  type DashboardScene,
  type Look,
  type Person,
} from "./dashboard-scene.ts";
import { screens } from "./every-screen.ts";

/** The sum of all shifts of one load, whether the browser blames them on an input or not. */
const shiftMax = 0.01;

/** How much was moved, and what. */
type Shift = [value: number, what: string];
const sumOf = (shifts: readonly Shift[]): number => shifts.reduce((sum, [value]) => sum + value, 0);

/** Keeps what the browser says of shifts, with the elements that were moved. */
const watchShifts = `
  globalThis.shifts = [];
  const describe = ({ node, previousRect: { x, y }, currentRect }) =>
    [node?.nodeName, node?.className, node?.textContent?.slice(0, 40),
      x + "," + y + " to " + currentRect.x + "," + currentRect.y].join(" ");
  globalThis.keepShifts = (entries) => {
    for (const { value, sources } of entries) shifts.push([value, sources.map(describe).join(" | ")]);
  };
  globalThis.shiftObserver = new PerformanceObserver((list) => keepShifts(list.getEntries()));
  shiftObserver.observe({ type: "layout-shift", buffered: true });
`;
const takeShifts = "keepShifts(shiftObserver.takeRecords()), shifts";
/** Comes back when what has changed so far is painted. */
const painted = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))";

/** In which order answers that wait are let through. */
const orders = {
  "the first first": (waiting: Route[]) => waiting.shift(),
  "the last first": (waiting: Route[]) => waiting.pop(),
};

/**
 * Loads an address while each answer of the API waits until the one before it is
 * painted; gives what was moved.
 */
async function shiftsOf(
  page: Page,
  url: string,
  take: (waiting: Route[]) => Route | undefined,
): Promise<Shift[]> {
  const waiting: Route[] = [];
  let arrived = Promise.withResolvers<void>();
  await page.route(/\/api\//, (route) => {
    waiting.push(route);
    arrived.resolve();
  });
  await page.goto(url, { waitUntil: "commit" });
  const [heading, loading] = [page.locator("h1"), page.locator("[data-loading]")];
  for (;;) {
    arrived = Promise.withResolvers();
    await page.evaluate(painted);
    const next = take(waiting);
    if (next !== undefined) {
      await next.fulfill({ response: await next.fetch() });
    } else if (!(await heading.isVisible())) {
      await Promise.race([arrived.promise, heading.waitFor()]);
    } else if ((await loading.count()) > 0) {
      await Promise.race([arrived.promise, loading.first().waitFor({ state: "detached" })]);
    } else break;
  }
  return (await page.evaluate(takeShifts)) as Shift[];
}

describe.skipIf(!hasChromium)(`layout shift while a screen loads${missingChromium}`, () => {
  let scene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene();
  }, 240_000);
  afterAll(() => scene.stop());

  const pages = new Map<string, Page>();
  /** The page of a person and a look, which watches what is moved; at no screen. */
  const watched = async (person: Person, look: Look): Promise<Page> => {
    const page = pages.get(person + look) ?? (await (await scene.window(person, look)).newPage());
    if (!pages.has(person + look)) await page.addInitScript(watchShifts);
    pages.set(person + look, page);
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.goto(`${scene.origin}/healthz`);
    return page;
  };

  // The ordinary order is watched where `screens.test.ts` loads each screen on a phone. Most places
  // that are not kept move a page at either width, so that by default screens take turns.
  const looks: readonly Look[] = ["light", "phone"];
  const order = "the last first";
  const cases = screens.flatMap(([path, person], index) =>
    looks
      .filter((_, turn) => isNightly || index % looks.length === turn)
      .map((look): [string, Person, Look, keyof typeof orders] => [path, person, look, order]),
  );
  test.each(cases)(
    "%s for the %s, %s, stays in place, %s",
    async (path, person, look, order) => {
      const page = await watched(person, look);
      const shifts = await shiftsOf(page, `${scene.origin}/dashboard${path}`, orders[order]);
      expect(sumOf(shifts) < shiftMax ? [] : shifts).toEqual([]);
    },
    240_000,
  );

  test("content inserted above visible content is measured", async () => {
    const page = await watched("owner", "light");
    await shiftsOf(page, `${scene.origin}/dashboard/account`, orders["the first first"]);
    await page.evaluate(
      "document.querySelector('main').prepend(Object.assign(document.createElement('p'), { textContent: 'late' }))",
    );
    await page.evaluate(painted);
    expect(sumOf((await page.evaluate(takeShifts)) as Shift[])).toBeGreaterThan(shiftMax);
  });
});
