import { join } from "node:path";
import { runProcess, type EndedProcess, type ProcessOptions } from "../../support/process.ts";

const root = join(import.meta.dir, "..", "..", "..");

/** Runs the command `switchyard` as Node finds it, and waits for its end. */
export const runCommand = (
  parameters: readonly string[],
  options: Omit<ProcessOptions, "command"> = {},
): Promise<EndedProcess> =>
  runProcess({ ...options, command: ["node", join(root, "bin", "switchyard.mjs"), ...parameters] });

/** The JSON document that a command prints. */
export const jsonOf = ({ stdout }: EndedProcess): unknown => JSON.parse(stdout);
