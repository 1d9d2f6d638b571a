import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { version } from "../../package.json";
import { ConfigurationError, problemLine } from "../platform/config/configuration-error.ts";
import { readTls } from "../platform/config/tls-files.ts";
import type { Environment } from "../platform/config/environment-settings.ts";
import {
  createKey,
  exportWorkspace,
  grantCredits,
  listKeys,
  revokeKey,
  ask,
  listModels,
} from "./api-commands.ts";
import { backup, restore } from "./backup.ts";
import { creditCustomer, listCustomers, showCustomer } from "./customer-commands.ts";
import { addToRun, endRun, listRuns, showRun } from "./run-commands.ts";
import { addToTeam, createTeam, listTeams, showTeam } from "./team-commands.ts";
import { CommandError, Terminal, type CommandContext } from "./terminal.ts";
import { doctor } from "./doctor.ts";
import type { ImportOptions, ImportSource } from "./import/import-command.ts";
import { readConfiguration } from "../app/settings-of.ts";

/** Shells with a completion script. */
const shells = ["bash", "zsh", "fish"] as const;

/** Returns the words that may follow each command: `keys` has `create list revoke --help`. */
function wordsBelow(command: Command, path = ""): Map<string, string[]> {
  const own = [
    ...command.commands.map((each) => each.name()),
    ...command.options.flatMap(({ long }) => long ?? []),
    "--help",
  ];
  const words = new Map([[path, own]]);
  for (const child of command.commands) {
    for (const [below, found] of wordsBelow(
      child,
      path === "" ? child.name() : `${path} ${child.name()}`,
    ))
      words.set(below, found);
  }
  return words;
}

const bashScript = (words: Map<string, string[]>): string => `_switchyard() {
  local path="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ "$word" == -* ]] || path="\${path:+$path }$word"
  done
  local words=""
  case "$path" in
${[...words].map(([path, found]) => `    "${path}") words="${found.join(" ")}" ;;`).join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _switchyard switchyard
`;

const zshScript = (words: Map<string, string[]>): string => `#compdef switchyard
autoload -U +X bashcompinit && bashcompinit
${bashScript(words)}`;

const fishScript = (words: Map<string, string[]>): string =>
  [...words]
    .map(([path, found]) => {
      const condition =
        path === ""
          ? "__fish_use_subcommand"
          : `__fish_seen_subcommand_from ${path.split(" ").at(-1)}`;
      return `complete -c switchyard -f -n '${condition}' -a '${found.join(" ")}'`;
    })
    .join("\n")
    .concat("\n");

/** Returns the script that completes the command's words in a shell. */
function completionScript(program: Command, shell: string): string {
  const words = wordsBelow(program);
  if (shell === "bash") return bashScript(words);
  if (shell === "zsh") return zshScript(words);
  if (shell === "fish") return fishScript(words);
  throw new CommandError(`expected ${shells.join(", ")}, got ${shell}`, 2);
}

/** The environment of a command. */
interface CommandWorld {
  environment: Environment;
  workingDirectory: string;
  hasColours: boolean;
  out(text: string): void;
  err(text: string): void;
  /** Runs the gateway in this process until it is asked to end. */
  start(parameters: readonly string[], variables: Readonly<Record<string, string>>): Promise<void>;
}

function amount(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value < 0)
    throw new InvalidArgumentError("expected a number that is not negative");
  return value;
}

const list = (text: string): string[] =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");

interface GlobalOptions {
  json?: boolean;
  url?: string;
  key?: string;
  config?: string;
  dataDir?: string;
}

const variablesOf = ({ config, dataDir }: GlobalOptions): Record<string, string> => ({
  ...(config === undefined ? {} : { SWITCHYARD_CONFIG: config }),
  ...(dataDir === undefined ? {} : { SWITCHYARD_DATA_DIR: dataDir }),
});

/** The command line, whose commands are given their dependencies. */
class CommandLine {
  readonly program = new Command("switchyard");
  exitCode = 0;

