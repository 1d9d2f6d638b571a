import type { DoorKeys } from "../access/door-keys.ts";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { MasterSecrets } from "../byok/open-byok.ts";
import type { ConfiguredProvider } from "../inference/catalog/configured/configured-provider.ts";
import type { Configuration, EffectiveSetting } from "../platform/config/configuration.ts";
import { loadEncryptionKey } from "../platform/config/encryption-key.ts";
import { withSecretFiles, type Environment } from "../platform/config/environment-settings.ts";
import {
  certificateWarnings,
  type ConfigurationWarning,
} from "../platform/config/configuration-warnings.ts";
import { memoryLimitBytes } from "../platform/kernel/control-group.ts";
import { systemClock } from "../platform/kernel/clock.ts";
import { loadConfiguration } from "../platform/config/load-configuration.ts";
import type { CatalogSources } from "./live-catalog.ts";
import type { FileSettings } from "../files/open-files.ts";
import type { PaymentSettings } from "../billing/payments/cents.ts";
import type { ReferralSettings } from "../billing/referrals/referral-store.ts";
import type { BootstrapSettings } from "../identity/workspaces/bootstrap.ts";
import type { ConfiguredCustomers } from "../platform/config/setting-schemas.ts";
import type { ConfiguredSearch } from "../platform/config/search-settings.ts";
import type { ConfiguredMcp } from "../platform/config/mcp-settings.ts";
import type { MailSettings } from "../platform/notify/mailer.ts";
import type { ArchiveSettings } from "../insights/archive/open-archive.ts";
import type { PeopleSettings } from "../identity/people/open-people.ts";
import type { TrustedProxies } from "../http/request-context.ts";
import type { DisconnectPolicy } from "../inference/pipeline/execution.ts";
import type { DashboardOptions } from "./dashboard-files.ts";
import type { ProxySettings } from "../platform/kernel/network/proxy-rules.ts";
import type { Durability } from "../platform/storage/storage.ts";

/** The configuration as it was read: what a reload applies, and the rest for comparison. */
export interface ReadConfiguration {
  sources: CatalogSources;
  /** Every other section, as text. */
  sections: Readonly<Record<string, string>>;
  /** The sections that all gateways should have in common. */
  alike: readonly string[];
  /** Settings that can be used and are probably not what was meant. */
  warnings: readonly ConfigurationWarning[];
  /** Takes over what a reload replaces beside the catalog. Called once the catalog is replaced. */
  accept?(): void;
}

