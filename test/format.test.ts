import { expect, test } from "bun:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Runs a program of the development packages on the tree; its exit code and the end of what it says. */
async function run(...command: [string, ...string[]]): Promise<{ code: number; output: string }> {
  const child = Bun.spawn([`node_modules/.bin/${command[0]}`, ...command.slice(1)], {
    cwd: root,
    stdout: "pipe",
    stderr: "pipe",
  });
  const output = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { code: await child.exited, output: output.join("\n").slice(-4_000) };
}

test("every file is formatted and passes the linter (npm run format fixes most)", async () => {
  const checked = await run("biome", "ci", "--colors=off", "--error-on-warnings", ".");
  expect(checked).toMatchObject({ code: 0 });
}, 600_000);

test("every export is imported by another file, and every file is used (knip.json)", async () => {
  const include = "files,exports,types,enumMembers";
  const checked = await run("bun", "node_modules/.bin/knip", "--no-progress", "--include", include);
  expect(checked).toMatchObject({ code: 0 });
}, 600_000);