  constructor(private readonly world: CommandWorld) {
    this.program
      .description("Runs and administers a Switchyard gateway.")
      .version(version)
      .exitOverride()
      .configureOutput({ writeOut: world.out, writeErr: world.err })
      .showHelpAfterError("(switchyard --help shows the commands)")
      .option("--json", "print one JSON document")
      .option(
        "--url <url>",
        "the gateway (SWITCHYARD_URL, or where the configuration has it listen)",
      )
      .option(
        "--key <key>",
        "the key (SWITCHYARD_MANAGEMENT_KEY; SWITCHYARD_KEY for models and ask)",
      )
      .option("--config <file>", "the configuration file (SWITCHYARD_CONFIG)")
      .option("--data-dir <folder>", "the data (SWITCHYARD_DATA_DIR)");
  }

  context(): CommandContext {
    const options = this.program.opts<GlobalOptions>();
    return {
      terminal: new Terminal({ ...this.world, json: options.json ?? false }),
      workingDirectory: this.world.workingDirectory,
      environment: { ...this.world.environment, ...variablesOf(options) },
      url: options.url,
      key: options.key,
    };
  }

  start(parameters: readonly string[], variables: Readonly<Record<string, string>>): Promise<void> {
    return this.world.start(parameters, {
      ...variablesOf(this.program.opts<GlobalOptions>()),
      ...variables,
    });
  }
}

function addOperating(line: CommandLine): void {
  const { program } = line;
  program
    .command("start")
    .description("start the gateway")
    .option("--port <port>", "where to listen (PORT)")
    .option("--host <host>", "(HOST)")
    .option("--no-migrate", "refuse to start where the database lacks migrations")
    .action(({ port, host, migrate }: { port?: string; host?: string; migrate: boolean }) =>
      line.start(migrate ? [] : ["--no-migrate"], {
        ...(port === undefined ? {} : { PORT: port }),
        ...(host === undefined ? {} : { HOST: host }),
      }),
    );
  program
    .command("check")
    .description("check the configuration, with the line of each mistake")
    .option("--explain <key>", "show the type, default and meaning of a key, such as server.port")
    .action(async ({ explain }: { explain?: string }) => {
      if (explain !== undefined) {
        const { explainSetting } = await import("./explain-setting.ts");
        explainSetting(line.context().terminal, explain);
        return;
      }
      const { server, warnings } = await readConfiguration(line.context());
      if (server.tls !== undefined) readTls(server.tls);
      const { terminal } = line.context();
      for (const warning of warnings) terminal.note(`warning: ${problemLine(warning)}`);
      if (!line.context().terminal.result({ valid: true, problems: [], warnings }))
        line.context().terminal.line("The configuration can be used.");
    });
  program
    .command("doctor")
    .description("examine the database, sums, keys, providers, clock, disk and versions")
    .option("--offline", "ask no provider")
    .action(async ({ offline = false }: { offline?: boolean }) => {
      line.exitCode = await doctor(line.context(), { offline });
    });
  program
    .command("docs")
    .description("write this documentation as a folder of files, for any web server")
    .requiredOption("--out <folder>", "a new folder, or one that this command wrote")
    .action(async ({ out }: { out: string }) => {
      const { writeDocumentation } = await import("./write-documentation.ts");
      await writeDocumentation(line.context(), out);
    });
  program
    .command("backup")
    .argument("<folder>", "a new folder")
    .description("back the database up, also while the gateway runs, and verify the copy")
    .option("--without-key", "leave encryption.key out; keep it elsewhere")
    .addOption(new Option("--no-encryption-key", "the earlier name of --without-key").hideHelp())
    .action(
      (
        folder: string,
        { encryptionKey, withoutKey = false }: { encryptionKey: boolean; withoutKey?: boolean },
      ) => backup(line.context(), folder, { withKey: encryptionKey && !withoutKey }),
    );
  program
    .command("restore")
    .argument("<folder>", "a backup")
    .description("verify and restore a backup; the gateway has to be stopped")
    .option("--force", "restore over a database, which is kept under another name")
    .action((folder: string, { force = false }: { force?: boolean }) =>
      restore(line.context(), folder, { force }),
    );
}

