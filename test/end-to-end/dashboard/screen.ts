import { expect } from "bun:test";
import type { BrowserContext, Locator, Page, Request, Response } from "playwright-core";
import { axeFindings, darkFindings, sidewaysPixels, turn } from "../../support/chromium.ts";

/** A screen in a window, and what the browser had to say about it. */
export interface Screen {
  context: BrowserContext;
  page: Page;
  /**
   * What went wrong so far: errors on the console, exceptions, violations of the policy, answers
   * that failed.
   */
  problems: string[];
  /** Compressed bytes of the scripts loaded so far, by their names. */
  scripts: Map<string, number>;
  /** Goes to another address in the same window, and waits until its screen has loaded. */
  go(url: string): Promise<void>;
  /**
   * Goes to another address below `/dashboard` without loading the document again, as links do, and
   * waits until its screen has loaded.
   */
  follow(path: string): Promise<void>;
  /** Presses keys one after the other. */
  press(...keys: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** What a page is loading. */
interface Loading {
  /** Requests that have not ended. */
  requests: Set<Request>;
  /** Requests so far. */
  begun: number;
  /** Whether the document or the screen is new, so that more of it may be still to come. */
  isNew: boolean;
  /** Goes on once no request is in progress. */
  onIdle: (() => void) | undefined;
}

const loadingByPage = new WeakMap<Page, Loading>();

const isNavigation = (page: Page, request: Request): boolean =>
  request.isNavigationRequest() && request.frame() === page.mainFrame();

/**
 * Whether the end of a request may not be reported: the browser answers with what it has while it
 * asks again behind it (`stale-while-revalidate`), once what it has is a minute old.
 */
const mayNotEnd = (request: Request): boolean =>
  new URL(request.url()).pathname === "/api/v1/health";

/** Counts from now on what a page loads. */
function countLoading(page: Page): Loading {
  const requests = new Set<Request>();
  const loading: Loading = { requests, begun: 0, isNew: true, onIdle: undefined };
  loadingByPage.set(page, loading);
  page.on("request", (request) => {
    if (mayNotEnd(request)) return;
    requests.add(request);
    loading.begun += 1;
  });
  const end = (...ended: Request[]): void => {
    for (const request of ended) requests.delete(request);
    if (requests.size === 0) loading.onIdle?.();
  };
  page.on("requestfinished", (request) => end(request));
  page.on("requestfailed", (request) => end(request));
  // The browser may not report how requests of the previous document ended.
  page.on("response", (response) => {
    if (!isNavigation(page, response.request())) return;
    end(...requests);
    loading.isNew = true;
  });
  // The few that it sent until it was gone are over once the browser says that nothing is loaded.
  page.on("domcontentloaded", () => {
    const early = [...requests];
    page.waitForLoadState("networkidle").then(
      () => end(...early),
      () => undefined,
    );
  });
  return loading;
}

const loadingOf = (page: Page): Loading => loadingByPage.get(page) ?? countLoading(page);

/** Whether a page has requests in progress. */
export const isLoading = (page: Page): boolean => loadingOf(page).requests.size > 0;

const settledWithinMs = 50_000;
/** Frames without a request after which a page has sent all that its state asks for. */
const quietFrames = 3;
/** The same for what is new, whose scripts load others after its first paint. */
const quietFramesAtFirst = 8;

/** Waits for frames of a page, and gives whether it has its heading and nothing that loads. */
const pass = (frames: number): string => `(async () => {
  for (let left = ${frames}; left > 0; left -= 1)
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  const heading = document.querySelector("h1");
  return heading?.checkVisibility() === true && document.querySelector('[aria-label="Loading"]') === null;
})()`;

/** Waits until no request is in progress; throws with those that are, at the latest at a time. */
async function idle(loading: Loading, untilMs: number): Promise<void> {
  const { requests } = loading;
  const leftMs = untilMs - performance.now();
  if (requests.size === 0 && leftMs > 0) return;
  const ended = Promise.withResolvers<void>();
  loading.onIdle = ended.resolve;
  const late = setTimeout(() => {
    const urls = [...requests].map((request) => request.url());
    ended.reject(new Error(`still loading: ${urls.join(", ")}`));
  }, leftMs);
  await ended.promise.finally(() => clearTimeout(late));
}

/**
 * Waits until nothing on the page is loading any more. The browser's own "networkidle" tells the
 * first load of a document alone, and half a second late, so that requests are counted here. All
 * frames are waited for in one call: each call costs this process as much as a frame the browser.
 */
export async function settled(page: Page): Promise<void> {
  const loading = loadingOf(page);
  await page.waitForLoadState("load");
  const untilMs = performance.now() + settledWithinMs;
  for (;;) {
    await idle(loading, untilMs);
    const { begun } = loading;
    const isThere = await page.evaluate(pass(loading.isNew ? quietFramesAtFirst : quietFrames));
    if (loading.begun !== begun || loading.requests.size > 0) continue;
    if (isThere === true) break;
    await page.locator("h1").first().waitFor();
    await page.locator('[aria-label="Loading"]').first().waitFor({ state: "detached" });
  }
  loading.isNew = false;
}

function watch(page: Page, { problems, scripts }: Pick<Screen, "problems" | "scripts">): void {
  page.on("pageerror", (error) => problems.push(`exception: ${error.message}`));
  // What failed to load is named with its address below, where the console only says that something
  // did.
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      problems.push(`console: ${message.text()}`);
  });
  page.on("response", (response: Response) => {
    const { pathname } = new URL(response.url());
    // 501 says that the operator has not set something up, which a screen shows in words.
    const status = response.status();
    if (status >= 400 && status !== 501)
      problems.push(`${status} ${response.request().method()} ${pathname}`);
    if (pathname.endsWith(".js") && response.ok())
      scripts.set(pathname, Number(response.headers()["content-length"]));
  });
}

