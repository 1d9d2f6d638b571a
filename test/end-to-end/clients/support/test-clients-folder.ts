import { homedir } from "node:os";
import { join } from "node:path";

/**
 * Where scripts/install-test-clients.mjs puts clients that are no packages of this project: outside
 * the tree, because they are large or in other languages.
 */
export const testClientsFolder =
  process.env["SWITCHYARD_TEST_CLIENTS"] ?? join(homedir(), ".cache", "switchyard-test-clients");

/**
 * Returns the search path of a Python program with the packages of some groups, and with what makes
 * its imports cheaper.
 */
export const pythonPathOf = (...groups: readonly string[]): string =>
  [
    ...groups.map((group) => join(testClientsFolder, group)),
    join(import.meta.dir, "..", "..", "..", "support", "python"),
  ].join(":");

/** Imports an npm package of one of the groups that the script installs. */
export function testClient(group: string, name: string): Promise<unknown> {
  const path = join(testClientsFolder, group, "node_modules", name);
  return import(Bun.resolveSync(path, path));
}
