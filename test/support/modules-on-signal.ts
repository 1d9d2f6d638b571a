/**
 * Loaded before a gateway by a test that looks at what it has loaded: SIGUSR2 writes its modules to
 * the file of MODULES_FILE.
 */
import { renameSync, writeFileSync } from "node:fs";

process.on("SIGUSR2", () => {
  const path = process.env["MODULES_FILE"] ?? "modules.json";
  writeFileSync(`${path}.part`, JSON.stringify(Object.keys(require.cache)));
  renameSync(`${path}.part`, path);
  process.stderr.write("modules written\n");
});