/** All settings of the app. Nothing below reads the environment. */
export interface AppSettings extends CatalogSources {
  /** The dashboard's files; absent where none is served. */
  dashboard?: DashboardOptions | undefined;
  version: string;
  storageUrl: string;
  /** A replica of the database for reads that may lag behind; absent where there is none. */
  replicaUrl?: string | undefined;
  /**
   * Whether a start runs the migrations that the database lacks (default true). With `--no-migrate`
   * it refuses to start instead.
   */
  mayMigrate?: boolean;
  durability: Durability;
  /**
   * Milliseconds that a start waits for the database and the server of shared state; absent uses
   * their own defaults.
   */
  waitMs?: number | undefined;
  /** The most connections to Postgres for queries; absent means ten. */
  poolSize?: number | undefined;
  /**
   * The Valkey or Redis server that several gateways share; absent keeps all state in the memory of
   * this process.
   */
  sharedUrl?: string | undefined;
  /**
   * The sentinels that are asked for the address of that server, in which case its host is the name
   * under which they know it; absent or empty, the host is its address.
   */
  sharedSentinels?: readonly string[] | undefined;
  /** 32 bytes. */
  encryptionKey: Uint8Array;
  /** The secrets that protect callers' own provider keys; absent uses the encryption key. */
  masterSecrets?: MasterSecrets | undefined;
  /** Variables with vendors' credentials and addresses. */
  environment: Readonly<Record<string, string | undefined>>;
  /** `auto` runs the sandbox only while no provider has a platform credential. */
  sandbox: boolean | "auto";
  plans: Readonly<
    Record<
      string,
      | {
          perMinute?: number | undefined;
          fiveHour?: number | undefined;
          monthlyCreditsNanoUsd?: bigint | undefined;
        }
      | undefined
    >
  >;
  bootstrap: BootstrapSettings;
  /** Settings of signing in and up; absent, by invitation, with passwords and passkeys. */
  people?: PeopleSettings | undefined;
  /** Card payments; off where absent or without a Stripe key. */
  payments?: PaymentSettings | undefined;
  /** The credits for referring a new user; absent where none are granted. */
  referrals?: ReferralSettings | undefined;
  /** The server that mail is sent through; absent where none is sent. */
  mail?: MailSettings | undefined;
  /** The proxies for requests to providers; absent connects directly. */
  proxies?: ProxySettings | undefined;
  /** Certificates in PEM that are trusted beside the platform's own list. */
  extraCertificates?: readonly string[];
  /** Ranges of the operator's own networks that callers' webhooks may reach. */
  webhookNetworks?: readonly string[];
  /** Upstream MCP servers; absent means that the operator configured none. */
  mcp?: ConfiguredMcp | undefined;
  /** What end customers may use that have no plan of their own; absent counts only known ones. */
  customers?: ConfiguredCustomers | undefined;
  /** The search of the web for models; absent where there is none. */
  search?: ConfiguredSearch | undefined;
  /** The operator's settings for Claude Code. */
  claudeCode?: {
    loginNotice?: string | undefined;
    managedSettings?: Readonly<Record<string, unknown>> | undefined;
  };
  /** Ranges of the operator's own networks from which skills may be imported. */
  hubImportNetworks?: readonly string[];
  /** Ranges of the operator's own networks from which descriptions of OAuth clients may be read. */
  clientDocumentNetworks?: readonly string[];
  /** Days for which generation records are kept. */
  generationDays: number;
  /** The most bytes of generation records in the database. */
  logBudgetBytes: number;
  /** The archive of generation records; absent where there is none. */
  archive?: ArchiveSettings | undefined;
  /** Days for which prompts and answers are kept in the database; 7 where absent. */
  contentDays?: number;
  /** The most bytes of pictures and sound that are kept of a request, and of an answer; 4 MB where absent. */
  contentMediaBytes?: number;
  /** Days for which stored responses are kept. */
  responseDays: number;
  trustProxy: TrustedProxies;
  /** Keys of doors for callers who cannot send any; absent means none. */
  doors?: DoorKeys | undefined;
  disconnect: DisconnectPolicy;
  /** Milliseconds after which a stream without content begins with a ping; absent means never. */
  keepaliveBeforeContentMs?: number | undefined;
  /** WebSockets towards clients; absent means that they are offered, with the default bounds. */
  sockets?: { readonly enabled: boolean; readonly lanes: number } | undefined;
  /** The model that reads pages of files in place of the converter. */
  ocrModel?: string | undefined;
  /** Where uploads are kept while their requests are served; absent uses the system's own place. */
  spool?: { directory: string; bytesMax: number } | undefined;
  /** The most bytes of a file of sound; absent means 200 MiB. */
  audioBytesMax?: number | undefined;
  /** Where files are stored; absent, beside the embedded database. */
  files?: FileSettings | undefined;
  /** How batches are run; absent, with the defaults of the configuration. */
  batch?: Settings["batch"] | undefined;
  /**
   * The configuration as it was read, and how to read it again; absent, a reload changes nothing.
   */
  configuration?: { read: ReadConfiguration; readAgain(): Promise<ReadConfiguration> } | undefined;
  /**
   * The name by which other gateways and operators know this one; absent means the machine's name.
   */
  nodeName?: string | undefined;
  /** The effective settings as operators see them; absent shows none. */
  effective?: readonly EffectiveSetting[] | undefined;
  /** Whether metrics have a port of their own, so that they are not served beside the API. */
  metricsElsewhere: boolean;
  /** Returns where callers reach the service, without a trailing slash. Called once it listens. */
  publicUrl(): string;
}

/** The configuration, with providers in the form that the catalog takes. */
export type Settings = Configuration<ConfiguredProvider> & {
  /** The variables that the configuration was read from, with the secrets from files. */
  readonly environment: Environment;
  /** Settings that can be used and are probably not what was meant. */
  readonly warnings: readonly ConfigurationWarning[];
};

