import { usageLabels } from "../telemetry/usage-metrics.ts";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { z } from "zod";
import { nanoFromUsd } from "../kernel/money.ts";
import { readOtlpSettings } from "../telemetry/tracing.ts";
import { bodyMemoryWarnings, defaultBodyMemoryMib } from "./body-memory.ts";
import { ConfigurationError, type ConfigurationProblem } from "./configuration-error.ts";
import { type Configuration, effectiveSettings } from "./configuration.ts";
import {
  type ConfigurationWarning,
  filesWarnings,
  publicUrlWarnings,
  telemetryWarnings,
  unknownVariables,
} from "./configuration-warnings.ts";
import {
  type Environment,
  type EnvironmentSettings,
  readEnvironment,
} from "./environment-settings.ts";
import type { FileSettings } from "./file-schema.ts";
import { assembleMcp } from "./mcp-settings.ts";
import { assembleSearch } from "./search-settings.ts";
import {
  assembleCustomers,
  assembleMail,
  assemblePayments,
  assembleReferrals,
} from "./setting-schemas.ts";

/** The sources of the configuration. */
export interface LoadOptions<Provider extends z.ZodType> {
  environment: Environment;
  /** The directory that relative paths start from. */
  workingDirectory: string;
  /** Loads the schema of one entry of `providers`, which only a file has. */
  providerSchema(): Promise<Provider>;
  /** Reads a text file, or throws an error with a `code` as node:fs does. */
  readFile?: (path: string) => string;
  /** The memory that the process and those beside it may use; absent where there is no limit. */
  memoryLimitBytes?: number | undefined;
  /** Takes settings that can be used and are probably not what was meant. */
  onWarning?: (warning: ConfigurationWarning) => void;
}

/**
 * Reads the environment and the YAML file. Rejects with a `ConfigurationError` that holds every
 * problem.
 */
export async function loadConfiguration<Provider extends z.ZodType>(
  options: LoadOptions<Provider>,
): Promise<Configuration<z.output<Provider>>> {
  const problems: ConfigurationProblem[] = [];
  const variables = readEnvironment(options.environment, problems);
  const file = await readSettingsFile({ ...options, named: variables.configurationFile }, problems);
  if (problems.length > 0 || file === undefined) throw new ConfigurationError(problems);
  const configuration = assembleConfiguration({ ...options, variables, file });
  const mismatches = mismatchesOf(configuration);
  if (mismatches.length > 0) throw new ConfigurationError(mismatches);
  for (const warning of [
    ...telemetryWarnings(options.environment),
    ...publicUrlWarnings(configuration.server.publicUrl),
    ...filesWarnings({
      isShared: configuration.shared.url !== "memory:",
      processes: configuration.server.processes,
      isInDataDirectory: configuration.files.url.startsWith(join(configuration.dataDirectory, "/")),
    }),
    ...bodyMemoryWarnings(configuration.server.bodyMemoryBytes, {
      limitBytes: options.memoryLimitBytes,
      processes: configuration.server.processes,
    }),
  ])
    options.onWarning?.(warning);
  return deepFreeze(configuration);
}

/**
 * Returns combinations of settings that are not allowed, although each setting is valid by itself.
 */
function mismatchesOf({
  server,
  storage,
  shared,
  metricsPort,
  accessLog,
  openTelemetry,
}: Pick<
  Configuration<unknown>,
  "server" | "storage" | "shared" | "metricsPort" | "accessLog" | "openTelemetry"
>): ConfigurationProblem[] {
  if (accessLog === "otlp" && openTelemetry.logs === undefined)
    return [
      {
        key: "access_log",
        message:
          "otlp needs a collector: set OTEL_EXPORTER_OTLP_ENDPOINT (or OTEL_EXPORTER_OTLP_LOGS_ENDPOINT) to its address",
      },
    ];
  if (metricsPort === server.port && metricsPort !== 0)
    return [
      {
        key: "SWITCHYARD_METRICS_PORT",
        message: "is the port of the API (PORT or server.port); choose another one",
      },
    ];
  if (shared.url === "memory:" && shared.sentinels.length > 0)
    return [
      {
        key: "shared.sentinels",
        message:
          "sentinels need the name of the primary that they watch: set shared.url (REDIS_URL) to redis://NAME, with its user and password",
      },
    ];
  if (storage.embedded && storage.replicaUrl !== undefined)
    return [
      {
        key: "storage.replica_url",
        message:
          "a replica needs Postgres as the database: set storage.url (DATABASE_URL) to postgres://, or unset this (DATABASE_REPLICA_URL)",
      },
    ];
  if (server.processes === 1) return [];
  const missing = [
    ...(storage.embedded ? ["Postgres (DATABASE_URL or storage.url)"] : []),
    ...(shared.url === "memory:" ? ["Valkey (REDIS_URL or shared.url)"] : []),
  ];
  if (missing.length === 0) return [];
  return [
    {
      key: "server.processes",
      message: `several processes need ${missing.join(" and ")}; without it, set server.processes to 1`,
    },
  ];
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}

