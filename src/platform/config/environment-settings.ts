import { readFileSync } from "node:fs";
import type { z } from "zod";
import { brand } from "../kernel/brand.ts";
import { isAccountable, nanoFromUsd } from "../kernel/money.ts";
import { proxyProblem, type ProxySettings } from "../kernel/network/proxy-rules.ts";
import type { LogLevel } from "../telemetry/logger.ts";
import { ConfigurationError, type ConfigurationProblem, gotText } from "./configuration-error.ts";
import {
  archiveUrlSchema,
  httpUrlSchema,
  mailFromSchema,
  replicaUrlSchema,
  sentinelListSchema,
  sharedUrlSchema,
  smtpUrlSchema,
  storageUrlSchema,
  stripeKeySchema,
  stripeWebhookSecretSchema,
  planIds,
} from "./setting-schemas.ts";

const logLevels = [
  "debug",
  "info",
  "warn",
  "error",
  "silent",
] as const satisfies readonly LogLevel[];
const minSecretLength = 16;

/** The settings from the environment; absent where it has none. */
export type EnvironmentSettings = ReturnType<typeof readEnvironment>;

/**
 * Reads the variables of the gateway, and adds a problem for each that cannot be used. Empty ones
 * count as unset.
 */
export function readEnvironment(environment: Environment, problems: ConfigurationProblem[]) {
  const read = new VariableReader(environment, problems);
  // `readOtlpSettings` reads these itself.
  read.checked("OTEL_EXPORTER_OTLP_ENDPOINT", httpUrlSchema);
  read.checked("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", httpUrlSchema);
  read.checked("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", httpUrlSchema);
  read.checked("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", httpUrlSchema);
  read.matching(
    "OTEL_METRIC_EXPORT_INTERVAL",
    (text) => /^[1-9]\d{0,8}$/.test(text),
    "expected over 0",
  );
  return {
    configurationFile: read.text("SWITCHYARD_CONFIG"),
    dataDirectory: read.text("SWITCHYARD_DATA_DIR"),
    host: read.text("HOST"),
    port: read.port("PORT"),
    metricsPort: read.port("SWITCHYARD_METRICS_PORT"),
    publicUrl: read.checked("SWITCHYARD_PUBLIC_URL", httpUrlSchema),
    storageUrl: read.checked("DATABASE_URL", storageUrlSchema),
    replicaUrl: read.checked("DATABASE_REPLICA_URL", replicaUrlSchema),
    sharedUrl: read.checked("REDIS_URL", sharedUrlSchema),
    sentinelUrls: read.checked("REDIS_SENTINEL_URLS", sentinelListSchema),
    archiveUrl: read.checked("CLICKHOUSE_URL", archiveUrlSchema),
    encryptionKey: read.matching(
      "SWITCHYARD_ENCRYPTION_KEY",
      isEncryptionKey,
      "expected 32 bytes in base64",
    ),
    secretsKey: read.matching(
      "SWITCHYARD_SECRETS_KEY",
      isEncryptionKey,
      "expected 32 bytes in base64",
    ),
    previousSecretsKey: read.matching(
      "SWITCHYARD_SECRETS_KEY_PREVIOUS",
      isEncryptionKey,
      "expected 32 bytes in base64",
    ),
    mail: {
      url: read.checked("SMTP_URL", smtpUrlSchema),
      from: read.checked("SMTP_FROM", mailFromSchema),
    },
    stripe: {
      secretKey: read.checked("STRIPE_SECRET_KEY", stripeKeySchema),
      webhookSecret: read.checked("STRIPE_WEBHOOK_SECRET", stripeWebhookSecretSchema),
      apiBase: read.checked("STRIPE_API_BASE", httpUrlSchema),
    },
    proxies: proxiesIn(read),
    logLevel: read.choice("LOG_LEVEL", logLevels),
    firstSecrets: read.choice("SWITCHYARD_FIRST_SECRETS", ["print", "file"] as const),
    bootstrap: {
      llmKey: read.secret("SWITCHYARD_BOOTSTRAP_LLM_KEY", brand.llmKeyPrefix),
      managementKey: read.secret(
        "SWITCHYARD_BOOTSTRAP_MANAGEMENT_KEY",
        brand.managementKeyFamilyPrefix,
      ),
      creditsNanoUsd: read.usd("SWITCHYARD_BOOTSTRAP_CREDITS"),
      plan: read.choice("SWITCHYARD_BOOTSTRAP_PLAN", planIds),
    },
  };
}

const isEncryptionKey = (text: string): boolean =>
  /^[A-Za-z0-9+/_-]{43}=?$/.test(text) && Buffer.from(text, "base64").length === 32;

