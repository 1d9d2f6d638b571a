import { existsSync } from "node:fs";
import { join } from "node:path";
import { testClientsFolder } from "../../clients/support/test-clients-folder.ts";

const packages = join(testClientsFolder, "mcp", "node_modules");

/** Both need Node 22 or newer, whose binary is installed beside them. */
const node = join(packages, `node-${process.platform}-${process.arch}`, "bin", "node");

const programs = {
  conformance: join(packages, "@modelcontextprotocol", "conformance", "dist", "index.js"),
  inspector: join(
    packages,
    "@modelcontextprotocol",
    "inspector",
    "clients",
    "launcher",
    "build",
    "index.js",
  ),
};

/** What is missing to run a program of the protocol's own; undefined when it can run. */
export const missingProgram = (name: keyof typeof programs): string | undefined =>
  existsSync(node) && existsSync(programs[name])
    ? undefined
    : `${name}, which scripts/install-test-clients.mjs installs`;

/** Where a program runs, which is its home too, and the variables that it reads. */
interface Place {
  folder: string;
  variables?: Readonly<Record<string, string>>;
}

/** Starts a program of the protocol's own. */
export const startProgram = (
  name: keyof typeof programs,
  parameters: readonly string[],
  { folder, variables = {} }: Place,
) =>
  Bun.spawn([node, programs[name], ...parameters], {
    cwd: folder,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { PATH: process.env["PATH"] ?? "", HOME: folder, NO_COLOR: "1", ...variables },
  });

/** Runs a program to its end. */
export async function runProgram(
  name: keyof typeof programs,
  parameters: readonly string[],
  place: Place,
): Promise<{ exitCode: number; output: string; errorOutput: string }> {
  const child = startProgram(name, parameters, place);
  const [output, errorOutput, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { exitCode, output, errorOutput };
}
