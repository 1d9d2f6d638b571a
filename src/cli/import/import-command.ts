import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseEnv } from "node:util";
import { stringify } from "yaml";
import { buildCatalog } from "../../inference/catalog/build-catalog.ts";
import { configuredProviderSchema } from "../../inference/catalog/configured/configured-provider.ts";
import { checkSettings } from "../../platform/config/check-settings.ts";
import {
  ConfigurationError,
  type ConfigurationProblem,
} from "../../platform/config/configuration-error.ts";
import { systemClock } from "../../platform/kernel/clock.ts";
import { countText } from "../../platform/kernel/count-text.ts";
import { type GatewayApi, withAccount } from "../gateway-api.ts";
import { type CommandContext, CommandError, type Terminal } from "../terminal.ts";
import { canBeAlias, ImportPlan } from "./import-plan.ts";
import { LiteLlmImport } from "./litellm/litellm-import.ts";
import { BifrostImport } from "./bifrost/bifrost-import.ts";
import { HeliconeImport } from "./helicone-import.ts";
import { OpenAiEnvironmentImport } from "./openai-environment-import.ts";
import { OpenRouterImport } from "./openrouter-import.ts";
import { PortkeyImport } from "./portkey-import.ts";
import { type ImportFinding, SourceDocument } from "./source-document.ts";
import { TensorZeroImport } from "./tensorzero/tensorzero-import.ts";
import { readToml } from "./tensorzero/toml-document.ts";
import { withVariables, writeVariables } from "./variables-file.ts";

/** What reads files that are YAML or JSON, by source. */
const readers = {
  portkey: PortkeyImport,
  openrouter: OpenRouterImport,
  helicone: HeliconeImport,
  bifrost: BifrostImport,
} as const;

/** The sources of an import. */
export type ImportSource = keyof typeof readers | "litellm" | "tensorzero" | "openai-env";

/** The options of an import. */
export interface ImportOptions {
  /** The file with LiteLLM's virtual keys, as its API returns them. */
  keys?: string;
  dryRun?: boolean;
  /** Whether to replace an existing configuration. */
  force?: boolean;
}

/** A key as it was created, with its secret. */
interface CreatedKey {
  name: string;
  id: string;
  key: string;
  disabled: boolean;
}

type RecordKind = "key" | "preset" | "budget";

interface CreatedRecords {
  keys: CreatedKey[];
  presets: string[];
  budgets: string[];
  /** Records that existed under the same name. */
  existing: string[];
  /** Records that could not be made; those that could are not affected. */
  refused: { kind: RecordKind; name: string; reason: string }[];
}

function readSources(
  source: ImportSource,
  {
    files,
    context,
    plan,
    keys,
  }: {
    files: readonly string[];
    context: CommandContext;
    plan: ImportPlan;
    keys: string | undefined;
  },
): SourceDocument[] {
  const read = (file: string): SourceDocument => {
    const path = resolve(context.workingDirectory, file);
    if (source === "tensorzero") return readToml(path);
    if (source !== "openai-env") return SourceDocument.read(path);
    if (!existsSync(path)) throw new CommandError(`cannot read ${file}`, 2);
    return new SourceDocument(path, parseEnv(readFileSync(path, "utf8")) as Record<string, string>);
  };
  const [first, ...others] = files.map(read);
  if (source === "openai-env") {
    const document = first ?? new SourceDocument("environment", context.environment);
    new OpenAiEnvironmentImport(plan).run(document, { isFile: first !== undefined });
    return [document];
  }
  if (first === undefined)
    throw new CommandError(`name the file to import: switchyard import ${source} FILE`, 2);
  if (source === "litellm") {
    if (others.length > 0)
      throw new CommandError("name one config.yaml, and virtual keys with --keys", 2);
    const keyList = keys === undefined ? undefined : read(keys);
    const reader = new LiteLlmImport(first, plan);
    reader.run(keyList);
    return [...reader.sources, ...(keyList === undefined ? [] : [keyList])];
  }
  const sources = [first, ...others];
  const Reader = source === "tensorzero" ? TensorZeroImport : readers[source];
  new Reader(plan).run(sources);
  return sources;
}

/** Returns the configuration as YAML, checked as at a start. Throws `ConfigurationError`. */
function configurationText(plan: ImportPlan, from: string, file: string): string {
  const aliases = Object.fromEntries([
    ...plan.aliases,
    ...lostNames(plan).flatMap(({ name, id }) =>
      canBeAlias(name) && !plan.aliases.has(name) ? [[name, id] as const] : [],
    ),
  ]);
  const text = `# Written by: switchyard import ${from}\n# switchyard check reads it, switchyard doctor asks its providers.\n${stringify(
    {
      ...(plan.providers.length > 0 && { providers: plan.providers }),
      ...(Object.keys(aliases).length > 0 && { aliases }),
    },
    { lineWidth: 120, aliasDuplicateObjects: false },
  )}`;
  const problems: ConfigurationProblem[] = [];
  const environment = Object.fromEntries(plan.variables);
  checkSettings(
    text,
    { file, directory: ".", environment, providerSchema: configuredProviderSchema },
    problems,
  );
  if (problems.length > 0) throw new ConfigurationError(problems);
  return text;
}

