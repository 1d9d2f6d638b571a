/**
 * Bundles the programs that the tests of a whole run start some hundred times, prints the variable
 * with their folder, and removes it at the end of the input.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { dependencies } from "../../package.json";
import { bundleVariable, programs, sourceOf } from "./program.ts";

const root = join(import.meta.dir, "..", "..");
/** Where packages are found that are not in the bundle. */
const parent = join(root, "node_modules", ".cache");
/** Packages that every start loads; the others are loaded when they are needed, as they are. */
const bundledPackages: ReadonlySet<string> = new Set([
  "hono",
  "ipaddr.js",
  "kysely",
  "pino",
  "zod",
]);

/** Where a source lies, instead of the bundle that it is in. */
const placesOf = (path: string): Readonly<Record<string, string>> => ({
  url: pathToFileURL(path).href,
  dir: dirname(path),
  dirname: dirname(path),
});

async function bundle(folder: string): Promise<void> {
  await Bun.build({
    entrypoints: programs.map(sourceOf),
    outdir: folder,
    target: "bun",
    splitting: true,
    sourcemap: "linked",
    external: Object.keys(dependencies).filter((name) => !bundledPackages.has(name)),
    plugins: [
      {
        name: "places of the sources",
        setup(build) {
          build.onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
            const places = placesOf(path);
            const text = await Bun.file(path).text();
            const contents = text.replaceAll(
              /\bimport\.meta\.(url|dir|dirname)\b/g,
              (_, name: string) => JSON.stringify(places[name]),
            );
            return { contents, loader: "ts" };
          });
        },
      },
    ],
  });
}

mkdirSync(parent, { recursive: true });
const folder = mkdtempSync(join(parent, "test-program-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
await bundle(folder);
console.log(`${bundleVariable}=${folder}`);
await Bun.stdin.text();
process.exit(0);
