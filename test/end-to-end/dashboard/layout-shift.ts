import type { Page, Route } from "playwright-core";

/** The sum of all shifts of one load, whether the browser blames them on an input or not. */
const shiftMax = 0.008;

/** How much was moved, and what. */
type Shift = [value: number, what: string];

/**
 * Keeps what was moved, for each document: what the browser says of shifts, and what has another
 * place in a step than in the step before. The browser leaves out the first move of what was hidden
 * before, which is all of a page that appears from top to bottom. A placeholder without height counts
 * as well: what follows it is hidden while a page loads, but moves when the same part is read again.
 */
export const watchShifts = `
  globalThis.shifts = [];
  const from = (one, other) => one.x + "," + one.y + " to " + other.x + "," + other.y;
  const describe = (node, one, other) =>
    [node?.nodeName, node?.className, node?.textContent?.slice(0, 40), from(one, other)].join(" ");
  globalThis.keepShifts = (entries) => {
    for (const { value, sources } of entries)
      shifts.push([value, sources.map((each) => describe(each.node, each.previousRect, each.currentRect)).join(" | ")]);
  };
  globalThis.shiftObserver = new PerformanceObserver((list) => keepShifts(list.getEntries()));
  shiftObserver.observe({ type: "layout-shift", buffered: true });

  const isSeen = ({ width, height, top, bottom }) =>
    width * height > 0 && bottom > 0 && top < innerHeight;
  const distance = (one, other) => Math.max(Math.abs(other.x - one.x), Math.abs(other.y - one.y));
  const shareOf = (one, other) => {
    const [top, bottom] = [Math.min(one.top, other.top), Math.max(one.bottom, other.bottom)];
    const [left, right] = [Math.min(one.left, other.left), Math.max(one.right, other.right)];
    const [height, width] = [Math.min(bottom, innerHeight) - Math.max(top, 0), right - left];
    return (Math.min(width, innerWidth) * height) / (innerWidth * innerHeight);
  };
  let before = new Map();
  globalThis.keepMoves = () => {
    const places = new Map();
    for (const each of document.querySelectorAll("body *:not(svg *)"))
      if (each.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
        places.set(each, each.getBoundingClientRect());
    const isMoved = (each) => {
      const [one, other] = [before.get(each), places.get(each)];
      return one !== undefined && other !== undefined && distance(one, other) >= 3 && (isSeen(one) || isSeen(other));
    };
    for (const [each, other] of places) {
      if (!isMoved(each) || isMoved(each.parentElement)) continue;
      const one = before.get(each);
      const part = distance(one, other) / Math.max(innerWidth, innerHeight);
      shifts.push([shareOf(one, other) * part, describe(each, one, other)]);
    }
    before = places;
    for (const each of document.querySelectorAll('[aria-label="Loading"]'))
      if (each.checkVisibility() && each.offsetHeight === 0)
        shifts.push([1, "a placeholder without height: " + each.parentElement.textContent.slice(0, 40)]);
  };
`;

/** Comes back when what has changed so far is painted, and keeps what it has moved. */
export const painted =
  "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))).then(keepMoves)";

/** Returns what was moved since the document began, where that is more than a screen may move. */
export async function foundShifts(page: Page): Promise<Shift[]> {
  await page.evaluate(painted);
  const shifts = (await page.evaluate(
    "keepShifts(shiftObserver.takeRecords()), shifts",
  )) as Shift[];
  return shifts.reduce((sum, [value]) => sum + value, 0) < shiftMax ? [] : shifts;
}

/** Takes the next of the answers that wait, where there is one. */
type Take = (waiting: Route[]) => Route | undefined | Promise<Route | undefined>;

const sessionPath = "/api/v1/session";
const isSession = (route: Route): boolean =>
  new URL(route.request().url()).pathname === sessionPath;

/**
 * In which order answers that wait are let through. A page hides all that it has until it knows who
 * is signed in: where that comes last, it is painted once and nothing that is seen can move.
 */
export const orders = {
  "the first first": (waiting) => waiting.shift(),
  "the last first": (waiting) => {
    const session = waiting.findIndex(isSession);
    return session < 0 ? waiting.pop() : waiting.splice(session, 1)[0];
  },
  "the session last": (waiting) => waiting.pop(),
} as const satisfies Record<string, Take>;

/**
 * Loads an address while each answer of the API waits until the one before it is painted, so that
 * what does not keep its place moves.
 */
export async function loadInOrder(page: Page, url: string, take: Take): Promise<void> {
  const waiting: Route[] = [];
  let arrived = Promise.withResolvers<void>();
  let isOver = false;
  const hold = async (route: Route): Promise<void> => {
    if (isOver) return route.continue();
    waiting.push(route);
    arrived.resolve();
  };
  await page.route(/\/api\//, hold);
  await Promise.all([
    page.waitForRequest((request) => new URL(request.url()).pathname === sessionPath),
    page.goto(url, { waitUntil: "commit" }),
  ]);
  // It is among the first to be asked for: waiting for it keeps the order the same each time.
  while (!waiting.some(isSession)) {
    await arrived.promise;
    arrived = Promise.withResolvers();
  }
  const [heading, loading] = [page.locator("h1"), page.locator("[data-loading]")];
  for (;;) {
    arrived = Promise.withResolvers();
    await page.evaluate(painted);
    const next = await take(waiting);
    if (next !== undefined) {
      await next.fulfill({ response: await next.fetch() });
      await (await next.request().response())?.finished();
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
