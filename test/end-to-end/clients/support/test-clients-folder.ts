import { homedir } from "node:os";
import { join } from "node:path";

/**
 * Where scripts/install-test-clients.mjs puts clients that are no packages of this project: outside
 * the tree, because they are large or in other languages.
 */
export const testClientsFolder =
  process.env["SWITCHYARD_TEST_CLIENTS"] ?? join(homedir(), ".cache", "switchyard-test-clients");
