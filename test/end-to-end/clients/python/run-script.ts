import { existsSync } from "node:fs";
import { join } from "node:path";
import { pythonPathOf, testClientsFolder } from "../support/test-clients-folder.ts";

/** Returns what is missing to run scripts with a package of a group; undefined where they can run. */
export function missingPackage(group: string, name: string): string | undefined {
  if (Bun.which("python3") === null) return "python3";
  return existsSync(join(testClientsFolder, group, name))
    ? undefined
    : `${name}, which scripts/install-test-clients.mjs installs`;
}

/**
 * Runs a Python script with the packages of one group or of several. Returns the JSON that it
 * prints; throws with what it wrote to stderr where it fails.
 */
export async function runScript(
  path: string,
  { group, parameters }: { group: string | readonly string[]; parameters: readonly string[] },
): Promise<unknown> {
  const child = Bun.spawn(["python3", path, ...parameters], {
    env: {
      PATH: process.env["PATH"] ?? "",
      PYTHONPATH: pythonPathOf(...[group].flat()),
      PYTHONDONTWRITEBYTECODE: "1",
      // Its list of prices is read from the package and not from the internet.
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (exitCode !== 0) throw new Error(`${path} ended with ${exitCode}:\n${stderr}`);
  return JSON.parse(stdout);
}
