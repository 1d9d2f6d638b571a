import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { darkFindings, hasChromium, missingChromium, turnDark } from "../../support/chromium.ts";
import { chatStream } from "../../support/upstream/healthy-chat.ts";
import { listAt, textAt } from "../api/at.ts";
import { startDashboardScene, type DashboardScene, type Person } from "./dashboard-scene.ts";
import {
  expectPicture,
  furtherPictures,
  missedPictures,
  picturedAnswer,
  pictureOf,
  publicPictures,
  steps,
} from "./documentation-pictures.ts";
import { screens } from "./every-screen.ts";
import { geometryFindings } from "./geometry.ts";
import { expectSound, openScreen, settled, type Screen } from "./screen.ts";

/** The sum of all shifts of one load (`layout-shift.test.ts` names what was moved). */
const shiftMax = 0.01;
/** Resolves with the sum of what moved since the page was loaded. */
const shiftOf = async (page: Screen["page"]): Promise<number> =>
  Number(
    await page.evaluate(`new Promise((resolve) => {
      let sum = 0;
      const add = (entries) => { for (const { value } of entries) sum += value; };
      const observer = new PerformanceObserver((list) => add(list.getEntries()));
      observer.observe({ type: "layout-shift", buffered: true });
      requestAnimationFrame(() => requestAnimationFrame(() =>
        (add(observer.takeRecords()), observer.disconnect(), resolve(sum))));
    })`),
  );

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

  /** Expects that a light page looks like its pictures, light and turned dark, which it stays. */
  const expectPictures = async (name: string, { page }: Pick<Screen, "page">): Promise<void> => {
    await expectPicture(`${name}-light`, page);
    await turnDark(page);
    await expectPicture(`${name}-dark`, page);
  };

  test.each(screens)(
    "%s for the %s, over thousands of requests, light and dark, passes all layout checks and matches its screenshots",
    async (path, person) => {
      const screen = await busyScene.open(person, path);
      const name = pictureOf(path, person);
      if (name !== undefined) await expectPicture(`${name}-light`, screen.page);
      await expectSound(screen);
      expect(await darkFindings(screen.page)).toEqual([]);
      if (name !== undefined) await expectPicture(`${name}-dark`, screen.page);
      expect(await geometryFindings(screen.page)).toEqual([]);
      await screen.close();
    },
  );

  test("the pages of one team, customer and run pass all layout checks, light and dark", async () => {
    const screen = await busyScene.open("owner", "/teams");
    const { page } = screen;
    for (const [path, name] of [
      ["/teams", "Research"],
      ["/customers", "Harbour Books"],
      ["/runs", "Nightly research"],
    ] as const) {
      await screen.follow(path);
      await page.getByRole("link", { name }).click();
      await page.getByRole("heading", { level: 1, name }).waitFor();
      await settled(page);
      await expectSound(screen);
      expect(await geometryFindings(page)).toEqual([]);
    }
    expect(await darkFindings(page)).toEqual([]);
    await screen.close();
  }, 600_000);

  test("every screenshot of a screen is compared where the screen is loaded", () => {
    expect(missedPictures(screens)).toEqual([]);
  });

  test.each(furtherPictures)(
    "%s, light and turned dark, matches its screenshots",
    async (name, path, person) => {
      const screen = await busyScene.open(person, path);
      await steps[name]?.(screen.page);
      await settled(screen.page);
      await expectPictures(name, screen);
      await screen.close();
    },
  );

  test.each(publicPictures)(
    "the public page %s, light and turned dark, matches its screenshots",
    async (name, path) => {
      const page = await busyScene.openSignedOut(path);
      await expectPictures(name, page);
      await page.close();
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

  /** The scripts of each screen, by its path: those of the document that loaded it. */
  const scriptsByScreen = new Map<string, Screen["scripts"]>();
  test.each(screens)(
    "%s for the %s, on a phone, passes all layout checks",
    async (path, person) => {
      const screen = await scene.open(person, path, "phone");
      scriptsByScreen.set(path, screen.scripts);
      expect(await shiftOf(screen.page)).toBeLessThan(shiftMax);
      await expectSound(screen);
      await screen.close();
    },
  );

  test("every screen of an empty workspace passes all layout checks", async () => {
    const own = listAt(await scene.ask("developer", "GET", "/workspaces"), "data").find(
      (workspace) => textAt(workspace, "id") !== scene.workspaceId,
    );
    const context = await scene.window("developer");
    await context.addInitScript(`sessionStorage.setItem("workspace", "${textAt(own, "id")}")`);
    const first = await context.newPage();
    const screen = await openScreen(first, `${scene.origin}/dashboard`, () => context.close());
    const findings: string[] = [];
    for (const [path, person] of screens) {
      if (person === "operator") continue;
      await screen.follow(path);
      const found = await geometryFindings(screen.page);
      findings.push(...found.map((finding) => `${path}: ${finding}`));
    }
    expect(findings).toEqual([]);
    expect(screen.problems).toEqual([]);
    await screen.close();
  }, 600_000);

  const loadedScripts = async (person: Person, path: string): Promise<Screen["scripts"]> => {
    const { scripts, close } = await scene.open(person, path);
    await close();
    return scripts;
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