/** A name that clients use and that would mean another model here, or none. */
interface LostName {
  name: string;
  id: string;
  /** What the name alone would mean; undefined for nothing. */
  meaning: string | undefined;
}

function lostNames(plan: ImportPlan): LostName[] {
  const { models, aliases = new Map<string, string>() } = buildCatalog({
    environment: {},
    configuredProviders: plan.providers,
    nowMs: systemClock.nowMs(),
  });
  return [...plan.names].flatMap(([name, id]) => {
    const plain = name.toLowerCase();
    const meaning = models.has(plain) ? plain : aliases.get(plain);
    return plain === id || meaning === id ? [] : [{ name, id, meaning }];
  });
}

/** Returns what becomes of lost names: most become names of the operator's own. */
const namedFindings = (plan: ImportPlan, file: string): ImportFinding[] =>
  lostNames(plan).map(({ name, id, meaning }) => {
    const place = { file, line: null, path: name };
    return canBeAlias(name)
      ? { ...place, outcome: "imported", text: `means ${id}, by an entry of aliases` }
      : {
          ...place,
          outcome: "changed",
          text: `clients write ${id}: ${name} alone means ${meaning ?? "no model"}`,
        };
  });

const listOf = async (api: GatewayApi, path: string): Promise<Record<string, unknown>[]> =>
  ((await api.ask("GET", path)) as { data: Record<string, unknown>[] }).data;

/** What is created, in this order, and the field by which a record is known. */
const recordKinds = [
  { kind: "preset", path: "/presets", list: "/presets", field: "slug" },
  { kind: "budget", path: "/budgets", list: "/budgets", field: "name" },
  { kind: "key", path: "/keys", list: "/keys?include_disabled=true", field: "name" },
] as const;

/**
 * Creates the records that the account lacks; a record of the same name stays as it is. Each is
 * shown as soon as it is made, since the secret of a key is not shown again, and one that is refused
 * does not end the run.
 */
async function createRecords(
  api: GatewayApi,
  plan: ImportPlan,
  { created, terminal }: { created: CreatedRecords; terminal: Terminal },
): Promise<void> {
  const planned = { preset: plan.presets, budget: plan.budgets, key: plan.keys };
  for (const { kind, path, list, field } of recordKinds) {
    if (planned[kind].length === 0) continue;
    const there = new Set((await listOf(api, list)).map((each) => each[field]));
    for (const wanted of planned[kind]) {
      const name = String(wanted[field]);
      if (there.has(name)) {
        created.existing.push(name);
        terminal.line(`${name} is there already and stays as it is.`);
        continue;
      }
      try {
        noteCreated(kind, await api.ask("POST", path, wanted), { name, created, terminal });
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        created.refused.push({ kind, name, reason });
        terminal.line(`${terminal.colour("red", "Not made:")} the ${kind} ${name}: ${reason}`);
      }
    }
  }
}

function noteCreated(
  kind: RecordKind,
  answer: unknown,
  { name, created, terminal }: { name: string; created: CreatedRecords; terminal: Terminal },
): void {
  if (kind === "key") {
    const { key, data } = answer as { key: string; data: { id: string; disabled: boolean } };
    created.keys.push({ name, id: data.id, key, disabled: data.disabled });
    const state = data.disabled ? ", disabled" : "";
    terminal.line(`Created the key ${name}${state}; it is not shown again: ${key}`);
  } else if (kind === "preset") {
    created.presets.push(name);
    terminal.line(`Created @preset/${name}.`);
  } else {
    created.budgets.push(name);
    terminal.line(`Created the budget ${name}.`);
  }
}

/** Creates the account's records, or says why that has to wait. */
async function fillAccount(
  context: CommandContext,
  plan: ImportPlan,
  file: string,
): Promise<CreatedRecords | string> {
  const created: CreatedRecords = { keys: [], presets: [], budgets: [], existing: [], refused: [] };
  let isOpen = false;
  const environment = {
    ...Object.fromEntries(plan.variables),
    ...context.environment,
    SWITCHYARD_CONFIG: file,
  };
  try {
    await withAccount({ ...context, environment }, (api) => {
      isOpen = true;
      return createRecords(api, plan, { created, terminal: context.terminal });
    });
  } catch (error) {
    // What was made by then has secrets, which the report must still show.
    if (created.keys.length > 0) {
      const reason = error instanceof Error ? error.message : String(error);
      created.refused.push({ kind: "key", name: "and what follows", reason });
    } else if (isOpen || !(error instanceof CommandError)) throw error;
    else return error.message;
  }
  return created;
}

