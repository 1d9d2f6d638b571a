import { readFileSync } from "node:fs";
import { ConfigurationError, type ConfigurationProblem } from "./configuration-error.ts";
import type { Environment } from "./expand-references.ts";

/** Names of variables that hold secrets, or URLs with passwords in them. */
const secretName = /_(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS|URL|KEY_PREVIOUS)$/;

/** Variables that end alike and are paths to the libraries that read them. */
const pathsOfLibraries: ReadonlySet<string> = new Set([
  "AWS_WEB_IDENTITY_TOKEN_FILE",
  "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
]);

/**
 * Returns the environment with every secret that a file holds: `DATABASE_URL_FILE=/run/secrets/db` sets `DATABASE_URL` to the
 * text of that file, without the white space around it, as the official images of databases do. Any variable whose name ends
 * with KEY, TOKEN, SECRET, PASSWORD, CREDENTIALS or URL may be given so, those of providers and of `${NAME}` references too.
 * Throws `ConfigurationError` for files that cannot be read, and where both `NAME` and `NAME_FILE` are set.
 */
export function withSecretFiles(
  environment: Environment,
  readFile = (path: string): string => readFileSync(path, "utf8"),
): Environment {
  const problems: ConfigurationProblem[] = [];
  const secrets: Record<string, string> = {};
  for (const [variable, path] of Object.entries(environment)) {
    const name = variable.slice(0, -"_FILE".length);
    if (
      !variable.endsWith("_FILE") ||
      !path?.trim() ||
      !secretName.test(name) ||
      pathsOfLibraries.has(variable)
    )
      continue;
    if (environment[name]?.trim()) {
      problems.push({ key: variable, message: `${name} is set as well; unset one of the two` });
      continue;
    }
    try {
      secrets[name] = readFile(path.trim()).trim();
      if (secrets[name] === "")
        problems.push({ key: variable, message: `the file ${path.trim()} is empty` });
    } catch (error) {
      problems.push({
        key: variable,
        message: `cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      });
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return Object.keys(secrets).length === 0 ? environment : { ...environment, ...secrets };
}
