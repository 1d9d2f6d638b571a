import { runCommand as runHere } from "../../../src/cli/program.ts";
import { isNightly } from "../../support/nightly.ts";
import { programPath } from "../../support/program.ts";
import {
  makePlace,
  runProcess,
  type EndedProcess,
  type ProcessOptions,
} from "../../support/process.ts";

type CommandOptions = Omit<ProcessOptions, "command">;

/** Runs the command `switchyard` as a process, and waits for its end. */
export const runCommandProcess = (
  parameters: readonly string[],
  options: CommandOptions = {},
): Promise<EndedProcess> =>
  runProcess({ ...options, command: [process.execPath, programPath("switchyard"), ...parameters] });

/**
 * Runs the command `switchyard`: in this process, with the variables and the folder that a process
 * of its own would have, and nightly as one.
 */
export async function runCommand(
  parameters: readonly string[],
  options: CommandOptions = {},
): Promise<EndedProcess> {
  if (isNightly) return runCommandProcess(parameters, options);
  const { workingDirectory, environment } = makePlace(options);
  let [stdout, stderr] = ["", ""];
  const exitCode = await runHere(parameters, {
    environment,
    workingDirectory,
    hasColours: false,
    out: (text) => (stdout += text),
    err: (text) => (stderr += text),
    start: () => Promise.reject(new Error("a gateway needs a process of its own")),
  });
  return { exitCode, stdout, stderr };
}

/** The JSON document that a command prints. */
export const jsonOf = ({ stdout }: EndedProcess): unknown => JSON.parse(stdout);