interface SettingsFileOptions<Provider extends z.ZodType> {
  environment: Environment;
  workingDirectory: string;
  /** Loads the schema of one entry of `providers`. */
  providerSchema(): Promise<Provider>;
  /** The file that the operator named; when absent, `switchyard.yaml` is read if it exists. */
  named: string | undefined;
  readFile?: (path: string) => string;
  onWarning?: (warning: ConfigurationWarning) => void;
}

const defaultFile = "switchyard.yaml";

/**
 * Returns the settings of the file; undefined when they cannot be used, and then a problem says
 * why. The YAML parser and the schema are loaded only for a file that is not empty.
 */
async function readSettingsFile<Provider extends z.ZodType>(
  options: SettingsFileOptions<Provider>,
  problems: ConfigurationProblem[],
): Promise<FileSettings<Provider> | undefined> {
  const text = readText(options, problems);
  if (text === undefined) return undefined;
  const { onWarning } = options;
  for (const warning of unknownVariables(options.environment, text)) onWarning?.(warning);
  if (text.trim() === "") return {};
  const [{ checkSettings }, providerSchema] = await Promise.all([
    import("./check-settings.ts"),
    options.providerSchema(),
  ]);
  const { named: file = defaultFile, workingDirectory: directory, environment } = options;
  return checkSettings(text, { file, directory, environment, providerSchema, onWarning }, problems);
}

interface ReadTextOptions {
  named: string | undefined;
  workingDirectory: string;
  readFile?: (path: string) => string;
}

/** Reads the file. Only the default one, which the operator did not name, may be missing. */
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

interface ConfigurationParts<Provider extends z.ZodType> {
  environment: Environment;
  workingDirectory: string;
  variables: EnvironmentSettings;
  file: FileSettings<Provider>;
  memoryLimitBytes?: number | undefined;
}

const batchSettings = (
  batch: ConfigurationParts<z.ZodType>["file"]["batch"],
): Configuration<unknown>["batch"] => ({
  concurrency: batch?.concurrency ?? 8,
  native: batch?.native ?? "auto",
  pollSeconds: batch?.poll_s ?? 60,
});

/**
 * Combines the two sources: the environment takes precedence over the file, and the file over the
 * defaults.
 */