/** Returns a script that lets the router go to an address, and waits until it shows its screen. */
export const followLink = (path: string): string => `(async () => {
  __TSR_ROUTER__.history.push(${JSON.stringify(path)});
  const isThere = ({ isLoading, location, resolvedLocation }) =>
    !isLoading && location.href === resolvedLocation?.href;
  do await new Promise(requestAnimationFrame);
  while (!isThere(__TSR_ROUTER__.state));
})()`;

/** Watches a page that is new or was put back. */
export function screenIn(page: Page, close: Screen["close"]): Screen {
  const context = page.context();
  context.setDefaultTimeout(50_000);
  countLoading(page);
  const problems: string[] = [];
  const scripts = new Map<string, number>();
  watch(page, { problems, scripts });
  return {
    context,
    page,
    problems,
    scripts,
    async go(url) {
      await page.goto(url);
      await settled(page);
    },
    async follow(path) {
      loadingOf(page).isNew = true;
      await page.evaluate(followLink(`/dashboard${path}`));
      await settled(page);
    },
    async press(...keys) {
      for (const key of keys) await page.keyboard.press(key);
    },
    close,
  };
}

/** Opens an address in a page that is new or was put back. */
export async function openScreen(page: Page, url: string, close: Screen["close"]): Promise<Screen> {
  const screen = screenIn(page, close);
  await screen.go(url);
  return screen;
}

/**
 * Expects of a screen what is expected of each: no finding of axe, no problem, no sideways
 * scrolling, a heading and a name. Contrast may be left out where the same colours are looked at
 * elsewhere.
 */
export async function expectSound(
  { page, problems }: Screen,
  { withContrast = true } = {},
): Promise<void> {
  expect(problems).toEqual([]);
  expect(await axeFindings(page, { withContrast })).toEqual([]);
  expect(await sidewaysPixels(page)).toBe(0);
  expect(await page.locator("main h1").count()).toBe(1);
  expect(await page.title()).toEndWith(" - Switchyard");
}

const narrow = { width: 390, height: 844 };

/**
 * Expects the same of a light screen on a desktop, in a window as narrow as a phone and, of its
 * colours, dark: what is looked at so need not be opened three times.
 */
export async function expectSoundInEachLook(screen: Screen): Promise<void> {
  const { page } = screen;
  const wide = page.viewportSize();
  await expectSound(screen);
  await page.setViewportSize(narrow);
  await settled(page);
  await expectSound(screen, { withContrast: false });
  if (wide !== null) await page.setViewportSize(wide);
  expect(await darkFindings(page)).toEqual([]);
  await turn(page, "light");
}

/** Chooses an action in the menu of a row. */
export async function act(row: Locator, name: string): Promise<void> {
  await row.getByRole("button", { name: /^Actions of / }).click();
  await row.page().getByRole("menuitem", { name, exact: true }).click();
}

/**
 * Moves the focus with the tab key until it is on what has this name; the test fails where it never
 * comes there.
 */
export async function tabTo(page: Page, name: string | RegExp, limit = 120): Promise<void> {
  const matches = (text: string): boolean =>
    typeof name === "string" ? text === name : name.test(text);
  const seen: string[] = [];
  for (let step = 0; step < limit; step += 1) {
    await page.keyboard.press("Tab");
    const text = await focusedName(page);
    if (matches(text)) return;
    seen.push(text);
  }
  throw new Error(
    `the tab key does not lead to ${String(name)}; it leads to ${[...new Set(seen)].join(" | ")}`,
  );
}

const nameOfFocused = `(() => {
  const element = document.activeElement;
  if (element === null) return "";
  const labels = [...(element.labels ?? [])].map((label) => label.innerText).join(" ");
  return (element.getAttribute("aria-label") || labels || element.textContent || "").trim();
})()`;

/** The name of what has the focus, as a screen reader would say it: its label, or its text. */
export const focusedName = async (page: Page): Promise<string> =>
  String(await page.evaluate(nameOfFocused));

/** Enters another workspace by the list at the top of the page. */
export async function enterWorkspace(page: Page, name: string): Promise<void> {
  await page.getByRole("combobox", { name: /^Workspace: / }).click();
  await page.getByRole("option", { name }).click();
}

/** Chooses one of a list by its name, in the field of this name; types a text where one is given. */
export async function pick(
  page: Page,
  field: string | RegExp,
  option: string | RegExp,
  typed?: string,
): Promise<void> {
  const name = typeof field === "string" ? new RegExp(`^${field}: `) : field;
  await page.getByRole("combobox", { name }).click();
  if (typed !== undefined) await page.keyboard.type(typed);
  await page.getByRole("option", { name: option }).first().click();
}
