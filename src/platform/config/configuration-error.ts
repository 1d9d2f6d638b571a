/** A problem of the configuration, and its place. */
export interface ConfigurationProblem {
  /**
   * The path of the setting, such as `providers[0].base_url`, or the name of an environment
   * variable.
   */
  key: string;
  /** The expected value and, unless it may be a secret, the one found. */
  message: string;
  /** The file as the operator named it; absent for the environment. */
  file?: string;
  /** Counted from 1. */
  line?: number;
  column?: number;
}

/**
 * Thrown where the configuration cannot be used. It holds every problem, so that one start shows
 * them all.
 */
export class ConfigurationError extends Error {
  constructor(readonly problems: readonly ConfigurationProblem[]) {
    super(problems.map(problemLine).join("\n"));
    this.name = "ConfigurationError";
  }

  /**
   * One line for each problem, such as `switchyard.yaml:12 retention.log_budget_gb: expected a
   * number, got "x"`.
   */
  override toString(): string {
    return this.message;
  }
}

/** Returns a problem as one line: its place, its setting and what is wrong. */
export function problemLine({ key, message, file, line }: ConfigurationProblem): string {
  const place = [file, line].filter((part) => part !== undefined).join(":");
  return [place, `${key === "" ? "" : `${key}: `}${message}`]
    .filter((part) => part !== "")
    .join(" ");
}

const secretName = /key|secret|token|password|credential|authorization|headers/i;
const maxShownLength = 80;

/** Returns `, got ...` for a message; empty for values that are absent, large or may be secret. */
export function gotText(value: unknown, path: readonly PropertyKey[]): string {
  if (value === undefined || path.some((part) => secretName.test(String(part)))) return "";
  if (Array.isArray(value)) return ", got a list";
  if (typeof value === "object" && value !== null) return ", got a map";
  return `, got ${shown(value)}`;
}

/**
 * Removes a URL's query and credentials. Where its author did not encode the credentials, they may
 * contain any character.
 */
const withoutSecrets = (text: string): string =>
  text.replace(/(:(?:\/\/)?).*@/s, "$1***@").replace(/(:\/\/.*\?).+/s, "$1***");

/** Returns a scalar as short JSON, without the credentials of a URL. */
function shown(value: unknown): string {
  if (typeof value !== "string") return String(value);
  const safe = withoutSecrets(value);
  return JSON.stringify(
    safe.length > maxShownLength ? `${safe.slice(0, maxShownLength)}...` : safe,
  );
}

/** Returns `providers[0].base_url` for `["providers", 0, "base_url"]`. */
export function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) =>
      typeof part === "number" ? `[${part}]` : `${index === 0 ? "" : "."}${String(part)}`,
    )
    .join("");
}