function assembleConfiguration<Provider extends z.ZodType>({
  environment,
  workingDirectory,
  variables,
  file,
  memoryLimitBytes,
}: ConfigurationParts<Provider>): Configuration<z.output<Provider>> {
  const dataDirectory = resolve(workingDirectory, variables.dataDirectory ?? "data");
  const storageUrl =
    variables.storageUrl ?? file.storage?.url ?? `sqlite:${join(dataDirectory, "switchyard.db")}`;
  const settings = {
    server: serverSettings({ workingDirectory, variables, file, memoryLimitBytes }),
    dataDirectory,
    storage: storageSettings({ workingDirectory, variables, file }, storageUrl),
    shared: sharedSettings(variables, file.shared),
    archive: assembleArchive(variables.archiveUrl, file.archive),
    retention: retentionSettings(file.retention),
    disconnect: file.disconnect ?? "abort",
    telemetry: assembleTelemetry(file.telemetry),
    accessLog: accessLogPlace(workingDirectory, file.access_log),
    stream: { keepaliveBeforeContentSeconds: file.stream?.keepalive_before_content_s },
    sockets: socketSettings(file.sockets),
    providers: file.providers ?? [],
    sandbox: { enabled: file.sandbox?.enabled ?? "auto" },
    catalog: catalogSettings({ workingDirectory, file }),
    ocr: { model: file.ocr?.model },
    audio: { bytesMax: (file.audio?.max_mb ?? 200) * 1024 ** 2 },
    files: assembleFiles({ workingDirectory, file }, dataDirectory),
    batch: batchSettings(file.batch),
    aliases: file.aliases ?? {},
    doors: mapValues(file.doors ?? {}, ({ key, networks = [] }) => ({ key, networks })),
    routers: mapValues(file.routers ?? {}, ({ members, quality }) => ({
      members,
      quality: quality ?? [],
    })),
    plans: mapValues(file.plans ?? {}, ({ per_minute, five_hour, monthly_credits }) => ({
      fiveHour: five_hour,
      ...(per_minute === undefined ? {} : { perMinute: per_minute }),
      ...(monthly_credits === undefined
        ? {}
        : { monthlyCreditsNanoUsd: nanoFromUsd(monthly_credits) ?? 0n }),
    })),
    dashboard: file.dashboard ?? true,
    auth: authSettings(file),
    proxies: variables.proxies,
    extraCertificates: (file.tls?.ca_files ?? []).flat(),
    mail: assembleMail(variables.mail, file.mail, variables.publicUrl ?? file.server?.public_url),
    claudeCode: {
      loginNotice: file.claude_code?.login_notice,
      managedSettings: file.claude_code?.managed_settings,
    },
    hub: { importNetworks: file.hub?.import_networks ?? [] },
    search: assembleSearch(file.search),
    mcp: assembleMcp(file.mcp, file.mcp_servers),
    webhooks: { allowedNetworks: file.webhooks?.allowed_networks ?? [] },
    payments: assemblePayments(variables.stripe, file.payments),
    customers: assembleCustomers(file.customers),
    referrals: assembleReferrals(file.referrals),
    encryptionKey: variables.encryptionKey,
    secretsKey: variables.secretsKey,
    previousSecretsKey: variables.previousSecretsKey,
    metricsPort: variables.metricsPort,
    firstSecrets: variables.firstSecrets ?? "print",
    bootstrap: { ...variables.bootstrap, plan: variables.bootstrap.plan ?? "enterprise" },
    openTelemetry: readOtlpSettings(environment),
    logLevel: variables.logLevel ?? "info",
  } satisfies Omit<Configuration<z.output<Provider>>, "effective">;
  return { ...settings, effective: effectiveSettings(settings, { environment, file }) };
}

const retentionSettings = ({
  generations_days: generationsDays = 90,
  responses_days: responsesDays = 30,
  log_budget_gb: logBudgetGb = 10,
}: NonNullable<
  FileSettings<z.ZodType>["retention"]
> = {}): Configuration<unknown>["retention"] => ({
  generationsDays,
  responsesDays,
  logBudgetGb,
});

/** Gigabytes of files that a workspace may store unless the file says otherwise. */
const quotaGbDefault = 10;

function assembleFiles(
  {
    workingDirectory,
    file: { files = {} },
  }: Pick<ConfigurationParts<z.ZodType>, "workingDirectory" | "file">,
  dataDirectory: string,
): Configuration<unknown>["files"] {
  const { url = join(dataDirectory, "files"), quota_gb: quota = quotaGbDefault } = files;
  return {
    url: url.startsWith("s3://") ? url : resolve(workingDirectory, url),
    endpoint: files.endpoint,
    region: files.region,
    accessKeyId: files.access_key_id,
    secretAccessKey: files.secret_access_key,
    quotaGb: typeof quota === "number" ? quota : quotaGbDefault,
    quotaGbOfPlans: typeof quota === "number" ? {} : quota,
    uploadFromMb: files.upload_from_mb ?? 1,
  };
}

const sharedSettings = (
  { sharedUrl, sentinelUrls }: EnvironmentSettings,
  file: FileSettings<z.ZodType>["shared"] = {},
): Configuration<unknown>["shared"] => ({
  url: sharedUrl ?? file.url ?? "memory:",
  sentinels: sentinelUrls ?? file.sentinels ?? [],
});

const catalogSettings = ({
  workingDirectory,
  file: { catalog },
}: Pick<
  ConfigurationParts<z.ZodType>,
  "workingDirectory" | "file"
>): Configuration<unknown>["catalog"] => ({
  factsPath: catalog?.facts === undefined ? undefined : resolve(workingDirectory, catalog.facts),
  onlyListed: catalog?.models === "listed",
  unknownModelPricing:
    catalog?.unknown_models === "pass_through" ? catalog.unknown_model_pricing : undefined,
});

