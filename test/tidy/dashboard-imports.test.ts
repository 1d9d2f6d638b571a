import { Glob } from "bun";
import { expect, test } from "bun:test";
import { join, posix } from "node:path";
import { circlesOf } from "./import-cycles.ts";

const root = join(import.meta.dir, "..", "..", "dashboard", "src");

/** Which folder of the dashboard may know which, beside itself. */
const arrows: Readonly<Record<string, readonly string[]>> = {
  app: ["features", "ui", "lib"],
  features: ["ui", "lib"],
  ui: ["lib"],
  lib: [],
};

const folderOf = (path: string): string => path.split("/")[0] ?? "";
const specifier = /(?:\bfrom|\bimport|\bimport\()\s*"(\.[^"]+)"/g;

/** The files that each file imports from, of types too. */
const graph = new Map(
  await Promise.all(
    [...new Glob("**/*.{ts,tsx}").scanSync(root)].map(async (path) => {
      const text = await Bun.file(join(root, path)).text();
      const targets = [...text.matchAll(specifier)].map(([, target = ""]) =>
        posix.join(posix.dirname(path), target),
      );
      return [path, targets] as const;
    }),
  ),
);

test("the dashboard's imports go from the app to features, parts and the library", () => {
  expect(graph.size).toBeGreaterThan(50);
  const stray = [...graph].flatMap(([path, targets]) => {
    const from = folderOf(path);
    return targets
      .filter((target) => folderOf(target) !== from && !arrows[from]?.includes(folderOf(target)))
      .map((target) => `${path} may not know ${target}`);
  });
  expect(stray).toEqual([]);
});

test("no two files of the dashboard import each other", () => {
  expect(circlesOf(graph)).toEqual([]);
});
