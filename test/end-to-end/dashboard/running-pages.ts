import type { BrowserContextOptions, Cookie, Page } from "playwright-core";
import type { KeptWindows } from "../../support/kept-windows.ts";
import { followLink, isLoading, openScreen, screenIn, type Screen } from "./screen.ts";

/** A page in which the dashboard runs, at no screen while it is free. */
interface RunningPage {
  page: Page;
  /** Whether it has asked for a key of the playground, which is in its memory. */
  hasKey: boolean;
  /** Puts it back as a window in which nothing runs. */
  putBack(): Promise<void>;
}

/** An address of the dashboard that has no screen. */
const restPath = "/dashboard/none";

/** Forgets every answer of the API, as a reload does, and reads again what the frame shows. */
const readAnew = `(async () => {
  const root = document.getElementById("root");
  const name = Object.keys(root).find((key) => key.startsWith("__reactContainer$"));
  let fiber = root[name].stateNode.current;
  while (fiber.memoizedProps?.client?.resetQueries === undefined) fiber = fiber.child;
  await fiber.memoizedProps.client.resetQueries();
})()`;

/**
 * Leaves the workspace of the tab. Gives whether nothing else is left that a reload would remove, or
 * would keep: something open, a choice of the browser's, a clock that stands.
 */
const isClean = `(() => {
  // Nothing is said any more of what the test did.
  dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  for (const key of ["workspace", ...Object.keys(sessionStorage).filter((each) => each.startsWith("tsr-"))])
    sessionStorage.removeItem(key);
  return sessionStorage.length + localStorage.length === 0 &&
    document.querySelector("[role=dialog], [role=alertdialog], [role=listbox], [role=menu]") === null &&
    Function.prototype.toString.call(Date).includes("[native code]");
})()`;

/**
 * Pages in which the dashboard runs. One that a test has closed is handed out again for the next
 * screen, which it opens as a link does: loading the dashboard again is most of what a screen costs,
 * and `screens.test.ts` loads each.
 */
export class RunningPages {
  #windows: KeptWindows;
  #origin: string;
  #free = new Map<string, RunningPage>();

  constructor(windows: KeptWindows, origin: string) {
    this.#windows = windows;
    this.#origin = origin;
  }

  /** Opens a screen with one cookie, in a page that looks so. */
  async open(
    options: BrowserContextOptions,
    cookie: Pick<Cookie, "name" | "value" | "httpOnly">,
    path: string,
  ): Promise<Screen> {
    const look = JSON.stringify(options);
    const free = await this.#takeFree(look);
    const running = free ?? {
      ...(await this.#windows.take(options, [cookie])),
      hasKey: false,
    };
    const { page } = running;
    const close = () => this.#close(running, options, look);
    page.on("request", (request) => {
      running.hasKey ||= request.url().endsWith("/session/playground-key");
    });
    if (free === undefined) return openScreen(page, `${this.#origin}/dashboard${path}`, close);
    await page.context().addCookies([{ ...cookie, url: this.#origin }]);
    const screen = screenIn(page, close);
    await page.evaluate(readAnew);
    // What the person before may read in the frame is refused to this one.
    screen.problems.length = 0;
    await screen.follow(path);
    return screen;
  }

  async #takeFree(look: string): Promise<RunningPage | undefined> {
    const free = this.#free.get(look);
    this.#free.delete(look);
    if (free === undefined || free.page.url() === this.#origin + restPath) return free;
    // Its session has ended meanwhile, so that it went elsewhere.
    await free.putBack();
    return undefined;
  }

  async #close(running: RunningPage, options: BrowserContextOptions, look: string): Promise<void> {
    const { page } = running;
    if (page.isClosed()) return;
    if (!(await this.#leave(running))) {
      page.removeAllListeners();
      return running.putBack();
    }
    page.removeAllListeners();
    const theme = options.colorScheme ?? "light";
    await page.emulateMedia({ colorScheme: theme });
    if (options.viewport) await page.setViewportSize(options.viewport);
    await page.evaluate(`document.documentElement.dataset.theme = "${theme}", scrollTo(0, 0)`);
    // Another page that looks so was closed in between.
    await this.#free.get(look)?.putBack();
    this.#free.set(look, running);
  }

  /** Leaves the screen of a page; false where something is left that only a load would remove. */
  async #leave({ page, hasKey }: RunningPage): Promise<boolean> {
    const context = page.context();
    await page.unrouteAll({ behavior: "ignoreErrors" });
    if (hasKey || !page.url().startsWith(`${this.#origin}/dashboard`)) return false;
    if (context.pages().length > 1 || (await context.cookies()).length !== 1) return false;
    if ((await page.evaluate(isClean)) !== true) return false;
    await page.evaluate(followLink(restPath));
    return !isLoading(page);
  }
}
