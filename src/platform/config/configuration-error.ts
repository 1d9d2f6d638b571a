/** One thing that is wrong with the configuration, and where. */
export interface ConfigurationProblem {
  /** Path of the setting such as `providers[0].base_url`, or the name of an environment variable. */
  key: string;
  /** What was expected, and what was found unless it may be a secret. */
  message: string;
  /** The file as the operator named it; absent for the environment. */
  file?: string;
  /** Counted from 1. */
  line?: number;
  column?: number;
}

/** The configuration cannot be used; holds every problem, so that one start shows them all. */
export class ConfigurationError extends Error {
  readonly problems: readonly ConfigurationProblem[];

  constructor(problems: readonly ConfigurationProblem[]) {
    super(problems.map(problemLine).join("\n"));
    this.name = "ConfigurationError";
    this.problems = problems;
  }

  /** One line a problem, such as `switchyard.yaml:12 retention.log_budget_gb: expected a number, got "x"`. */
  override toString(): string {
    return this.message;
  }
}

function problemLine({ key, message, file, line }: ConfigurationProblem): string {
  const place = [file, line].filter((part) => part !== undefined).join(":");
  return [place, `${key === "" ? "" : `${key}: `}${message}`]
    .filter((part) => part !== "")
    .join(" ");
}