function addAccount(line: CommandLine): void {
  const keys = line.program.command("keys").description("create, list and revoke LLM keys");
  keys
    .command("create")
    .argument("<name>")
    .description("create a key; its secret is shown once")
    .option("--limit <usd>", "the most that it may spend", amount)
    .addOption(
      new Option("--reset <window>", "the window of the limit").choices([
        "daily",
        "weekly",
        "monthly",
      ]),
    )
    .option("--models <ids>", "the models that it may ask, with commas", list)
    .option("--expires <moment>", "such as 2027-01-31T00:00:00Z")
    .option("--rate <number>", "requests a minute", amount)
    .option("--team <id>", "the team that it belongs to")
    .action((name: string, options: Parameters<typeof createKey>[2]) =>
      createKey(line.context(), name, options),
    );
  keys
    .command("list")
    .description("list the keys, disabled ones too")
    .addOption(new Option("--disabled", "the default").hideHelp())
    .action(() => listKeys(line.context()));
  keys
    .command("revoke")
    .argument("<key>", "its id, hash or name")
    .description("revoke a key, at once")
    .action((wanted: string) => revokeKey(line.context(), wanted));
  addRuns(line);
  addCustomers(line);
  addTeams(line);
  line.program
    .command("credits")
    .description("give credits")
    .command("grant")
    .argument("<usd>", "how much", amount)
    .description("give a workspace credits")
    .option("--workspace <id>", "which, where there are several")
    .addOption(
      new Option("--bucket <bucket>", "monthly ones lapse with the month")
        .choices(["topup", "monthly"])
        .default("topup"),
    )
    .option("--description <text>", "kept with the grant")
    .action((usd: number, options: Parameters<typeof grantCredits>[2]) =>
      grantCredits(line.context(), usd, options),
    );
  line.program
    .command("export")
    .description("export a workspace's data as JSON, without secrets")
    .option("--output <file>", "instead of stdout")
    .action(({ output }: { output?: string }) => exportWorkspace(line.context(), output));
}

function addRuns(line: CommandLine): void {
  const runs = line.program.command("runs").description("list, show, extend and end agents' runs");
  runs
    .command("list")
    .description("list the newest runs")
    .action(() => listRuns(line.context()));
  runs
    .command("show")
    .argument("<run>", "its id")
    .description("show a run with the runs in it")
    .action((id: string) => showRun(line.context(), id));
  runs
    .command("add")
    .argument("<run>", "its id")
    .argument("<usd>", "how much", amount)
    .description("let a run spend more")
    .action((id: string, usd: number) => addToRun(line.context(), id, usd));
  runs
    .command("end")
    .argument("<run>", "its id")
    .description("end a run and the runs in it")
    .action((id: string) => endRun(line.context(), id));
}

function addCustomers(line: CommandLine): void {
  const customers = line.program
    .command("customers")
    .description("list and show end customers, and add credits");
  customers
    .command("list")
    .description("list the newest customers with their margins")
    .action(() => listCustomers(line.context()));
  customers
    .command("show")
    .argument("<customer>", "its id, or what requests name it")
    .description("show what a customer used and what is left")
    .action((id: string) => showCustomer(line.context(), id));
  customers
    .command("credit")
    .argument("<customer>", "its id, or what requests name it")
    .argument("<usd>", "how much", amount)
    .description("add credits to a prepaid customer")
    .option("--note <text>", "kept with the credits")
    .action((id: string, usd: number, { note }: { note?: string }) =>
      creditCustomer(line.context(), { id, usd, note }),
    );
}

function addTeams(line: CommandLine): void {
  const teams = line.program.command("teams").description("list, show and create teams");
  teams
    .command("list")
    .description("list the teams with what is left of their budgets")
    .action(() => listTeams(line.context()));
  teams
    .command("show")
    .argument("<team>", "its id or name")
    .description("show a team")
    .action((team: string) => showTeam(line.context(), team));
  teams
    .command("create")
    .argument("<name>")
    .description("create a team")
    .option("--limit <usd>", "the most that its keys may spend in a period", amount)
    .addOption(
      new Option("--period <period>", "the period of the limit").choices([
        "daily",
        "weekly",
        "monthly",
        "total",
      ]),
    )
    .option("--zone <name>", "the time zone of the period, such as Europe/Berlin")
    .option("--models <ids>", "the models that its keys may ask, with commas", list)
    .action((name: string, options: Parameters<typeof createTeam>[2]) =>
      createTeam(line.context(), name, options),
    );
  teams
    .command("add")
    .argument("<team>", "its id or name")
    .argument("<email>", "the address of a person of the workspace")
    .description("add a person to a team")
    .action((team: string, email: string) => addToTeam(line.context(), { team, email }));
}