/**
 * Reads and checks the configuration, with secrets from the files that `NAME_FILE` variables name.
 * Throws `ConfigurationError` with every problem found.
 */
export async function readConfiguration(process: {
  environment: Environment;
  workingDirectory: string;
}): Promise<Settings> {
  const { workingDirectory } = process;
  const environment = withSecretFiles(process.environment);
  const warnings: ConfigurationWarning[] = [];
  const configuration = await loadConfiguration({
    environment,
    memoryLimitBytes: memoryLimitBytes(),
    onWarning: (warning) => warnings.push(warning),
    workingDirectory,
    providerSchema: async () =>
      (await import("../inference/catalog/configured/configured-provider.ts"))
        .configuredProviderSchema,
  });
  warnings.push(...certificateWarnings(configuration.server.tls, systemClock.nowMs()));
  return { ...configuration, environment, warnings };
}

/** Returns what the catalog is built from. */
const catalogSources = ({
  providers,
  routers,
  aliases,
  catalog,
  environment,
}: Settings): CatalogSources => ({ providers, routers, aliases, ...catalog, environment });

/**
 * The sections that gateways on one database should have in common. The others may differ between
 * machines.
 */
const alikeSections = [
  "retention",
  "disconnect",
  "stream",
  "sockets",
  "sandbox",
  "ocr",
  "audio",
  "batch",
  "plans",
  "dashboard",
  "auth",
  "mail",
  "webhooks",
  "mcp",
  "search",
  "customers",
  "claudeCode",
  "hub",
  "payments",
  "referrals",
] as const satisfies readonly (keyof Settings)[];

/**
 * Returns the configuration as it was read, with each section that a reload does not apply as text.
 */
function readConfigurationOf(settings: Settings): ReadConfiguration {
  const {
    providers: _providers,
    routers: _routers,
    aliases: _aliases,
    catalog: _catalog,
    effective: _effective,
    environment: _environment,
    warnings,
    ...sections
  } = settings;
  const textOf = (value: unknown): string =>
    JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? `${each}` : each)) ??
    "";
  return {
    sources: catalogSources(settings),
    sections: Object.fromEntries(
      Object.entries(sections).map(([name, value]) => [name, textOf(value)]),
    ),
    alike: alikeSections,
    warnings,
  };
}

/** Returns the path of an embedded database; undefined for Postgres. */
export const databasePathOf = ({ storage }: Pick<Settings, "storage">): string | undefined =>
  storage.embedded ? storage.url.slice("sqlite:".length) : undefined;

/**
 * Returns the key that protects secrets at rest, which is created with a new embedded database
 * unless there has to be one. Throws `ConfigurationError`.
 */
export function encryptionKeyOf(
  configuration: Settings,
  { mayCreate = true }: { mayCreate?: boolean } = {},
): Uint8Array {
  const path = databasePathOf(configuration);
  return loadEncryptionKey({
    configured: configuration.encryptionKey,
    dataDirectory: configuration.dataDirectory,
    embedded: path !== undefined,
    databaseExists:
      !mayCreate || (path !== undefined && existsSync(path) && !statSync(path).isDirectory()),
  });
}

/**
 * Returns the secrets key where one is set, or else the encryption key. What an earlier one of them
 * wrapped is wrapped again.
 */
function masterSecretsOf(
  { secretsKey, previousSecretsKey }: Settings,
  encryptionKey: Uint8Array,
): MasterSecrets {
  const decoded = (key: string): Uint8Array => new Uint8Array(Buffer.from(key, "base64"));
  return {
    current: secretsKey === undefined ? encryptionKey : decoded(secretsKey),
    previous: [
      encryptionKey,
      ...(previousSecretsKey === undefined ? [] : [decoded(previousSecretsKey)]),
    ],
  };
}

/** Returns the databases that the configuration names, and how long a start waits for them. */
export const storageSettingsOf = ({
  storage,
  shared,
}: Settings): Pick<
  AppSettings,
  | "storageUrl"
  | "replicaUrl"
  | "durability"
  | "waitMs"
  | "poolSize"
  | "sharedUrl"
  | "sharedSentinels"
