/**
 * Loaded before a gateway by a test of which modules it loads: SIGUSR2 writes their names to the
 * file named by MODULES_FILE.
 */
import { renameSync, writeFileSync } from "node:fs";

let written = 0;
process.on("SIGUSR2", () => {
  const path = process.env["MODULES_FILE"] ?? "modules.json";
  writeFileSync(`${path}.part`, JSON.stringify(Object.keys(require.cache)));
  renameSync(`${path}.part`, path);
  process.stderr.write(`modules written ${(written += 1)}\n`);
});
