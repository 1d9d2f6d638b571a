import type { BrowserContextOptions, Cookie, Page } from "playwright-core";
import type { OwnWindows } from "./chromium.ts";

/** A window with one page, which is put back after use. */
interface KeptWindow {
  page: Page;
  /**
   * Leaves nothing of its use behind: closes further pages, empties what the origin stores, and
   * drops cookies, listeners and routes.
   */
  putBack(): Promise<void>;
}

/** For an empty document, which takes some milliseconds. */
const emptyWithinMs = 15_000;

/**
 * Ends the document of a page by an empty one that keeps its origin, which costs less than to load
 * another. Gives false where the page goes elsewhere at the same time.
 */
const goesEmpty = (page: Page): Promise<boolean> =>
  Promise.all([
    page.waitForURL("about:blank", { timeout: emptyWithinMs }),
    page.evaluate("location.replace('about:blank')"),
  ]).then(
    () => true,
    () => false,
  );

/**
 * The windows of a browser by how they look. One that a test has put back is handed out again with
 * the page in it: the browser then keeps its process and the compiled scripts, which are most of
 * what a new window costs.
 */
export class KeptWindows {
  #browser: OwnWindows;
  /** An address of the origin that answers with little, for pages that are elsewhere. */
  #restUrl: string;
  #free = new Map<string, Page[]>();

  constructor(browser: OwnWindows, restUrl: string) {
    this.#browser = browser;
    this.#restUrl = restUrl;
  }

  /** Takes a window with no storage and with no cookies other than these. */
  async take(
    options: BrowserContextOptions,
    cookies: readonly Pick<Cookie, "name" | "value" | "httpOnly">[],
  ): Promise<KeptWindow> {
    const look = JSON.stringify(options);
    const free = this.#free.get(look) ?? [];
    this.#free.set(look, free);
    const page = free.pop() ?? (await (await this.#browser.newContext(options)).newPage());
    const context = page.context();
    const viewport = page.viewportSize();
    const { origin } = new URL(this.#restUrl);
    await context.addCookies(cookies.map((cookie) => ({ ...cookie, url: origin })));
    return {
      page,
      putBack: async () => {
        if (page.isClosed()) return;
        for (const other of context.pages()) if (other !== page) await other.close();
        page.removeAllListeners();
        await page.unrouteAll({ behavior: "ignoreErrors" });
        await page.emulateMedia({ colorScheme: options.colorScheme ?? null });
        if (!page.url().startsWith(`${origin}/`)) await page.goto(this.#restUrl);
        else if (!(await goesEmpty(page))) {
          await context.close();
          return;
        }
        await page.evaluate("localStorage.clear(), sessionStorage.clear()");
        await context.clearCookies();
        if (viewport !== null) await page.setViewportSize(viewport);
        free.push(page);
      },
    };
  }
}