> => ({
  storageUrl: storage.url,
  replicaUrl: storage.replicaUrl,
  durability: storage.durability,
  waitMs: storage.waitMs,
  poolSize: storage.poolSize,
  sharedUrl: shared.url === "memory:" ? undefined : shared.url,
  sharedSentinels: shared.sentinels,
});

/** Returns where files are stored, and the quotas of plans in bytes. */
function fileSettingsOf({
  files: { url, quotaGb, quotaGbOfPlans, uploadFromMb, accessKeyId, secretAccessKey, ...s3 },
  environment,
}: Pick<Settings, "files" | "environment">): FileSettings {
  const [, bucket = "", prefix = ""] = /^s3:\/\/([^/]+)\/?(.*?)\/?$/.exec(url) ?? [];
  // The platform's client reads these variables too, but not those that come from files.
  const variable = (name: string): string | undefined =>
    [environment[`S3_${name}`], environment[`AWS_${name}`]].find((text) => text?.trim());
  const credentials = {
    accessKeyId: accessKeyId ?? variable("ACCESS_KEY_ID"),
    secretAccessKey: secretAccessKey ?? variable("SECRET_ACCESS_KEY"),
    sessionToken: accessKeyId === undefined ? variable("SESSION_TOKEN") : undefined,
  };
  return {
    place: bucket === "" ? { directory: url } : { s3: { bucket, prefix, ...s3, ...credentials } },
    quotaBytesOf: (plan) => (quotaGbOfPlans[plan] ?? quotaGb) * 1e9,
    uploadFromBytes: uploadFromMb === "never" ? Infinity : uploadFromMb * 1024 ** 2,
  };
}

/** Returns the app's settings from the configuration. */
export function appSettings(
  configuration: Settings,
  facts: Pick<AppSettings, "version" | "mayMigrate" | "dashboard" | "publicUrl" | "nodeName"> & {
    readAgain?(): Promise<{ settings: Settings; accept(): void }>;
  },
): AppSettings {
  const { server } = configuration;
  const encryptionKey = encryptionKeyOf(configuration);
  const { readAgain, ...rest } = facts;
  return {
    ...rest,
    configuration: readAgain && {
      read: readConfigurationOf(configuration),
      readAgain: async () => {
        const { settings, accept } = await readAgain();
        return { ...readConfigurationOf(settings), accept };
      },
    },
    environment: configuration.environment,
    ...storageSettingsOf(configuration),
    encryptionKey,
    masterSecrets: masterSecretsOf(configuration, encryptionKey),
    ...catalogSources(configuration),
    sandbox: configuration.sandbox.enabled,
    plans: configuration.plans,
    bootstrap: configuration.bootstrap,
    people: configuration.auth,
    mail: configuration.mail,
    proxies: configuration.proxies,
    extraCertificates: configuration.extraCertificates,
    mcp: configuration.mcp,
    search: configuration.search,
    customers: configuration.customers,
    webhookNetworks: configuration.webhooks.allowedNetworks,
    clientDocumentNetworks: configuration.auth.clientDocumentNetworks,
    claudeCode: configuration.claudeCode,
    hubImportNetworks: configuration.hub.importNetworks,
    payments: configuration.payments,
    referrals: configuration.referrals,
    generationDays: configuration.retention.generationsDays,
    logBudgetBytes: configuration.retention.logBudgetGb * 1e9,
    archive: configuration.archive.url === "none" ? undefined : configuration.archive,
    contentDays: configuration.archive.contentDays,
    contentMediaBytes: configuration.archive.contentMediaMb * 1024 * 1024,
    responseDays: configuration.retention.responsesDays,
    trustProxy: server.trustProxy,
    doors: configuration.doors,
    disconnect: configuration.disconnect,
    keepaliveBeforeContentMs: millisecondsOf(configuration.stream.keepaliveBeforeContentSeconds),
    sockets: configuration.sockets,
    ocrModel: configuration.ocr.model,
    spool: {
      directory: join(configuration.dataDirectory, "spool"),
      bytesMax: server.spoolBytes,
    },
    audioBytesMax: configuration.audio.bytesMax,
    files: fileSettingsOf(configuration),
    batch: configuration.batch,
    effective: configuration.effective,
    metricsElsewhere: configuration.metricsPort !== undefined,
  };
}

const millisecondsOf = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : seconds * 1_000;
