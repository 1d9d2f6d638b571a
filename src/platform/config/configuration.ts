import type { ProxySettings } from "../lib/proxy-rules.ts";
import type { LogLevel } from "../telemetry/logger.ts";
import type { EffectiveSetting } from "./effective-settings.ts";
import type { ConfiguredMail } from "./mail-schema.ts";
import type { ConfiguredPayments } from "./payments-schema.ts";
import type { ConfiguredReferrals } from "./referrals-schema.ts";

/** Plans whose tiers can be overridden, by their wire ids. */
export const planIds = ["free", "payg", "go", "pro", "pro_plus", "max", "enterprise"] as const;

export type ConfiguredPlanId = (typeof planIds)[number];

/** What the operator prescribes for Claude Code, where people sign in to the gateway with it. */
export interface ClaudeCodeSettings {
  /** Shown beside the code. */
  readonly loginNotice?: string | undefined;
  /** Served at `/managed/settings`. */
  readonly managedSettings?: Readonly<Record<string, unknown>> | undefined;
}

/** Everything that the operator settled, from the environment first and the file second. Frozen. */
export interface Configuration<Provider> {
  readonly server: {
    readonly host: string;
    /** 0 picks a free one. */
    readonly port: number;
    /** Where clients reach the service, without a trailing slash; absent means where it listens. */
    readonly publicUrl: string | undefined;
    /** Whose `X-Forwarded-For` is believed: nobody's, everybody's, or that of these ranges. */
    readonly trustProxy: boolean | readonly string[];
    /** Absolute paths of a certificate and its key in PEM; absent means plain HTTP. */
    readonly tls?: { readonly certPath: string; readonly keyPath: string };
    /** Memory that request bodies may take at once. */
    readonly bodyMemoryBytes: number;
    /** How long a gateway that ends goes on as before but for its readiness, and then how long requests under way may take. */
    readonly drainDelayMs: number;
    readonly drainGraceMs: number;
  };
  /** Absolute path of what the gateway keeps on disk. */
  readonly dataDirectory: string;
  readonly storage: {
    /** `sqlite:` and an absolute path, or a Postgres URL. */
    readonly url: string;
    /** Whether the database is a file of this process. */
    readonly embedded: boolean;
    readonly durability: "power" | "process";
    /** How long a start waits for the database and for the server of shared state. */
    readonly waitMs: number;
  };
  /** `memory:`, or the URL of a Valkey or Redis server. */
  readonly shared: { readonly url: string };
  readonly archive: { readonly url: "none" };
  readonly retention: {
    readonly generationsDays: number;
    readonly responsesDays: number;
    readonly logBudgetGb: number;
  };
  /** What a lost client does to its upstream. */
  readonly disconnect: "abort" | "drain";
  readonly providers: readonly Provider[];
  /** `auto` runs the sandbox only while no provider has a platform credential. */
  readonly sandbox: { readonly enabled: boolean | "auto" };
  readonly catalog: {
    /** Absolute path of a facts file; undefined means the one that ships with the project. */
    readonly factsPath: string | undefined;
    /** USD per million tokens of models that no catalog knows, which then go to their makers; undefined refuses them. */
    readonly unknownModelPricing:
      | {
          readonly prompt: string | number;
          readonly completion: string | number;
          readonly cache_read?: string | number | undefined;
          readonly cache_write?: string | number | undefined;
          readonly request?: string | number | undefined;
        }
      | undefined;
  };
  /** The model that reads pages of files; undefined means the converter of this process. */
  readonly ocr: { readonly model: string | undefined };
  /** Pools of the first-party routing presets, by preset id. */
  readonly routers: Readonly<
    Record<
      string,
      {
        readonly members: readonly string[];
        readonly quality: readonly string[];
      }
    >
  >;
  /** Overrides of the contract's tiers. */
  readonly plans: Readonly<
    Partial<
      Record<
        ConfiguredPlanId,
        {
          /** Absent where the contract's tier holds. */
          readonly perMinute?: number;
          readonly fiveHour: number | undefined;
          /** Absent where the plan comes with none. */
          readonly monthlyCreditsNanoUsd?: bigint;
        }
      >
    >
  >;
  /** 32 bytes in base64 as they were configured; `loadEncryptionKey` makes the key of it. */
  readonly encryptionKey: string | undefined;
  /** What protects callers' own provider keys in place of the encryption key, and what did before; 32 bytes in base64. */
  readonly secretsKey: string | undefined;
  readonly previousSecretsKey: string | undefined;
  /** Port of `/metrics` when it has its own. */
  readonly metricsPort: number | undefined;
  /** Whether the dashboard is served. */
  readonly dashboard: boolean;
  /** How people sign in and up. */
  readonly auth: {
    /** Who may make an account once the owner's is claimed: nobody, whoever was invited, or anybody. */
    readonly signUp: "closed" | "invitation" | "open";
    /** Plan of the workspaces that people make. */
    readonly plan: ConfiguredPlanId;
    /** Range API that new passwords are looked up in; undefined turns the check off. */
    readonly breachedPasswordsUrl: string | undefined;
    /** Ranges of the operator's own networks that descriptions of OAuth clients may be read from. */
    readonly clientDocumentNetworks: readonly string[];
    /** OpenID providers, by their slugs. */
    readonly oidc: readonly {
      readonly id: string;
      readonly name: string;
      /** Its metadata are looked up below it (OpenID Connect Discovery 1.0, section 4). */
      readonly issuer: string;
      readonly clientId: string;
      /** Absent for public clients. */
      readonly clientSecret: string | undefined;
      readonly scopes: readonly string[];
      /** Whoever signs in there gets an account. */
      readonly signUp: boolean;
    }[];
  };
  /** Proxies that requests to providers go through, by the environment; they may hold credentials. */
  readonly proxies: ProxySettings;
  /** Certificates in PEM that are trusted beside the platform's own list. */
  readonly extraCertificates: readonly string[];
  /** Where mail is handed in; absent where none is sent. */
  readonly mail: ConfiguredMail | undefined;
  /** Ranges of the operator's own networks that callers' webhooks may lead to. */
  readonly webhooks: { readonly allowedNetworks: readonly string[] };
  /** Ranges of the operator's own networks that skills may be imported from. */
  readonly claudeCode: ClaudeCodeSettings;
  readonly hub: { readonly importNetworks: readonly string[] };
  /** Card payments; off where there is no key for Stripe. */
  readonly payments: ConfiguredPayments;
  /** Credits for bringing somebody; absent where none are given. */
  readonly referrals: ConfiguredReferrals | undefined;
  /** What the first start creates for automation. */
  readonly bootstrap: {
    readonly llmKey: string | undefined;
    readonly managementKey: string | undefined;
    readonly creditsNanoUsd: bigint | undefined;
    readonly plan: ConfiguredPlanId;
  };
  /** Each of these settings by name, with where it comes from and without secrets, for operators. */
  readonly effective: readonly EffectiveSetting[];
  /** The endpoint is absent when tracing is off. */
  readonly tracing: {
    readonly endpoint?: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly serviceName: string;
  };
  readonly logLevel: LogLevel;
}
