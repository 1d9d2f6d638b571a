import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { z } from "zod";
import type { ConfigurationProblem } from "./configuration-error.ts";
import type { Environment } from "./expand-references.ts";
import type { FileSettings } from "./file-schema.ts";

export interface SettingsFileOptions<Provider extends z.ZodType> {
  environment: Environment;
  workingDirectory: string;
  /** Loads what checks one entry of `providers`. */
  providerSchema(): Promise<Provider>;
  /** File that the operator named; when absent, `switchyard.yaml` is read if there is one. */
  named: string | undefined;
  readFile?: (path: string) => string;
}

const defaultFile = "switchyard.yaml";

/**
 * The settings of the file; undefined when they cannot be used, and then a problem says why. YAML and the schema are
 * loaded for a file that says anything.
 */
export async function readSettingsFile<Provider extends z.ZodType>(
  options: SettingsFileOptions<Provider>,
  problems: ConfigurationProblem[],
): Promise<FileSettings<Provider> | undefined> {
  const text = readText(options, problems);
  if (text === undefined) return undefined;
  if (text.trim() === "") return {};
  const [{ checkSettings }, providerSchema] = await Promise.all([
    import("./check-settings.ts"),
    options.providerSchema(),
  ]);
  const { named: file = defaultFile, workingDirectory: directory, environment } = options;
  return checkSettings(text, { file, directory, environment, providerSchema }, problems);
}

interface ReadTextOptions {
  named: string | undefined;
  workingDirectory: string;
  readFile?: (path: string) => string;
}

/** Only a file that nobody named may be missing. */
function readText(options: ReadTextOptions, problems: ConfigurationProblem[]): string | undefined {
  const {
    named,
    workingDirectory,
    readFile = (path: string) => readFileSync(path, "utf8"),
  } = options;
  try {
    return readFile(resolve(workingDirectory, named ?? defaultFile));
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (code === "ENOENT" && named === undefined) return "";
    const reason =
      code === "ENOENT"
        ? "there is no such file"
        : error instanceof Error
          ? error.message
          : String(error);
    const key = named === undefined ? "" : "SWITCHYARD_CONFIG";
    problems.push({ key, message: `cannot read ${named ?? defaultFile}: ${reason}` });
    return undefined;
  }
}
