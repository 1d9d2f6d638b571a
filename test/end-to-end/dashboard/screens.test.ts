import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  axeSource,
  darkFindings,
  hasChromium,
  missingChromium,
  turn,
} from "../../support/chromium.ts";
import { isNightly } from "../../support/nightly.ts";
import { chatStream } from "../../support/upstream/healthy-chat.ts";
import { listAt, textAt } from "../api/at.ts";
import {
  startDashboardScene,
  type DashboardScene,
  type Look,
  type Person,
} from "./dashboard-scene.ts";
import {
  expectPicture,
  furtherPictures,
  isWriting,
  missedPictures,
  picturedAnswer,
  pictureOf,
  publicPictures,
  steps,
} from "./documentation-pictures.ts";
import { screens } from "./every-screen.ts";
import { geometryFindings, lookedAt, sizes } from "./geometry.ts";
import { foundShifts, holdAnswers, loadInOrder, painted, watchShifts } from "./layout-shift.ts";
import { expectSound, openScreen, screenIn, settled, type Screen } from "./screen.ts";

/**
 * What the first screen may load before the chart, and what any other may load beside it;
 * compressed.
 */
const firstBytesMax = 130_000;
const furtherBytesMax = 60_000;
const assets = resolve(import.meta.dirname, "../../../dashboard/dist");
/**
 * The charts' library is one file that the usage screen loads after its first paint, when it has
 * figures to show.
 */
const isChart = (name: string): boolean =>
  readFileSync(join(assets, name), "utf8").includes("recharts-wrapper");
const chartBytesMax = 120_000;

