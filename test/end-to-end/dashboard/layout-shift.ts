import type { Page } from "playwright-core";

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

/**
 * In which order answers that wait are let through, as the place of the next one in the page's
 * `heldAnswers`. A page hides all that it has until it knows who is signed in: where that comes
 * last, it is painted once and nothing that is seen can move.
 */
const orders = {
  "the first first": "() => 0",
  "the last first":
    "(held) => held.findLastIndex((each) => isSession(each) || !held.some(isSession))",
  "the session last": "(held) => held.length - 1",
} as const;
export type Order = keyof typeof orders;

/**
 * Keeps back the answers of the API in each document of a page until they are let through. The
 * page itself does it: a browser whose requests are taken by a test loads every script again.
 */
export const holdAnswers = `
  const fetchNow = globalThis.fetch;
  globalThis.heldAnswers = [];
  globalThis.fetch = async (...request) => {
    const { pathname } = new URL(request[0]?.url ?? request[0], location.href);
    const sent = fetchNow(...request);
    if (heldAnswers === undefined || !pathname.startsWith("/api/")) return sent;
    const { promise, resolve } = Promise.withResolvers();
    heldAnswers.push({ pathname, letThrough: resolve, sent });
    await promise;
    return sent;
  };
`;

/** Lets the answers through one by one, each once what it follows is painted; then all at once. */
const letThrough = (order: Order, afterSession: string): string => `(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const isSession = ({ pathname }) => pathname === "/api/v1/session";
  const next = ${orders[order]};
  const isThere = () => document.querySelector("h1")?.checkVisibility({ visibilityProperty: true }) === true &&
    document.querySelector("[data-loading]") === null;
  // The session is among the first to be asked for: waiting for it keeps the order the same each time.
  while (!heldAnswers.some(isSession)) await frame();
  for (let isOver = false; !isOver; ) {
    await ${painted};
    const [answer] = heldAnswers.splice(next(heldAnswers), heldAnswers.length === 0 ? 0 : 1);
    if (answer !== undefined) {
      const { sent, letThrough } = answer;
      await sent.then((each) => each.clone().arrayBuffer()).catch(() => undefined);
      letThrough();
      await frame();
      if (isSession(answer)) { ${afterSession} }
    } else if (isThere()) isOver = true;
    else await frame();
  }
  const rest = heldAnswers;
  heldAnswers = undefined;
  for (const { letThrough } of rest) letThrough();
})()`;

/**
 * Loads an address in a page with `holdAnswers` while each answer of the API waits until the one
 * before it is painted, so that what does not keep its place moves. May do more once it is known
 * who is signed in.
 */
export async function loadInOrder(
  page: Page,
  url: string,
  order: Order,
  afterSession = "",
): Promise<void> {
  await page.goto(url, { waitUntil: "commit" });
  await page.evaluate(letThrough(order, afterSession));
}
