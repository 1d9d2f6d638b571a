import { spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { startDashboardScene, type DashboardScene } from "./dashboard-scene.ts";

const root = resolve(import.meta.dirname, "../../..");

/** A checkout with what the dashboard is built of, whose sources a test may change. */
function copyCheckout(): string {
  const copy = mkdtempSync(join(tmpdir(), "switchyard-checkout-"));
  mkdirSync(join(copy, "scripts"));
  cpSync(join(root, "dashboard/src"), join(copy, "dashboard/src"), { recursive: true });
  for (const name of [
    "scripts/build-dashboard.ts",
    "package-lock.json",
    "package.json",
    "tsconfig.json",
    "dashboard/tsconfig.json",
  ])
    cpSync(join(root, name), join(copy, name));
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

describe.skipIf(!hasChromium)(`changes to the dashboard's sources${missingChromium}`, () => {
  let checkout: string;
  let scene: DashboardScene;
  beforeAll(async () => {
    checkout = copyCheckout();
    const buildScript = join(checkout, "scripts/build-dashboard.ts");
    const built = spawnSync(process.execPath, [buildScript], { encoding: "utf8" });
    expect([built.status, built.stderr]).toEqual([0, ""]);
    scene = await startDashboardScene(undefined, {
      seeded: false,
      dashboard: {
        folder: join(checkout, "dashboard/dist"),
        buildScript,
        watchedSources: join(checkout, "dashboard/src"),
      },
    });
  }, 240_000);
  afterAll(async () => {
    await scene.stop();
    rmSync(checkout, { recursive: true });
  });

  const edit = (name: string, from: string, to: string): void => {
    const path = join(checkout, "dashboard/src", name);
    const text = readFileSync(path, "utf8");
    expect(text).toContain(from);
    writeFileSync(path, text.replace(from, to));
  };

  test("are rebuilt and shown in open pages without a manual reload", async () => {
    const { page, problems, close } = await scene.open("developer", "/hub");
    await page.getByRole("heading", { level: 1, name: "Hub" }).waitFor();
    edit("features/hub/hub-page.tsx", 'PageHead title="Hub"', 'PageHead title="Library"');
    await page.getByRole("heading", { level: 1, name: "Library" }).waitFor();
    const heading = page.getByRole("heading", { level: 1, name: "Library" });
    edit("app/tokens.css", ":root", "h1 { display: none; }\n:root");
    await heading.waitFor({ state: "hidden" });
    edit("app/tokens.css", "h1 { display: none; }", "");
    await heading.waitFor();
    expect(problems.filter((problem) => problem.startsWith("console"))).toEqual([]);
    await close();
  });

  test("end in the final state after a burst of changes, some of them invalid", async () => {
    const { page, close } = await scene.open("developer", "/members");
    const names = ["Crew", "People", "Team", "Colleagues"];
    for (const [index, name] of names.entries()) {
      edit("features/members/members-page.tsx", "PageHead title", "PageHead ===== title");
      edit("app/navigation.ts", `label: "${names[index - 1] ?? "Members"}"`, `label: "${name}"`);
      edit("features/members/members-page.tsx", "PageHead ===== title", "PageHead title");
    }
    await page.getByRole("link", { name: "Colleagues" }).waitFor();
    await page.getByRole("heading", { level: 1, name: "Members" }).waitFor();
    await close();
  });
});
