import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "bun:test";
import { openDashboard } from "./dashboard-files.ts";

const directory = mkdtempSync(join(tmpdir(), "switchyard-dashboard-"));
afterAll(() => rmSync(directory, { recursive: true }));

const silent = { error: () => undefined };

test("the dashboard reads a built folder once, at the first request", () => {
  const folder = join(directory, "dist");
  mkdirSync(folder);
  const build = (text: string): void => writeFileSync(join(folder, "index.html"), text);
  const dashboard = openDashboard({ folder, buildScript: undefined }, silent);
  expect(dashboard.index()).toBeUndefined();
  build("first");
  expect(dashboard.index()).toBe("first");
  build("second");
  expect(dashboard.index()).toBe("first");
});

test("the dashboard build waits for the promise buildAfter", async () => {
  const marker = join(directory, "announced");
  const buildScript = join(directory, "build.ts");
  const source = `import { existsSync } from "node:fs";
process.stderr.write(existsSync(${JSON.stringify(marker)}) ? "begun late" : "begun early");
process.exit(1);`;
  writeFileSync(buildScript, source);
  const announced = Promise.withResolvers<void>();
  const reported = Promise.withResolvers<unknown>();
  openDashboard(
    { folder: directory, buildScript, buildAfter: announced.promise },
    { error: ({ err }) => reported.resolve(err) },
  );
  // A build that had begun at once would have ended before one that begins now.
  await Bun.spawn([process.execPath, buildScript], { stderr: "ignore" }).exited;
  writeFileSync(marker, "");
  announced.resolve();
  expect(String(await reported.promise)).toContain("begun late");
});