function addBatches(line: CommandLine): void {
  const batches = line.program.command("batches").description("run and watch batches");
  batches
    .command("run")
    .argument("<file>", "requests, one JSON object a line")
    .description("run the requests of a file, and write the results beside it")
    .action(async (file: string) => {
      const { runBatch } = await import("./batch-commands.ts");
      await runBatch(line.context(), file);
    });
  batches
    .command("watch")
    .argument("<batch>", "its id")
    .description("show the progress of a batch until it has ended")
    .action(async (id: string) => {
      const { watchBatch } = await import("./batch-commands.ts");
      await watchBatch(line.context(), id);
    });
}

function addInference(line: CommandLine): void {
  addBatches(line);
  line.program
    .command("models")
    .argument("[text]", "part of the id")
    .description("list the models that can be called")
    .action((search: string | undefined) => listModels(line.context(), search));
  line.program
    .command("ask")
    .argument("<question...>")
    .description("ask one question and show the answer as it comes")
    .option("--model <id>", "a free one where none is named")
    .option("--max-tokens <number>", "the longest answer", amount, 1024)
    .action((words: string[], options: Parameters<typeof ask>[2]) =>
      ask(line.context(), words.join(" "), options),
    );
  line.program
    .command("completion")
    .argument("<shell>", shells.join(", "))
    .description("print the script that completes these commands in a shell")
    .action((shell: string) =>
      line.context().terminal.piece(completionScript(line.program, shell)),
    );
}

function addImport(line: CommandLine): void {
  const command = line.program
    .command("import")
    .description(
      "read another gateway's configuration: write switchyard.yaml, create keys and presets",
    );
  const add = (source: ImportSource, what: string): void => {
    const own = command
      .command(source)
      .argument(source === "openai-env" ? "[files...]" : "<files...>", what)
      .option("--dry-run", "write nothing, and show what would be")
      .option("--force", "replace a configuration that is there, and its secrets");
    if (source === "litellm")
      own.option("--keys <file>", "virtual keys: GET /key/list?return_full_object=true");
    own.action(async (files: string[], options: ImportOptions) => {
      const { importFrom } = await import("./import/import-command.ts");
      await importFrom(line.context(), source, files, options);
    });
  };
  add("litellm", "config.yaml");
  add("portkey", "configs, virtual keys and API keys as the API answers with them");
  add("openrouter", "the answers of GET /keys and GET /presets");
  add("tensorzero", "tensorzero.toml, or the files that it is split into");
  add("helicone", "the configuration of Helicone's AI gateway, such as ai-gateway-config.yaml");
  add("bifrost", "config.json");
  add("openai-env", "a .env file; the environment where none is named");
}

/**
 * Runs one command line. Returns the exit code: 0, 1 where it found or met a problem, 2 for
 * incorrect usage.
 */
export async function runCommand(
  parameters: readonly string[],
  world: CommandWorld,
): Promise<number> {
  const line = new CommandLine(world);
  for (const add of [addOperating, addAccount, addImport, addInference]) add(line);
  // Subcommands inherit the program's settings of output and errors.
  const settle = (command: Command): void =>
    command.commands.forEach((child) => settle(child.copyInheritedSettings(command)));
  settle(line.program);
  try {
    await line.program.parseAsync(parameters, { from: "user" });
    return line.exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    return report(error, line.context());
  }
}

function report(error: unknown, { terminal }: CommandContext): number {
  if (error instanceof ConfigurationError) {
    if (!terminal.result({ valid: false, problems: error.problems }))
      terminal.note(`The configuration is wrong:\n${error.toString()}`);
    return 1;
  }
  const known = error instanceof CommandError;
  const text = error instanceof Error ? error.message : String(error);
  if (!terminal.result({ error: { message: text } })) terminal.note(`switchyard: ${text}`);
  return known ? error.exitCode : 1;
}
