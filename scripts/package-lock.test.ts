import { expect, test } from "bun:test";
import lock from "../package-lock.json";

interface Entry {
  version?: string;
  resolved?: string;
  optionalDependencies?: Record<string, string>;
}

const entries = Object.entries(lock.packages as Record<string, Entry>);

// npm leaves out of the lock what a registry does not offer for this machine, and `npm ci` then refuses the lock
// on every machine: such packages of other platforms are entered by hand, with version, os and cpu.
test("every optional package that another one names stands in the lock", () => {
  const known = new Set(entries.map(([path]) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length)));
  const named = entries.flatMap(([, { optionalDependencies = {} }]) => Object.keys(optionalDependencies));
  expect(named.filter((name) => !known.has(name))).toEqual([]);
});

test("nothing in the lock says which registry it came from", () => {
  expect(entries.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
});
