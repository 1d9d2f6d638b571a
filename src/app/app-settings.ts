import type { EffectiveSetting } from "../platform/config/effective-settings.ts";
import type { MasterSecrets } from "../account/byok/open-byok.ts";
import type { BootstrapSettings } from "../account/bootstrap.ts";
import type { PaymentSettings } from "../account/payments/payment-settings.ts";
import type { MailSettings } from "../account/notify/mailer.ts";
import type { PeopleSettings } from "../account/people/open-people.ts";
import type { ReferralSettings } from "../account/referrals/referral-settings.ts";
import type { TrustedProxies } from "../http/client-address.ts";
import type { DisconnectPolicy } from "../inference/dependencies.ts";
import type { DashboardOptions } from "./dashboard-files.ts";
import type { CatalogSources } from "./live-catalog.ts";
import type { ProxySettings } from "../platform/lib/proxy-rules.ts";
import type { Durability } from "../platform/storage/storage.ts";

/** Everything that the app is built from; nothing below reads the environment. */
export interface AppSettings extends CatalogSources {
  /** Where the dashboard is; absent where none is served. */
  dashboard?: DashboardOptions | undefined;
  version: string;
  storageUrl: string;
  /** Whether a start runs the migrations that the database lacks (true); `--no-migrate` refuses to start instead. */
  mayMigrate?: boolean;
  durability: Durability;
  /** How long a start waits for the database and the server of shared state; absent means their own patience. */
  waitMs?: number | undefined;
  /** The Valkey or Redis server that several gateways share; absent, everything stays in the memory of this process. */
  sharedUrl?: string | undefined;
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
  /** Credits for bringing somebody; absent where none are given. */
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
  /** How long stored responses are kept, in days. */
  responseDays: number;
  trustProxy: TrustedProxies;
  disconnect: DisconnectPolicy;
  /** The model that reads pages of files in place of the converter. */
  ocrModel?: string | undefined;
  /** The settings as operators are shown them; absent, none are. */
  effective?: readonly EffectiveSetting[] | undefined;
  /** Metrics have a port of their own, so they are not served beside the API. */
  metricsElsewhere: boolean;
  /** Where callers reach the service, without a trailing slash; asked for once it listens. */
  publicUrl(): string;
}
