import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { isNightly } from "./nightly.ts";
import { countSeen, findFreshTexts, freshPart } from "./text-colours.ts";

/** Debian's browsers; the first one that is here. The headless shell has no windows to draw. */
const executablePath =
  ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"].find((path) => existsSync(path)) ?? "";

/** Whether this machine has the browser. */
export const hasChromium = existsSync(executablePath);

/** The suffix for the title of a test that needs the browser. */
export const missingChromium = hasChromium ? "" : " (missing: chromium)";

const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // A microphone that beeps, which pages may use without asking a person.
  "--use-fake-device-for-media-stream",
  "--use-fake-ui-for-media-stream",
  // Pages of a few seconds gain nothing from compilers and collectors on further threads; without
  // them the same work takes a twelfth less of the processor.
  "--js-flags=--single-threaded",
];

/** A second host name that leads browsers to this machine. */
export const otherName = "gateway.lan";

let launched: Promise<Browser> | undefined;

/** Returns the headless browser of this process; another one where it has ended. */
async function browserHere(): Promise<Browser> {
  const before = await launched?.catch(() => undefined);
  if (before?.isConnected() === true) return before;
  launched = chromium.launch({
    executablePath,
    args: [...flags, `--host-resolver-rules=MAP ${otherName} 127.0.0.1`],
  });
  return launched;
}

/** The part of a browser that one user of it has. */
export interface OwnWindows extends Pick<Browser, "newContext"> {
  /** Closes the windows of this user; the browser stays for the next one in this process. */
  close(): Promise<void>;
}

/**
 * Opens the headless browser that the files of this process share; each context in it begins with
 * an empty profile.
 */
export async function startChromium(): Promise<OwnWindows> {
  const browser = await browserHere();
  const contexts: BrowserContext[] = [];
  return {
    async newContext(options) {
      const context = await browser.newContext(options);
      contexts.push(context);
      return context;
    },
    async close() {
      await Promise.all(contexts.map((context) => context.close()));
    },
  };
}

/** The script of axe; a page that has it already is not given it again. */
export const axeSource = readFileSync(
  createRequire(import.meta.url).resolve("axe-core/axe.min.js"),
  "utf8",
);

const contrast = "color-contrast";

/** Runs axe on a part of a page, by a script that gives it, with options. */
async function runAxe(page: Page, part: string, options: object): Promise<string[]> {
  if ((await page.evaluate("typeof axe")) === "undefined") await page.evaluate(axeSource);
  // What is not broken is not described either, which is most of a check's work.
  const all = JSON.stringify({ resultTypes: ["violations"], ...options });
  const found: unknown = await page.evaluate(`axe.run(${part}, ${all}).then((results) =>
    results.violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" | ")))`);
  return Array.isArray(found) ? found.map(String) : [`axe gave ${String(found)}`];
}

/**
 * Returns what axe finds of the colours of texts: nightly of all, by day of those whose colours over
 * the same grounds this process has not looked at a few times.
 */
export async function contrastFindings(page: Page): Promise<string[]> {
  if (isNightly) return runAxe(page, "document", { runOnly: [contrast] });
  const texts = await findFreshTexts(page);
  if (texts.length === 0) return [];
  const found = await runAxe(page, freshPart, { runOnly: [contrast] });
  if (found.length === 0) countSeen(texts);
  return found;
}

/** Returns the findings of axe on a page, of every rule but contrast where that is left out. */
export async function axeFindings(page: Page, { withContrast = true } = {}): Promise<string[]> {
  const found = await runAxe(page, "document", { rules: { [contrast]: { enabled: false } } });
  return withContrast ? [...found, ...(await contrastFindings(page))] : found;
}

const grounds = `[document.documentElement, document.body]
  .map((each) => getComputedStyle(each).backgroundColor).join()`;
/** A page that chose its theme at its load is given the choice of its reader. */
const choose = (theme: "light" | "dark"): string => `(async () => {
  const { dataset } = document.documentElement;
  if (dataset.theme !== undefined) dataset.theme = "${theme}";
  const transitions = document.getAnimations().filter((each) => each instanceof CSSTransition);
  await Promise.all(transitions.map(({ finished }) => finished.catch(() => undefined)));
})()`;

/** Turns a page light or dark, as its reader can, and waits until its colours have changed. */
export async function turn(page: Page, theme: "light" | "dark"): Promise<void> {
  await page.emulateMedia({ colorScheme: theme });
  await page.evaluate(choose(theme));
}

/** Returns what axe finds of the colours of a light page that turns dark, which it stays. */
export async function darkFindings(page: Page): Promise<string[]> {
  const light = await page.evaluate(grounds);
  await turn(page, "dark");
  return (await page.evaluate(grounds)) === light
    ? ["the page stays light"]
    : contrastFindings(page);
}

/** Returns by how many pixels a page extends beyond the right edge of the window. */
export const sidewaysPixels = async (page: Page): Promise<number> =>
  Number(
    await page.evaluate(
      "document.documentElement.scrollWidth - document.documentElement.clientWidth",
    ),
  );

/** Returns the value of a context's cookie; undefined where it has none of that name. */
export const cookieOf = async (
  context: BrowserContext,
  name: string,
): Promise<string | undefined> =>
  (await context.cookies()).find((cookie) => cookie.name === name)?.value;
