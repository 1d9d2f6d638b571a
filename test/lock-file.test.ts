import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

interface LockedPackage {
  version?: string;
  integrity?: string;
  resolved?: string;
  link?: boolean;
}

const { packages } = JSON.parse(
  readFileSync(join(import.meta.dirname, "../package-lock.json"), "utf8"),
) as { packages: Record<string, LockedPackage> };
const locked = Object.entries(packages).filter(([path, { link }]) => path !== "" && link !== true);

/** Optional packages of other platforms that the registry did not have when they were locked. */
const withoutHash = [
  "node_modules/@chdb/lib-darwin-arm64",
  "node_modules/@chdb/lib-darwin-x64",
  "node_modules/@chdb/lib-linux-arm64-gnu",
];

test("every package of the lock file has a hash", () => {
  const lacking = locked.filter(([, { integrity }]) => !integrity?.startsWith("sha512-"));
  expect(lacking.map(([path]) => path)).toEqual(withoutHash);
});

test("no package of the lock file names an address", () => {
  expect(locked.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
});
