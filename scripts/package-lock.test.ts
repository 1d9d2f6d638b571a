import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { join } from "node:path";
import lock from "../package-lock.json";
import { dependencies } from "../package.json";
import generatorLock from "./openapi-typescript/package-lock.json";

interface Entry {
  version?: string;
  resolved?: string;
  integrity?: string;
  optionalDependencies?: Record<string, string>;
}

const entries = Object.entries(lock.packages as Record<string, Entry>);

// npm leaves out of the lock what a registry does not offer for this machine, and `npm ci` then
// refuses the lock on every machine: such packages of other platforms are entered by hand, with
// version, os and cpu.
test("every optional package that another one names is in the lock file", () => {
  const known = new Set(
    entries.map(([path]) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length)),
  );
  const named = entries.flatMap(([, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies),
  );
  expect(named.filter((name) => !known.has(name))).toEqual([]);
});

test("no entry of the lock files names its registry, and the generator's all have a checksum", () => {
  const generators = Object.entries(generatorLock.packages as Record<string, Entry>).slice(1);
  const named = [...entries, ...generators].filter(([, { resolved }]) => resolved !== undefined);
  expect(named).toEqual([]);
  expect(generators.filter(([, { integrity }]) => integrity === undefined)).toEqual([]);
});

// `npm start` installs without the packages of tests.
test("src, dashboard and scripts import no package that only tests install", () => {
  const root = join(import.meta.dir, "..");
  const sources = ["src", "dashboard/src", "scripts"]
    .flatMap((folder) => [...new Bun.Glob(`${folder}/**/*.{ts,tsx}`).scanSync(root)])
    .filter((name) => !name.includes(".test."))
    .map((name) => join(root, name));
  const imported = sources.flatMap((path) => {
    const imports = new Bun.Transpiler({ loader: path.endsWith("x") ? "tsx" : "ts" }).scanImports(
      readFileSync(path, "utf8"),
    );
    return imports
      .map((each) => each.path)
      .filter((name) => !/^[./]|^(?:node|bun):|^bun$/.test(name));
  });
  const packageOf = (name: string): string =>
    name
      .split("/")
      .slice(0, name.startsWith("@") ? 2 : 1)
      .join("/");
  const known = new Set([...Object.keys(dependencies), ...builtinModules]);
  expect(sources.length).toBeGreaterThan(500);
  expect([...new Set(imported.map(packageOf))].filter((name) => !known.has(name))).toEqual([]);
});
