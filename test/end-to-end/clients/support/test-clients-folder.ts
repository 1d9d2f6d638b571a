import { homedir } from "node:os";
import { join } from "node:path";

/**
 * Where scripts/install-test-clients.mjs puts clients that are no packages of this project: outside
 * the tree, because they are large or in other languages.
 */
export const testClientsFolder =
  process.env["SWITCHYARD_TEST_CLIENTS"] ?? join(homedir(), ".cache", "switchyard-test-clients");

/** Imports an npm package of one of the groups that the script installs. */
export function testClient(group: string, name: string): Promise<unknown> {
  const path = join(testClientsFolder, group, "node_modules", name);
  return import(Bun.resolveSync(path, path));
}