/** Reads the proxies. `ALL_PROXY` is read only where a scheme has no proxy of its own. */
function proxiesIn(read: VariableReader): ProxySettings {
  const https = read.firstProxy(["HTTPS_PROXY", "https_proxy"]);
  const http = read.firstProxy(["HTTP_PROXY", "http_proxy"]);
  const isNeeded = https === undefined || http === undefined;
  const either = isNeeded ? read.firstProxy(["ALL_PROXY", "all_proxy"]) : undefined;
  return {
    https: https ?? either,
    http: http ?? either,
    none: read.text("NO_PROXY") ?? read.text("no_proxy"),
  };
}

class VariableReader {
  readonly #environment: Environment;
  readonly #problems: ConfigurationProblem[];

  constructor(environment: Environment, problems: ConfigurationProblem[]) {
    this.#environment = environment;
    this.#problems = problems;
  }

  text(name: string): string | undefined {
    return this.#environment[name]?.trim() || undefined;
  }

  port(name: string): number | undefined {
    const isPort = (value: string): boolean => /^\d{1,5}$/.test(value) && Number(value) <= 65_535;
    const text = this.matching(name, isPort, "expected an integer from 0 to 65535");
    return text === undefined ? undefined : Number(text);
  }

  /** Returns the address of a proxy by the first of these variables that is set. */
  firstProxy(names: readonly string[]): string | undefined {
    const name = names.find((each) => this.text(each) !== undefined);
    if (name === undefined) return undefined;
    const text = this.text(name) ?? "";
    const message = proxyProblem(text);
    if (message === undefined) return text;
    this.#problem(name, message);
    return undefined;
  }

  usd(name: string): bigint | undefined {
    const text = this.matching(
      name,
      isAccountable,
      "expected a decimal number of USD from 0 to 9000000",
    );
    return text === undefined ? undefined : nanoFromUsd(text);
  }

  secret(name: string, prefix: string): string | undefined {
    const minLength = prefix.length + minSecretLength;
    const isSecret = (value: string): boolean =>
      value.startsWith(prefix) && value.length >= minLength && !/\s/.test(value);
    return this.matching(
      name,
      isSecret,
      `expected ${prefix} and at least ${minSecretLength} more characters`,
    );
  }

  choice<Choice extends string>(name: string, choices: readonly Choice[]): Choice | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const choice = choices.find((candidate) => candidate === text);
    if (choice === undefined) this.#problem(name, `expected ${choices.join(", ")}`);
    return choice;
  }

  checked<Output>(name: string, schema: z.ZodType<Output>): Output | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const result = schema.safeParse(text);
    if (!result.success) this.#problem(name, result.error.issues[0]?.message ?? "cannot be used");
    return result.data;
  }

  matching(
    name: string,
    accepts: (text: string) => boolean,
    expectation: string,
  ): string | undefined {
    const text = this.text(name);
    if (text === undefined || accepts(text)) return text;
    this.#problem(name, expectation);
    return undefined;
  }

  #problem(name: string, message: string): void {
    this.#problems.push({ key: name, message: `${message}${gotText(this.text(name), [name])}` });
  }
}

/** Matches variables that hold secrets, or URLs with passwords in them. */
const secretName =
  /_(?:KEY|KEY_ID|TOKEN|TOKEN_BEDROCK|SECRET|PASSWORD|CREDENTIALS|HEADERS|URLS?|KEY_PREVIOUS)$/;

/** Variables that match `secretName` but are paths for the libraries that read them. */
const pathsOfLibraries: ReadonlySet<string> = new Set([
  "AWS_WEB_IDENTITY_TOKEN_FILE",
  "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
]);

/**
 * Returns the environment with the secrets from files: `DATABASE_URL_FILE=/run/secrets/db` sets
 * `DATABASE_URL` to the text of that file, without surrounding white space, as the official images
 * of databases do. This works for any variable whose name ends with KEY, KEY_ID, TOKEN, SECRET,
 * PASSWORD, CREDENTIALS, HEADERS, URL or URLS, including those of providers and of `${NAME}`
 * references, and for `AWS_BEARER_TOKEN_BEDROCK`. Throws `ConfigurationError` for files that cannot
 * be read, and where both `NAME` and `NAME_FILE` are set.
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

/** The variables of a process, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

const referencePattern = /\$?\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** A text with its references replaced, or the name of the first variable that is not set. */
export type Expansion = { text: string } | { missing: string };

/**
 * Replaces `${NAME}` and `${NAME:-default}` by variables of the environment, as a shell does: an
 * empty one counts as unset. `$${NAME}` yields the literal text `${NAME}`.
 */
export function expandReferences(text: string, environment: Environment): Expansion {
  let missing: string | undefined;
  const expanded = text.replace(
    referencePattern,
    (reference, name: string, fallback: string | undefined) => {
      if (reference.startsWith("$$")) return reference.slice(1);
      const value = environment[name] || fallback;
      if (value === undefined) missing ??= name;
      return value ?? "";
    },
  );
  return missing === undefined ? { text: expanded } : { missing };
}
