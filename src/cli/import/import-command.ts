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
import { type GatewayApi, withAccount } from "../gateway-api.ts";
import { type CommandContext, CommandError } from "../terminal.ts";
import { ImportPlan, type NewRecord } from "./import-plan.ts";
import { LiteLlmImport } from "./litellm.ts";
import { OpenAiEnvironmentImport } from "./openai-env.ts";
import { OpenRouterImport } from "./openrouter.ts";
import { PortkeyImport } from "./portkey.ts";
import { type ImportFinding, SourceDocument } from "./source-document.ts";

/** The sources of an import. */
const importSources = ["litellm", "portkey", "openrouter", "openai-env"] as const;
export type ImportSource = (typeof importSources)[number];

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
}

interface CreatedRecords {
  keys: CreatedKey[];
  presets: string[];
  budgets: string[];
  /** Records that existed under the same name. */
  existing: string[];
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
    new LiteLlmImport(first, plan).run(keyList);
    return [first, ...(keyList === undefined ? [] : [keyList])];
  }
  const sources = [first, ...others];
  (source === "portkey" ? new PortkeyImport(plan) : new OpenRouterImport(plan)).run(sources);
  return sources;
}

/** Returns the configuration as YAML, checked as at a start. Throws `ConfigurationError`. */
function configurationText(plan: ImportPlan, from: string, file: string): string {
  const text = `# Written by: switchyard import ${from}\n# switchyard check reads it, switchyard doctor asks its providers.\n${stringify(
    plan.providers.length === 0 ? {} : { providers: plan.providers },
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

/** Returns names that clients use and that would mean another model here, or none. */
function lostNames(plan: ImportPlan, file: string): ImportFinding[] {
  const { models, aliases = new Map<string, string>() } = buildCatalog({
    environment: {},
    configuredProviders: plan.providers,
    nowMs: systemClock.nowMs(),
  });
  return [...plan.names].flatMap(([name, id]): ImportFinding[] => {
    const plain = name.toLowerCase();
    if (plain === id || (!models.has(plain) && aliases.get(plain) === id)) return [];
    const text = `clients write ${id}: ${name} alone means ${models.has(plain) ? plain : (aliases.get(plain) ?? "no model")}`;
    return [{ file, line: null, path: name, outcome: "changed", text }];
  });
}

const listOf = async (api: GatewayApi, path: string): Promise<Record<string, unknown>[]> =>
  ((await api.ask("GET", path)) as { data: Record<string, unknown>[] }).data;

/** Creates the records that the account lacks; a record of the same name stays as it is. */
async function createRecords(api: GatewayApi, plan: ImportPlan): Promise<CreatedRecords> {
  const created: CreatedRecords = { keys: [], presets: [], budgets: [], existing: [] };
  const missing = async (
    path: string,
    records: readonly NewRecord[],
    field: string,
  ): Promise<NewRecord[]> => {
    const there = new Set((await listOf(api, path)).map((each) => each[field]));
    created.existing.push(
      ...records.filter((each) => there.has(each[field])).map((each) => String(each[field])),
    );
    return records.filter((each) => !there.has(each[field]));
  };
  for (const preset of await missing("/presets", plan.presets, "slug")) {
    await api.ask("POST", "/presets", preset);
    created.presets.push(String(preset["slug"]));
  }
  for (const budget of await missing("/budgets", plan.budgets, "name")) {
    await api.ask("POST", "/budgets", budget);
    created.budgets.push(String(budget["name"]));
  }
  for (const wanted of await missing("/keys?include_disabled=true", plan.keys, "name")) {
    const { key, data } = (await api.ask("POST", "/keys", wanted)) as {
      key: string;
      data: { id: string; name: string };
    };
    created.keys.push({ name: data.name, id: data.id, key });
  }
  return created;
}

/** Creates the account's records, or says why that has to wait. */
async function fillAccount(
  context: CommandContext,
  plan: ImportPlan,
  file: string,
): Promise<CreatedRecords | string> {
  let isOpen = false;
  const environment = {
    ...Object.fromEntries(plan.variables),
    ...context.environment,
    SWITCHYARD_CONFIG: file,
  };
  try {
    return await withAccount({ ...context, environment }, (api) => {
      isOpen = true;
      return createRecords(api, plan);
    });
  } catch (error) {
    if (isOpen || !(error instanceof CommandError)) throw error;
    return error.message;
  }
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
    .map(([count, name]) => `${count} ${name}${count === 1 ? "" : "s"}`)
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
    ...lostNames(plan, documents[0]?.file ?? file),
  ];
  const variablesFile = resolve(file, "..", "switchyard.env");
  const written = dryRun ? false : writeConfiguration(file, text, force);
  if (!dryRun && plan.variables.size > 0) {
    const lines = [...plan.variables].map(([name, value]) => `${name}=${JSON.stringify(value)}\n`);
    writeFileSync(variablesFile, lines.join(""), { mode: 0o600 });
  }
  const hasRecords = recordCount(plan) !== "";
  const account = dryRun || !hasRecords ? undefined : await fillAccount(context, plan, file);
  const isDone = typeof account === "object";
  const result = {
    object: "import",
    source,
    dry_run: dryRun,
    configuration: { file, written, text },
    variables:
      plan.variables.size === 0 ? null : { file: variablesFile, names: [...plan.variables.keys()] },
    records: { keys: plan.keys, presets: plan.presets, budgets: plan.budgets },
    created: isDone ? account : null,
    pending: isDone || account === undefined ? null : account,
    findings,
  };
  if (!context.terminal.result(result)) showReport(context, result, recordCount(plan));
}

function showReport(
  { terminal }: CommandContext,
  result: {
    dry_run: boolean;
    configuration: { file: string; written: boolean; text: string };
    variables: { file: string; names: string[] } | null;
    created: CreatedRecords | null;
    pending: string | null;
    findings: readonly ImportFinding[];
  },
  records: string,
): void {
  const { configuration, variables, created, pending, findings } = result;
  const words = { imported: "imported", changed: "changed", left_out: "left out" } as const;
  const colours = { imported: "green", changed: "yellow", left_out: "red" } as const;
  for (const { file, line, path, outcome, text } of findings)
    terminal.line(
      `${file.split("/").at(-1)}${line === null ? "" : `:${line}`} ${terminal.colour(colours[outcome], words[outcome])} ${path}: ${text}`,
    );
  terminal.line();
  if (result.dry_run) {
    terminal.piece(configuration.text);
    terminal.line(
      `\nNothing was written. ${configuration.file} would hold the above${records === "" ? "" : `, the account ${records}`}.`,
    );
    return;
  }
  terminal.line(
    `${configuration.file} ${configuration.written ? "is written" : "is unchanged"} and can be used.`,
  );
  if (variables !== null)
    terminal.line(
      `${variables.file} holds ${variables.names.join(", ")}. Load it with: set -a; . ${variables.file}; set +a`,
    );
  if (pending !== null)
    terminal.line(`${records} still to be created: ${pending}. Then run this command again.`);
  for (const name of created?.existing ?? [])
    terminal.line(`${name} is there already and stays as it is.`);
  if (created === null) return;
  for (const slug of created.presets) terminal.line(`Created @preset/${slug}.`);
  for (const name of created.budgets) terminal.line(`Created the budget ${name}.`);
  if (created.keys.length === 0) return;
  terminal.line("New keys; they are not shown again:");
  terminal.table(created.keys, [
    ["NAME", ({ name }) => name],
    ["KEY", ({ key }) => key],
  ]);
}
