import { Glob } from "bun";
import { expect, test } from "bun:test";
import { join, posix } from "node:path";

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

/** Imports of a file, of types too, that the arrows do not allow. */
async function strayImports(path: string): Promise<string[]> {
  const text = await Bun.file(join(root, path)).text();
  const from = folderOf(path);
  return [...text.matchAll(specifier)]
    .map(([, target = ""]) => posix.join(posix.dirname(path), target))
    .filter((target) => folderOf(target) !== from && !arrows[from]?.includes(folderOf(target)))
    .map((target) => `${path} may not know ${target}`);
}

test("the dashboard's imports go from the app to features, parts and the library", async () => {
  const paths = await Array.fromAsync(new Glob("**/*.{ts,tsx}").scan(root));
  expect(paths.length).toBeGreaterThan(50);
  expect((await Promise.all(paths.map(strayImports))).flat()).toEqual([]);
});
