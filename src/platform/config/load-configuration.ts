import type { z } from "zod";
import { assembleConfiguration } from "./assemble-configuration.ts";
import type { Configuration } from "./configuration.ts";
import { ConfigurationError, type ConfigurationProblem } from "./configuration-error.ts";
import { readEnvironment } from "./environment-settings.ts";
import type { Environment } from "./expand-references.ts";
import { readSettingsFile } from "./settings-file.ts";

export interface LoadOptions<Provider extends z.ZodType> {
  environment: Environment;
  /** Relative paths start here. */
  workingDirectory: string;
  /** Loads what checks one entry of `providers`, which only a file has. */
  providerSchema(): Promise<Provider>;
  /** Reads a text file, or throws an error with a `code` as node:fs does. */
  readFile?: (path: string) => string;
}

/** Reads the environment and the YAML file; rejects with a `ConfigurationError` that holds every problem. */
export async function loadConfiguration<Provider extends z.ZodType>(
  options: LoadOptions<Provider>,
): Promise<Configuration<z.output<Provider>>> {
  const problems: ConfigurationProblem[] = [];
  const variables = readEnvironment(options.environment, problems);
  const file = await readSettingsFile({ ...options, named: variables.configurationFile }, problems);
  if (problems.length > 0 || file === undefined) throw new ConfigurationError(problems);
  return deepFreeze(assembleConfiguration({ ...options, variables, file }));
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}
