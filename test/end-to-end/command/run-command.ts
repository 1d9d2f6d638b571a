import { programPath } from "../../support/program.ts";
import { runProcess, type EndedProcess, type ProcessOptions } from "../../support/process.ts";

/** Runs the command `switchyard`, and waits for its end. */
export const runCommand = (
  parameters: readonly string[],
  options: Omit<ProcessOptions, "command"> = {},
): Promise<EndedProcess> =>
  runProcess({ ...options, command: [process.execPath, programPath("switchyard"), ...parameters] });

/** The JSON document that a command prints. */
export const jsonOf = ({ stdout }: EndedProcess): unknown => JSON.parse(stdout);
