/**
 * Bundles the programs that the tests of a whole run start some hundred times, prints the variable
 * with their folder, and removes it at the end of the input. The gateway is compiled to the engine's
 * bytecode, which saves a third of its start; only CommonJS in one file can be.
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

/** Replaces what a source says of its own place, by which it is not that of its bundle. */
function withPlaces(text: string, path: string): string {
  const places: Readonly<Record<string, string>> = {
    url: JSON.stringify(pathToFileURL(path).href),
    dir: JSON.stringify(dirname(path)),
    dirname: JSON.stringify(dirname(path)),
    // The program that a gateway of several processes runs once more: the bundle.
    path: "process.argv[1]",
  };
  return text
    .replaceAll(
      /\bimport\.meta\.(url|dir|dirname|path)\b/g,
      (_, name: string) => places[name] ?? "",
    )
    .replaceAll(
      /\bimport\.meta\.resolve\(([^()]*)\)/g,
      (_, name: string) => `Bun.pathToFileURL(Bun.resolveSync(${name}, ${places["dir"]})).href`,
    );
}

/**
 * The program that each gateway of a checkout runs to see whether its dashboard is of its sources. A
 * bundle has none, as a release: tests that show the dashboard build it.
 */
const builder = "../scripts/build-dashboard.ts";

const placesOfSources: Bun.BunPlugin = {
  name: "places of the sources",
  setup(build) {
    build.onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => ({
      contents: withPlaces((await Bun.file(path).text()).replace(builder, "../scripts/none"), path),
      loader: "ts",
    }));
  },
};

async function bundle(folder: string): Promise<void> {
  const common: Omit<Bun.BuildConfig, "entrypoints"> = {
    outdir: folder,
    target: "bun",
    external: Object.keys(dependencies).filter((name) => !bundledPackages.has(name)),
    plugins: [placesOfSources],
  };
  await Bun.build({
    ...common,
    entrypoints: programs.filter((program) => program !== "main").map(sourceOf),
    splitting: true,
    sourcemap: "linked",
  });
  await Bun.build({
    ...common,
    entrypoints: [sourceOf("main")],
    format: "cjs",
    bytecode: true,
    minify: { whitespace: true, syntax: true },
  });
}

mkdirSync(parent, { recursive: true });
const folder = mkdtempSync(join(parent, "test-program-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
await bundle(folder);
console.log(`${bundleVariable}=${folder}`);
await Bun.stdin.text();
process.exit(0);
