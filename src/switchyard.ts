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

/** Writes texts to a stream of the process, whose reader may take them slowly. */
class Output {
  /** Resolves once the last text was taken, or the reader has left. */
  taken: Promise<void> = Promise.resolve();

  constructor(private readonly stream: NodeJS.WriteStream) {}

  readonly write = (text: string): void => {
    if (text !== "")
      this.taken = new Promise((resolve) => void this.stream.write(text, () => resolve()));
  };
}

const [out, err] = [new Output(process.stdout), new Output(process.stderr)];
const exitCode = await runCommand(process.argv.slice(2), {
  environment: process.env,
  workingDirectory: process.cwd(),
  start,
  hasColours: process.stdout.isTTY && !process.env["NO_COLOR"],
  out: out.write,
  err: err.write,
});
// A pipe takes some 64 kB at once; the rest would be lost with the process.
await Promise.all([out.taken, err.taken]);
process.exit(exitCode);
