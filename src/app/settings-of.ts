import { existsSync } from "node:fs";
import type { MasterSecrets } from "../account/byok/open-byok.ts";
import type { ConfiguredProvider } from "../inference/catalog/configured-provider.ts";
import type { Configuration } from "../platform/config/configuration.ts";
import { loadEncryptionKey } from "../platform/config/encryption-key.ts";
import type { Environment } from "../platform/config/expand-references.ts";
import { loadConfiguration } from "../platform/config/load-configuration.ts";
import type { AppSettings } from "./app-settings.ts";
import type { CatalogSources } from "./live-catalog.ts";

/** The configuration with the providers that the catalog understands. */
export type Settings = Configuration<ConfiguredProvider>;

/** Reads and checks the configuration. Throws `ConfigurationError` with everything that is wrong. */
export const readConfiguration = (
  environment: Environment,
  workingDirectory: string,
): Promise<Settings> =>
  loadConfiguration({
    environment,
    workingDirectory,
    providerSchema: async () =>
      (await import("../inference/catalog/configured-provider.ts")).configuredProviderSchema,
  });

/** What the catalog is built from. */
export const catalogSources = ({ providers, routers, catalog }: Settings): CatalogSources => ({
  providers,
  routers,
  ...catalog,
});

/** The path of an embedded database; undefined for Postgres. */
export const databasePathOf = ({ storage }: Pick<Settings, "storage">): string | undefined =>
  storage.embedded ? storage.url.slice("sqlite:".length) : undefined;

/** The key that protects secrets at rest; made where an embedded database is new. Throws `ConfigurationError`. */
export function encryptionKeyOf(configuration: Settings): Uint8Array {
  const path = databasePathOf(configuration);
  return loadEncryptionKey({
    configured: configuration.encryptionKey,
    dataDirectory: configuration.dataDirectory,
    embedded: path !== undefined,
    databaseExists: path !== undefined && existsSync(path),
  });
}

/** The secrets key where one is set, else the encryption key; what either of them has wrapped before is wrapped again. */
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
}: Settings): Pick<AppSettings, "storageUrl" | "durability" | "waitMs" | "sharedUrl"> => ({
  storageUrl: storage.url,
  durability: storage.durability,
  waitMs: storage.waitMs,
  sharedUrl: shared.url === "memory:" ? undefined : shared.url,
});

/** What the app is built from, as the configuration has it. */
export function appSettings(
  configuration: Settings,
  facts: Pick<AppSettings, "version" | "environment" | "mayMigrate" | "dashboard" | "publicUrl">,
): AppSettings {
  const { server } = configuration;
  const encryptionKey = encryptionKeyOf(configuration);
  return {
    ...facts,
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
    responseDays: configuration.retention.responsesDays,
    trustProxy: server.trustProxy,
    disconnect: configuration.disconnect,
    ocrModel: configuration.ocr.model,
    effective: configuration.effective,
    metricsElsewhere: configuration.metricsPort !== undefined,
  };
}
