import { existsSync } from "node:fs";
import type { MasterSecrets } from "../byok/open-byok.ts";
import type { ConfiguredProvider } from "../inference/catalog/configured/configured-provider.ts";
import type { Configuration, EffectiveSetting } from "../platform/config/configuration.ts";
import { loadEncryptionKey } from "../platform/config/encryption-key.ts";
import { withSecretFiles, type Environment } from "../platform/config/environment-settings.ts";
import { loadConfiguration } from "../platform/config/load-configuration.ts";
import type { CatalogSources } from "./live-catalog.ts";
import type { ReadConfiguration } from "./reload.ts";
import type { PaymentSettings } from "../billing/payments/cents.ts";
import type { ReferralSettings } from "../billing/referrals/referral-store.ts";
import type { BootstrapSettings } from "../identity/workspaces/bootstrap.ts";
import type { MailSettings } from "../platform/notify/mailer.ts";
import type { ArchiveSettings } from "../insights/archive/open-archive.ts";
import type { PeopleSettings } from "../identity/people/open-people.ts";
import type { TrustedProxies } from "../http/request-context.ts";
import type { DisconnectPolicy } from "../inference/pipeline/execution.ts";
import type { DashboardOptions } from "./dashboard-files.ts";
import type { ProxySettings } from "../platform/kernel/network/proxy-rules.ts";
import type { Durability } from "../platform/storage/storage.ts";

/** Everything that the app is built from; nothing below reads the environment. */
export interface AppSettings extends CatalogSources {
  /** Where the dashboard is; absent where none is served. */
  dashboard?: DashboardOptions | undefined;
  version: string;
  storageUrl: string;
  /** A replica of that database for reads which may be late; absent where there is none. */
  replicaUrl?: string | undefined;
  /**
   * Whether a start runs the migrations that the database lacks (true); `--no-migrate` refuses to
   * start instead.
   */
  mayMigrate?: boolean;
  durability: Durability;
  /**
   * How long a start waits for the database and the server of shared state; absent means their own
   * patience.
   */
  waitMs?: number | undefined;
  /** Connections to Postgres that queries may take; absent means ten. */
  poolSize?: number | undefined;
  /**
   * The Valkey or Redis server that several gateways share; absent, everything stays in the memory
   * of this process.
   */
  sharedUrl?: string | undefined;
  /**
   * Sentinels that are asked for the address of that server, whose host is then the name by which
   * they know it; absent or empty, it is its address.
   */
  sharedSentinels?: readonly string[] | undefined;
  /** 32 bytes. */
  encryptionKey: Uint8Array;
  /** What protects callers' own provider keys; absent means the encryption key. */
  masterSecrets?: MasterSecrets | undefined;
  /** Where vendors' credentials and addresses are looked up. */
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
  /** How people sign in and up; absent, by invitation, with passwords and passkeys. */
  people?: PeopleSettings | undefined;
  /** Card payments; off where they are absent, or have no key for Stripe. */
  payments?: PaymentSettings | undefined;
  /** Credits for referring a new user; absent where none are given. */
  referrals?: ReferralSettings | undefined;
  /** Where mail is handed in; absent where none is sent. */
  mail?: MailSettings | undefined;
  /** Proxies that requests to providers go through; absent, they go out directly. */
  proxies?: ProxySettings | undefined;
  /** Certificates in PEM that are trusted beside the platform's own list. */
  extraCertificates?: readonly string[];
  /** Ranges of the operator's own networks that callers' webhooks may lead to. */
  webhookNetworks?: readonly string[];
  /** What the operator prescribes for Claude Code. */
  claudeCode?: {
    loginNotice?: string | undefined;
    managedSettings?: Readonly<Record<string, unknown>> | undefined;
  };
  /** Ranges of the operator's own networks that skills may be imported from. */
  hubImportNetworks?: readonly string[];
  /** Ranges of the operator's own networks that descriptions of OAuth clients may be read from. */
  clientDocumentNetworks?: readonly string[];
  /** How long generation records are kept, in days. */
  generationDays: number;
  /** How much room generation records may take in the database. */
  logBudgetBytes: number;
  /** The archive of generation records; absent where there is none. */
  archive?: ArchiveSettings | undefined;
  /** How long stored responses are kept, in days. */
  responseDays: number;
  trustProxy: TrustedProxies;
  disconnect: DisconnectPolicy;
  /** The model that reads pages of files in place of the converter. */
  ocrModel?: string | undefined;
  /**
   * The configuration as it was read and how it is read again; absent, a reload changes nothing.
   */
  configuration?: { read: ReadConfiguration; readAgain(): Promise<ReadConfiguration> } | undefined;
  /** What other gateways and operators know this one by; absent means the name of the machine. */
  nodeName?: string | undefined;
  /** The settings as operators are shown them; absent, none are. */
  effective?: readonly EffectiveSetting[] | undefined;
  /** Metrics have a port of their own, so they are not served beside the API. */
  metricsElsewhere: boolean;
  /** Where callers reach the service, without a trailing slash; asked for once it listens. */
  publicUrl(): string;
}

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
