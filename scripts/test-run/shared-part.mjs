// Starts what all processes of a run share, so that it is made once: a database server with the
// schema, and the gateway's programs as bundles.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

/**
 * Starts a script of test/support, and returns the variables that lead tests to what it made. Where
 * it does not start there are none, and each process makes its own.
 */
export async function startSharedPart(root, name) {
  const script = join(root, "test", "support", name);
  if (!existsSync(script)) return { variables: {}, stop: async () => {} };
  const child = spawn(join(root, "node_modules", ".bin", "bun"), [script], {
    cwd: root,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => child.once("close", resolve).once("error", resolve));
  const line = await new Promise((resolve) => {
    createInterface(child.stdout).once("line", resolve);
    void ended.then(() => resolve(""));
  });
  const at = line.indexOf("=");
  return {
    variables: at < 0 ? {} : { [line.slice(0, at)]: line.slice(at + 1) },
    stop() {
      child.stdin.end();
      return ended;
    },
  };
}