describe.skipIf(!hasChromium)(`every screen${missingChromium}`, () => {
  let scene: DashboardScene;
  let busyScene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene();
    busyScene = await startDashboardScene(undefined, { livelyRows: 12_000 });
    busyScene.serving.script(chatStream({ text: [picturedAnswer] }));
  }, 600_000);
  afterAll(async () => {
    await scene.stop();
    await busyScene.stop();
  });

  /**
   * The window of a person at a look, in which screens are opened one after another, where scripts
   * are run before those of the page.
   */
  const windows = new Map<string, Screen>();
  const windowOf = async (
    of: DashboardScene,
    person: Person,
    look: Look,
    scripts: readonly string[] = [],
  ): Promise<Screen> => {
    const key = [of.origin, person, look, ...scripts].join(" ");
    const known = windows.get(key);
    if (known !== undefined) return known;
    const context = await of.window(person, look);
    for (const script of scripts) await context.addInitScript(script);
    const screen = screenIn(await context.newPage(), () => context.close());
    windows.set(key, screen);
    return screen;
  };
  /** Screens of one team, customer or run, which `screens` cannot name. */
  const pagesOfOne = new Set(["team", "customer", "run"]);
  /** Leads a person from the screen before to another, as a link does; light. */
  const lead = async (person: Person, path: string): Promise<Screen> => {
    const screen = await windowOf(busyScene, person, "light");
    const { page, problems } = screen;
    problems.length = 0;
    if (page.url() === "about:blank") {
      await screen.go(`${busyScene.origin}/dashboard${path}`);
      return screen;
    }
    await turn(page, "light");
    await screen.follow(path);
    return screen;
  };

  /**
   * The sizes at which a screen is looked at: by day every third one, in turns, so that of three
   * neighbouring screens one is seen at each. Those of an empty workspace take the next ones.
   */
  const sizesOf = (place: number): readonly (typeof sizes)[number][] =>
    sizes.filter((_, each) => isNightly || (each + place) % 3 === 0);
  /** The looks in which a picture is compared: by day one, in turns. */
  const isCompared = (look: "light" | "dark", place: number): boolean =>
    isNightly || isWriting || (look === "light") === (place % 2 === 0);

  test.each(screens.map(([path, person], place) => [path, person, place] as const))(
    "%s for the %s, over thousands of requests, light and dark, passes all layout checks and matches its screenshots",
    async (path, person, place) => {
      const screen = await lead(person, path);
      const { page } = screen;
      const name = pictureOf(path, person);
      const compare = async (look: "light" | "dark"): Promise<void> => {
        if (name !== undefined && isCompared(look, place))
          await expectPicture(`${name}-${look}`, page);
      };
      await compare("light");
      await expectSound(screen);
      expect(await darkFindings(page)).toEqual([]);
      await compare("dark");
      expect(await lookedAt(page)).toEqual([]);
      expect(await geometryFindings(page, sizesOf(place))).toEqual([]);
    },
  );

  test("the head of a long table stays in sight", async () => {
    const { page } = await lead("developer", "/activity");
    await page.evaluate("scrollTo(0, document.body.scrollHeight / 2)");
    expect((await page.locator("main thead th").first().boundingBox())?.y).toBe(0);
  });

  test("every screenshot of a screen is compared where the screen is opened", () => {
    expect(missedPictures(screens)).toEqual([]);
  });

  test.each(furtherPictures)(
    "%s, light and turned dark, matches its screenshots",
    async (name, path, person) => {
      const screen = await lead(person, path);
      const { page } = screen;
      await steps[name]?.(page);
      await settled(page);
      await expectPicture(`${name}-light`, page);
      const isPage = pagesOfOne.has(name);
      if (isPage) await expectSound(screen);
      if (isPage) expect(await darkFindings(page)).toEqual([]);
      else await turn(page, "dark");
      await expectPicture(`${name}-dark`, page);
      if (isPage) expect(await geometryFindings(page)).toEqual([]);
    },
  );

  test.each(publicPictures)(
    "the public page %s, light and turned dark, matches its screenshots",
    async (name, path) => {
      const { page, close } = await busyScene.openSignedOut(path);
      await expectPicture(`${name}-light`, page);
      await turn(page, "dark");
      await expectPicture(`${name}-dark`, page);
      await close();
    },
  );

  test("the usage screen and the sign-in page, loaded dark, match their screenshots", async () => {
    for (const open of [
      () => busyScene.open("owner", "/usage", "dark"),
      () => busyScene.openSignedOut("/sign-in", "dark"),
    ]) {
      const { page, close } = await open();
      await expectPicture(page.url().endsWith("/usage") ? "usage-dark" : "sign-in-dark", page);
      await close();
    }
  });

  /** What a window needs whose answers are kept back, where what moves is watched, and for axe. */
  const held = [watchShifts, holdAnswers, axeSource];
  /** The scripts of each screen, by its path: those of the document that loaded it. */
  const scriptsByScreen = new Map<string, Screen["scripts"]>();
  // Answers that come in the other order move what has no place of its own. By day a phone is loaded
  // so, where most of what would move on a desktop moves too.
  const loads = screens.flatMap(([path, person]) =>
    (isNightly ? (["light", "phone"] as const) : (["phone"] as const)).flatMap((look) =>
      (isNightly
        ? (["the first first", "the last first", "the session last"] as const)
        : (["the last first"] as const)
      ).map((order) => [path, person, look, order] as const),
    ),
  );
  test.each(loads)(
    "%s for the %s, loaded %s, stays in place with %s, and passes all layout checks",
    async (path, person, look, order) => {
      const screen = await windowOf(scene, person, look, held);
      const { page } = screen;
      screen.problems.length = 0;
      screen.scripts.clear();
      await loadInOrder(page, `${scene.origin}/dashboard${path}`, order);
      await settled(page);
      expect(await foundShifts(page)).toEqual([]);
      scriptsByScreen.set(path, new Map(screen.scripts));
      expect(await lookedAt(page)).toEqual([]);
      // Colours are those of the desktop, which has all but what an empty list says.
      const isSeen = !isNightly && (await page.locator("main [class^=empty]").count()) === 0;
      await expectSound(screen, { withContrast: !isSeen });
    },
    600_000,
  );

  test("content inserted above visible content is measured", async () => {
    const { page } = await windowOf(scene, "owner", "phone", held);
    await loadInOrder(page, `${scene.origin}/dashboard/security`, "the last first");
    expect(await foundShifts(page)).toEqual([]);
    await page.evaluate(
      "document.querySelector('main').prepend(Object.assign(document.createElement('p'), { textContent: 'late' }))",
    );
    expect(await foundShifts(page)).not.toEqual([]);
  });

  test("a notice that comes while a part below it is loading is measured", async () => {
    const { page } = await windowOf(scene, "owner", "phone", held);
    const late = `
      await ${painted};
      document.querySelector("main h1").parentElement.after(Object.assign(document.createElement("p"), { textContent: "late" }));`;
    await loadInOrder(page, `${scene.origin}/dashboard/security`, "the last first", late);
    expect(await foundShifts(page)).not.toEqual([]);
  });

  test("every screen of an empty workspace passes all layout checks", async () => {
    const own = listAt(await scene.ask("developer", "GET", "/workspaces"), "data").find(
      (workspace) => textAt(workspace, "id") !== scene.workspaceId,
    );
    const context = await scene.window("developer");
    await context.addInitScript(`sessionStorage.setItem("workspace", "${textAt(own, "id")}")`);
    const first = await context.newPage();
    const screen = await openScreen(first, `${scene.origin}/dashboard`, () => context.close());
    const findings: string[] = [];
    for (const [index, [path, person]] of screens.entries()) {
      if (person === "operator") continue;
      await screen.follow(path);
      const found = await geometryFindings(screen.page, sizesOf(index + 1), false);
      findings.push(...found.map((finding) => `${path}: ${finding}`));
    }
    expect(findings).toEqual([]);
    expect(screen.problems).toEqual([]);
    await screen.close();
  }, 600_000);

  const loadedScripts = async (person: Person, path: string): Promise<Screen["scripts"]> => {
    const screen = await windowOf(scene, person, "light");
    screen.scripts.clear();
    await screen.go(`${scene.origin}/dashboard${path}`);
    return new Map(screen.scripts);
  };

  test("the first load and each further screen stay within their size limits", async () => {
    const first = await scene.open("owner", "");
    const shared = new Set(first.scripts.keys());
    expect([...shared].filter(isChart)).toEqual([]);
    await first.page.getByRole("img", { name: /a day$/ }).waitFor();
    const bytesOf = (scripts: Screen["scripts"], counts: (name: string) => boolean): number =>
      [...scripts].reduce((sum, [name, bytes]) => sum + (counts(name) ? bytes : 0), 0);
    expect(bytesOf(first.scripts, (name) => shared.has(name))).toBeLessThan(firstBytesMax);
    await first.close();
    const further: [path: string, bytes: number][] = [];
    // The sections of a screen are in its scripts.
    for (const [path, person] of screens.filter(([each]) => !each.includes("?"))) {
      const scripts = scriptsByScreen.get(path) ?? (await loadedScripts(person, path));
      further.push([path, bytesOf(scripts, (name) => !shared.has(name) && !isChart(name))]);
      expect(bytesOf(scripts, isChart)).toBeLessThan(chartBytesMax);
    }
    expect(further.filter(([, bytes]) => bytes >= furtherBytesMax)).toEqual([]);
  }, 600_000);
});
