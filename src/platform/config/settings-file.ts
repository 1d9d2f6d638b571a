import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { z } from "zod";
import type { ConfigurationProblem } from "./configuration-error.ts";
import type { Environment } from "./expand-references.ts";
import { createFileSchema, type FileSettings } from "./file-schema.ts";
import { schemaProblems } from "./schema-problems.ts";
import { pathText } from "./show-value.ts";
import { readYaml, type YamlSource } from "./yaml-source.ts";

export interface SettingsFileOptions<Provider extends z.ZodType> {
  environment: Environment;
  workingDirectory: string;
  providerSchema: Provider;
  /** File that the operator named; when absent, `switchyard.yaml` is read if there is one. */
  named: string | undefined;
  readFile?: (path: string) => string;
}

const defaultFile = "switchyard.yaml";

/** The settings of the file; undefined when they cannot be used, and then a problem says why. */
export function readSettingsFile<Provider extends z.ZodType>(
  options: SettingsFileOptions<Provider>,
  problems: ConfigurationProblem[],
): FileSettings<Provider> | undefined {
  const schema = createFileSchema(options.providerSchema);
  const file = options.named ?? defaultFile;
  const text = readText(options, problems);
  if (text === undefined) return undefined;
  const source = readYaml(text, { file, environment: options.environment });
  problems.push(...source.problems);
  if (source.data === undefined) return undefined;
  problems.push(...duplicateProviders(source, file));
  const result = schema.safeParse(source.data ?? {});
  if (result.success) return result.data;
  problems.push(...schemaProblems(result.error.issues, { schema, source, file }));
  return undefined;
}

interface ReadTextOptions {
  named: string | undefined;
  workingDirectory: string;
  readFile?: (path: string) => string;
}

/** Only a file that nobody named may be missing. */
function readText(options: ReadTextOptions, problems: ConfigurationProblem[]): string | undefined {
  const { named, workingDirectory, readFile = (path: string) => readFileSync(path, "utf8") } = options;
  try {
    return readFile(resolve(workingDirectory, named ?? defaultFile));
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (code === "ENOENT" && named === undefined) return "";
    const reason = code === "ENOENT" ? "there is no such file" : error instanceof Error ? error.message : String(error);
    const key = named === undefined ? "" : "SWITCHYARD_CONFIG";
    problems.push({ key, message: `cannot read ${named ?? defaultFile}: ${reason}` });
    return undefined;
  }
}

function duplicateProviders(source: YamlSource, file: string): ConfigurationProblem[] {
  const firstIndexes = new Map<string, number>();
  return providerIds(source.data).flatMap((id, index) => {
    if (id === undefined) return [];
    const first = firstIndexes.get(id);
    if (first === undefined) firstIndexes.set(id, index);
    if (first === undefined) return [];
    const path = ["providers", index, "id"];
    const message = `${JSON.stringify(id)} is already the id of providers[${first}]`;
    return [{ key: pathText(path), message, file, ...source.positionOf(path) }];
  });
}

function providerIds(data: unknown): (string | undefined)[] {
  if (typeof data !== "object" || data === null || !("providers" in data) || !Array.isArray(data.providers)) return [];
  return data.providers.map((entry: unknown) =>
    typeof entry === "object" && entry !== null && "id" in entry && typeof entry.id === "string" ? entry.id : undefined);
}