function writeConfiguration(path: string, text: string, force: boolean): boolean {
  if (existsSync(path)) {
    if (readFileSync(path, "utf8") === text) return false;
    if (!force)
      throw new CommandError(
        `${path} is there already: replace it with --force, or name another with --config`,
        2,
      );
  }
  writeFileSync(path, text, { mode: 0o600 });
  return true;
}

const recordCount = ({ keys, presets, budgets }: ImportPlan): string =>
  [
    [keys.length, "key"] as const,
    [presets.length, "preset"] as const,
    [budgets.length, "budget"] as const,
  ]
    .filter(([count]) => count > 0)
    .map(([count, name]) => countText(count, name))
    .join(", ");

/** Imports another gateway's configuration: writes switchyard.yaml and creates keys and presets. */
export async function importFrom(
  context: CommandContext,
  source: ImportSource,
  files: readonly string[],
  { keys, dryRun = false, force = false }: ImportOptions,
): Promise<void> {
  const plan = new ImportPlan(systemClock.nowMs());
  const documents = readSources(source, { files, context, plan, keys });
  const file = resolve(
    context.workingDirectory,
    context.environment["SWITCHYARD_CONFIG"] ?? "switchyard.yaml",
  );
  const text = configurationText(plan, [source, ...files].join(" "), file);
  const findings = [
    ...documents.flatMap((document) => document.inOrder()),
    ...namedFindings(plan, documents[0]?.file ?? file),
  ];
  const variablesFile = resolve(file, "..", "switchyard.env");
  const secrets =
    dryRun || plan.variables.size === 0
      ? undefined
      : withVariables(variablesFile, plan.variables, { force });
  const written = dryRun ? false : writeConfiguration(file, text, force);
  if (secrets !== undefined) writeVariables(variablesFile, secrets);
  const hasRecords = recordCount(plan) !== "";
  showFindings(context, findings);
  const variables =
    plan.variables.size === 0 ? null : { file: variablesFile, names: [...plan.variables.keys()] };
  if (!dryRun) showWritten(context, { file, written, variables });
  const account = dryRun || !hasRecords ? undefined : await fillAccount(context, plan, file);
  const isDone = typeof account === "object";
  const result = {
    object: "import",
    source,
    dry_run: dryRun,
    configuration: { file, written, text },
    variables,
    records: { keys: plan.keys, presets: plan.presets, budgets: plan.budgets },
    created: isDone ? account : null,
    pending: isDone || account === undefined ? null : account,
    findings,
  };
  const { terminal } = context;
  if (!terminal.result(result)) {
    const records = recordCount(plan);
    if (dryRun) {
      terminal.piece(text);
      terminal.line(
        `\nNothing was written. ${file} would hold the above${records === "" ? "" : `, the account ${records}`}.`,
      );
    }
    if (result.pending !== null)
      terminal.line(
        `${records} still to be created: ${result.pending}. Then run this command again.`,
      );
  }
  const refused = result.created?.refused ?? [];
  if (refused.length > 0)
    throw new CommandError(
      `${refused.map(({ kind, name }) => `the ${kind} ${name}`).join(", ")} could not be made; the report says why`,
    );
}

const findingWords = { imported: "imported", changed: "changed", left_out: "left out" } as const;
const findingColours = { imported: "green", changed: "yellow", left_out: "red" } as const;

function showFindings({ terminal }: CommandContext, findings: readonly ImportFinding[]): void {
  for (const { file, line, path, outcome, text } of findings)
    terminal.line(
      [
        `${file.split("/").at(-1)}${line === null ? "" : `:${line}`}`,
        terminal.colour(findingColours[outcome], findingWords[outcome]),
        `${path}: ${text}`,
      ].join(" "),
    );
  terminal.line();
}

/** The files that an import wrote. */
interface Written {
  file: string;
  /** Whether the configuration is new, as opposed to unchanged. */
  written: boolean;
  variables: { file: string; names: string[] } | null;
}

function showWritten({ terminal }: CommandContext, { file, written, variables }: Written): void {
  terminal.line(`${file} ${written ? "is written" : "is unchanged"} and can be used.`);
  if (variables !== null)
    terminal.line(
      `${variables.file} holds ${variables.names.join(", ")}. Load it with: set -a; . ${variables.file}; set +a`,
    );
}
