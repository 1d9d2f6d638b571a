import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testClientsFolder } from "../../clients/support/test-clients-folder.ts";

const packagesIn = (folder: string): string => join(testClientsFolder, folder, "node_modules");

/**
 * The scripts that start the agents' binaries, which stand in packages of their own for each
 * platform.
 */
const launchers = {
  claude: join(packagesIn("agents"), "@anthropic-ai", "claude-code", "cli-wrapper.cjs"),
  codex: join(packagesIn("agents"), "@openai", "codex", "bin", "codex.js"),
  gemini: join(packagesIn("agents-google"), "@google", "gemini-cli", "bundle", "gemini.js"),
};

/** What is missing to run an agent; undefined when it can run. */
export function missingAgent(name: keyof typeof launchers): string | undefined {
  const there = existsSync(launchers[name]) && Bun.which("node") !== null;
  return there ? undefined : `${name}, which scripts/install-test-clients.mjs installs, or node`;
}

/** How an agent is run: its parameters, and the variables that it reads beside `HOME`. */
export interface AgentSetup {
  name: keyof typeof launchers;
  parameters: readonly string[];
  variables: Readonly<Record<string, string>>;
  /** The folder with its home and its work, which a later run continues; a new one when absent. */
  folder?: string;
  /** Writes what the agent reads from its home. */
  prepare?(home: string): Promise<unknown>;
}

/** What came of a run. */
export interface AgentRun {
  exitCode: number;
  /** Lines of the standard output, parsed. */
  events: Record<string, unknown>[];
  errorOutput: string;
  /** What stands in its working directory afterwards, by path. */
  files: ReadonlyMap<string, string>;
}

/** The command that starts an agent. */
export const agentCommand = (
  name: keyof typeof launchers,
  parameters: readonly string[],
): string[] => ["node", launchers[name], ...parameters];

/** Creates a folder for an agent that runs several times. */
export const agentFolder = (): string => mkdtempSync(join(tmpdir(), "switchyard-agent-"));

/**
 * Runs an agent, in an empty folder with an empty home unless it continues in another, where nothing
 * but loopback can be reached.
 */
export async function runAgent(setup: AgentSetup): Promise<AgentRun> {
  const folder = setup.folder ?? agentFolder();
  const home = join(folder, "home");
  const work = join(folder, "work");
  await Promise.all([Bun.write(join(home, ".keep"), ""), Bun.write(join(work, ".keep"), "")]);
  await setup.prepare?.(home);
  try {
    const child = Bun.spawn(agentCommand(setup.name, setup.parameters), {
      cwd: work,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      env: { PATH: process.env["PATH"] ?? "", HOME: home, ...onlyLoopback, ...setup.variables },
    });
    const [output, errorOutput, exitCode] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return { exitCode, events: eventsOf(output), errorOutput, files: await filesOf(work) };
  } finally {
    if (setup.folder === undefined) rmSync(folder, { recursive: true, force: true });
  }
}

/** Environment that sends all traffic beyond loopback to a proxy that does not exist. */
export const onlyLoopback = {
  HTTPS_PROXY: "http://127.0.0.1:1",
  HTTP_PROXY: "http://127.0.0.1:1",
  NO_PROXY: "127.0.0.1,localhost",
};

const eventsOf = (output: string): Record<string, unknown>[] =>
  output
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

async function filesOf(folder: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for await (const path of new Bun.Glob("**/*").scan({ cwd: folder })) {
    files.set(path, await Bun.file(join(folder, path)).text());
  }
  return files;
}