const authSettings = ({
  auth,
}: ConfigurationParts<z.ZodType>["file"]): Configuration<unknown>["auth"] => ({
  signUp: auth?.sign_up ?? "invitation",
  plan: auth?.plan ?? "free",
  breachedPasswordsUrl: auth?.breached_passwords_url,
  oidc: (auth?.oidc ?? []).map(oidcProvider),
  clientDocumentNetworks: auth?.client_document_networks ?? [],
});

const storageSettings = (
  {
    workingDirectory,
    variables,
    file: { storage = {} },
  }: Pick<ConfigurationParts<z.ZodType>, "workingDirectory" | "variables" | "file">,
  url: string,
): Configuration<unknown>["storage"] => ({
  url: absoluteStorageUrl(url, workingDirectory),
  replicaUrl: variables.replicaUrl ?? storage.replica_url,
  embedded: url.startsWith("sqlite:"),
  durability: storage.durability ?? "power",
  waitMs: (storage.wait_s ?? 30) * 1_000,
  poolSize: storage.pool_size ?? 10,
});

function serverSettings({
  workingDirectory,
  variables,
  file: { server = {} },
  memoryLimitBytes: limitBytes,
}: Omit<ConfigurationParts<z.ZodType>, "environment">): Configuration<unknown>["server"] {
  const { tls, processes = 1 } = server;
  const bodyMemoryMib = server.body_memory_mb ?? defaultBodyMemoryMib({ limitBytes, processes });
  return {
    host: variables.host ?? server.host ?? "127.0.0.1",
    port: variables.port ?? server.port ?? 8787,
    publicUrl: variables.publicUrl ?? server.public_url,
    trustProxy: server.trust_proxy ?? false,
    ...(tls === undefined
      ? {}
      : {
          tls: {
            certPath: resolve(workingDirectory, tls.cert),
            keyPath: resolve(workingDirectory, tls.key),
          },
        }),
    bodyMemoryBytes: bodyMemoryMib * 1024 ** 2,
    spoolBytes: (server.spool_mb ?? 4_096) * 1024 ** 2,
    drainDelayMs: server.drain_delay_ms ?? 250,
    drainGraceMs: server.drain_grace_ms ?? 30_000,
    processes,
  };
}

const assembleTelemetry = (
  file: FileSettings<z.ZodType>["telemetry"] = {},
): Configuration<unknown>["telemetry"] => ({
  traceContext: file.trace_context ?? "link",
  usage: file.usage_labels && {
    // In one order, so that configurations that name them in another have the same series.
    labels: usageLabels.filter((label) => file.usage_labels?.includes(label)),
    seriesMax: file.usage_series ?? 1_000,
  },
});

const assembleArchive = (
  url: string | undefined,
  file: FileSettings<z.ZodType>["archive"] = {},
): Configuration<unknown>["archive"] => ({
  url: url ?? file.url ?? "none",
  reads: file.reads ?? "older",
  keepDays: file.days,
  contentDays: file.content_days ?? 7,
  contentMediaMb: file.content_media_mb ?? 4,
});

type OidcEntry = NonNullable<NonNullable<FileSettings<z.ZodType>["auth"]>["oidc"]>[number];

const oidcProvider = (entry: OidcEntry): Configuration<unknown>["auth"]["oidc"][number] => ({
  id: entry.id,
  name: entry.name ?? entry.id,
  issuer: entry.issuer,
  clientId: entry.client_id,
  clientSecret: entry.client_secret,
  scopes: entry.scopes ?? ["openid", "email", "profile"],
  signUp: entry.sign_up ?? false,
});

function absoluteStorageUrl(url: string, workingDirectory: string): string {
  return url.startsWith("sqlite:")
    ? `sqlite:${resolve(workingDirectory, url.slice("sqlite:".length))}`
    : url;
}

function mapValues<From, To>(
  record: Readonly<Record<string, From | undefined>>,
  map: (value: From) => To,
): Record<string, To> {
  const entries = Object.entries(record);
  return Object.fromEntries(
    entries.flatMap(([key, value]) => (value === undefined ? [] : [[key, map(value)]])),
  );
}

/** The most responses that one socket may have in progress at once, unless the file says more. */
const lanesDefault = 8;

const socketSettings = (
  sockets: FileSettings<z.ZodType>["sockets"] = true,
): Configuration<unknown>["sockets"] => ({
  enabled: sockets !== false,
  lanes: (typeof sockets === "object" ? sockets.lanes : undefined) ?? lanesDefault,
});

const accessLogPlace = (directory: string, place: string | undefined): string | undefined =>
  place === undefined || place === "stdout" || place === "otlp" ? place : resolve(directory, place);
