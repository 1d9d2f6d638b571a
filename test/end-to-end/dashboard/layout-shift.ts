import type { Page, Route } from "playwright-core";

/** The sum of all shifts of one load, whether the browser blames them on an input or not. */
const shiftMax = 0.01;

/** How much was moved, and what. */
type Shift = [value: number, what: string];

/** Keeps what the browser says of shifts, with the elements that were moved; for each document. */
export const watchShifts = `
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

/** Comes back when what has changed so far is painted. */
const painted = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))";

/** Returns what was moved since the document began, where that is more than a screen may move. */
export async function foundShifts(page: Page): Promise<Shift[]> {
  await page.evaluate(painted);
  const shifts = (await page.evaluate(
    "keepShifts(shiftObserver.takeRecords()), shifts",
  )) as Shift[];
  return shifts.reduce((sum, [value]) => sum + value, 0) < shiftMax ? [] : shifts;
}

/** In which order answers that wait are let through. */
export const orders = {
  "the first first": (waiting: Route[]) => waiting.shift(),
  "the last first": (waiting: Route[]) => waiting.pop(),
};

/**
 * Loads an address while each answer of the API waits until the one before it is painted, so that
 * what does not keep its place moves.
 */
export async function loadInOrder(
  page: Page,
  url: string,
  take: (waiting: Route[]) => Route | undefined,
): Promise<void> {
  const waiting: Route[] = [];
  let arrived = Promise.withResolvers<void>();
  let isOver = false;
  const hold = async (route: Route): Promise<void> => {
    if (isOver) return route.continue();
    waiting.push(route);
    arrived.resolve();
  };
  await page.route(/\/api\//, hold);
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
  isOver = true;
  for (const route of waiting) await route.continue();
  await page.unrouteAll({ behavior: "wait" });
}
