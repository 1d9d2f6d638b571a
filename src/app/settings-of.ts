import { existsSync } from "node:fs";
import type { MasterSecrets } from "../byok/open-byok.ts";
import type { ConfiguredProvider } from "../inference/catalog/configured/configured-provider.ts";
import type { Configuration } from "../platform/config/configuration.ts";
import { loadEncryptionKey } from "../platform/config/encryption-key.ts";
import { type Environment, withSecretFiles } from "../platform/config/environment-settings.ts";
import { loadConfiguration } from "../platform/config/load-configuration.ts";
import type { AppSettings } from "./app-settings.ts";
import type { CatalogSources } from "./live-catalog.ts";
import type { ReadConfiguration } from "./reload.ts";

/** The configuration with the providers that the catalog understands. */
export type Settings = Configuration<ConfiguredProvider> & {
  /** The variables that the configuration was read from, with the secrets that files hold. */
  readonly environment: Environment;
};

/**
 * Reads and checks the configuration, with secrets from the files that `NAME_FILE` variables name.
 * Throws `ConfigurationError` with everything that is wrong.
 */
export async function readConfiguration(process: {
  environment: Environment;
  workingDirectory: string;
}): Promise<Settings> {
  const { workingDirectory } = process;
  const environment = withSecretFiles(process.environment);
  const configuration = await loadConfiguration({
    environment,
    workingDirectory,
    providerSchema: async () =>
      (await import("../inference/catalog/configured/configured-provider.ts"))
        .configuredProviderSchema,
  });
  return { ...configuration, environment };
}

/** What the catalog is built from. */
const catalogSources = ({
  providers,
  routers,
  catalog,
  environment,
}: Settings): CatalogSources => ({ providers, routers, ...catalog, environment });

/** Sections that gateways on one database are to have alike; the rest may be of one machine. */
const alikeSections = [
  "retention",
  "disconnect",
  "sandbox",
  "ocr",
  "plans",
  "dashboard",
  "auth",
  "mail",
  "webhooks",
  "claudeCode",
  "hub",
  "payments",
  "referrals",
] as const satisfies readonly (keyof Settings)[];

/** The configuration with each section that a reload does not bring into force as text. */
function readConfigurationOf(settings: Settings): ReadConfiguration {
  const {
    providers: _providers,
    routers: _routers,
    catalog: _catalog,
    effective: _effective,
    environment: _environment,
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
  };
}

/** The path of an embedded database; undefined for Postgres. */
export const databasePathOf = ({ storage }: Pick<Settings, "storage">): string | undefined =>
  storage.embedded ? storage.url.slice("sqlite:".length) : undefined;

/**
 * The key that protects secrets at rest; made where an embedded database is new. Throws
 * `ConfigurationError`.
 */
export function encryptionKeyOf(configuration: Settings): Uint8Array {
  const path = databasePathOf(configuration);
  return loadEncryptionKey({
    configured: configuration.encryptionKey,
    dataDirectory: configuration.dataDirectory,
    embedded: path !== undefined,
    databaseExists: path !== undefined && existsSync(path),
  });
}

/**
 * The secrets key where one is set, else the encryption key; what either of them has wrapped before
 * is wrapped again.
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

/** What the app is built from, as the configuration has it. */
export function appSettings(
  configuration: Settings,
  facts: Pick<AppSettings, "version" | "mayMigrate" | "dashboard" | "publicUrl" | "nodeName"> & {
    readAgain?(): Promise<Settings>;
  },
): AppSettings {
  const { server } = configuration;
  const encryptionKey = encryptionKeyOf(configuration);
  const { readAgain, ...rest } = facts;
  return {
    ...rest,
    configuration: readAgain && {
      read: readConfigurationOf(configuration),
      readAgain: async () => readConfigurationOf(await readAgain()),
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
    webhookNetworks: configuration.webhooks.allowedNetworks,
    clientDocumentNetworks: configuration.auth.clientDocumentNetworks,
    claudeCode: configuration.claudeCode,
    hubImportNetworks: configuration.hub.importNetworks,
    payments: configuration.payments,
    referrals: configuration.referrals,
    generationDays: configuration.retention.generationsDays,
    logBudgetBytes: configuration.retention.logBudgetGb * 1e9,
    archive: configuration.archive.url === "none" ? undefined : configuration.archive,
    responseDays: configuration.retention.responsesDays,
    trustProxy: server.trustProxy,
    disconnect: configuration.disconnect,
    ocrModel: configuration.ocr.model,
    effective: configuration.effective,
    metricsElsewhere: configuration.metricsPort !== undefined,
  };
}
