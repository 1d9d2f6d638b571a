import { runCommand } from "./cli/program.ts";

/** Starts the gateway in this process, with the variables that the command line sets. */
async function start(
  parameters: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<void> {
  Object.assign(process.env, variables);
  process.argv = [process.argv[0] ?? "", "switchyard", ...parameters];
  await import("./main.ts");
  // The gateway ends the process itself, on a signal.
  await new Promise(() => undefined);
}

const exitCode = await runCommand(process.argv.slice(2), {
  environment: process.env,
  workingDirectory: process.cwd(),
  start,
  hasColours: process.stdout.isTTY && !process.env["NO_COLOR"],
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
});
process.exit(exitCode);
