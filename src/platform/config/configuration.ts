import type { UsageMetricsOptions } from "../telemetry/usage-metrics.ts";
import type { AliasTarget } from "../kernel/models/model-alias.ts";
import type { z } from "zod";
import type { ProxySettings } from "../kernel/network/proxy-rules.ts";
import type { LogLevel } from "../telemetry/logger.ts";
import type { OtlpSettings } from "../telemetry/tracing.ts";
import type { Environment } from "./environment-settings.ts";
import type { FileSettings } from "./file-schema.ts";
import type { ConfiguredSearch } from "./search-settings.ts";
import type { ConfiguredMcp } from "./mcp-settings.ts";
import type {
  ConfiguredCustomers,
  ConfiguredMail,
  ConfiguredPayments,
  ConfiguredReferrals,
  planIds,
} from "./setting-schemas.ts";

type ConfiguredPlanId = (typeof planIds)[number];

/** The operator's settings for Claude Code, where people sign in to the gateway with it. */
interface ClaudeCodeSettings {
  /** Shown beside the code. */
  readonly loginNotice?: string | undefined;
  /** Served at `/managed/settings`. */
  readonly managedSettings?: Readonly<Record<string, unknown>> | undefined;
}

/** Where files are stored, and how much of them. */
interface ConfiguredFiles {
  /** An absolute path, or `s3://BUCKET/PREFIX`. */
  readonly url: string;
  /** The address, region and credentials of the bucket; absent ones are the platform's. */
  readonly endpoint: string | undefined;
  readonly region: string | undefined;
  readonly accessKeyId: string | undefined;
  readonly secretAccessKey: string | undefined;
  /** The most gigabytes of a workspace, by plan; plans that are not named have `quotaGb`. */
  readonly quotaGb: number;
  readonly quotaGbOfPlans: Readonly<Record<string, number>>;
  /** The size from which files that are used again are stored at providers. */
  readonly uploadFromMb: number | "never";
}

/** All of the operator's settings, from the environment first and the file second. Frozen. */
export interface Configuration<Provider> {
  readonly server: {
    readonly host: string;
    /** 0 picks a free one. */
    readonly port: number;
    /**
     * The URL at which clients reach the service, without a trailing slash; absent means the
     * listening address.
     */
    readonly publicUrl: string | undefined;
    /** The peers whose `X-Forwarded-For` is trusted: none, every one, or those of these ranges. */
    readonly trustProxy: boolean | readonly string[];
    /** Absolute paths of a certificate and its key in PEM; absent means plain HTTP. */
    readonly tls?: { readonly certPath: string; readonly keyPath: string };
    /** The most bytes of memory for all request bodies at once. */
    readonly bodyMemoryBytes: number;
    /** The most bytes of uploads that are kept on disk at once while their requests are served. */
    readonly spoolBytes: number;
    /**
     * Milliseconds that an ending gateway continues to serve while it reports that it is not ready,
     * and then the milliseconds that requests in progress may take.
     */
    readonly drainDelayMs: number;
    readonly drainGraceMs: number;
    /** The number of gateways on the port; `auto` means one for each processor. */
    readonly processes: number | "auto";
  };
  /** The absolute path of what the gateway keeps on disk. */
  readonly dataDirectory: string;
  readonly storage: {
    /** `sqlite:` and an absolute path, or a Postgres URL. */
    readonly url: string;
    /** The URL of a replica for reads that may lag behind. It may contain credentials. */
    readonly replicaUrl: string | undefined;
    /** Whether the database is a file of this process. */
    readonly embedded: boolean;
    readonly durability: "power" | "process";
    /** Milliseconds that a start waits for the database and for the server of shared state. */
    readonly waitMs: number;
    /** The most connections to Postgres for queries. */
    readonly poolSize: number;
  };
  readonly shared: {
    /**
     * `memory:`, or the URL of a Valkey or Redis server. Where sentinels are asked for its address,
     * its host is the name under which they know it.
     */
    readonly url: string;
    /** URLs of sentinels. They may contain credentials. */
    readonly sentinels: readonly string[];
  };
  readonly archive: {
    /** `none`, or the URL of ClickHouse, which may contain credentials. */
    readonly url: string;
    /** Whether queries go to the archive only for records that the database no longer has. */
    readonly reads: "older" | "always";
    /** Days for which the archive keeps records; undefined means permanently. */
    readonly keepDays: number | undefined;
    /** Days for which the archive keeps prompts and answers of workspaces that ask for it. */
    readonly contentDays: number;
    /** Megabytes of pictures and sound that are kept of each request, and of each answer. */
    readonly contentMediaMb: number;
  };
  readonly retention: {
    readonly generationsDays: number;
    readonly responsesDays: number;
    readonly logBudgetGb: number;
  };
  /** WebSockets towards clients; `enabled: false` refuses their handshakes with 426. */
  readonly sockets: {
    readonly enabled: boolean;
    /** The most responses that one socket may have in progress at once. */
    readonly lanes: number;
  };
  /** The fate of the upstream request when its client leaves. */
  readonly disconnect: "abort" | "drain";
  /**
   * Where the access log is written: `stdout`, `otlp`, or the absolute path of a file; undefined for
   * none.
   */
  readonly accessLog: string | undefined;
  readonly telemetry: {
    /** What the trace of a caller becomes for its request: a link, or the trace that it continues. */
    readonly traceContext: "link" | "continue";
    /** Labels of the usage metrics and the most series of them; undefined for none. */
    readonly usage: UsageMetricsOptions | undefined;
  };
  readonly stream: {
    /** Seconds after which a stream without content begins with a ping; undefined means never. */
    readonly keepaliveBeforeContentSeconds: number | undefined;
  };
  readonly providers: readonly Provider[];
  /** `auto` runs the sandbox only while no provider has a platform credential. */
  readonly sandbox: { readonly enabled: boolean | "auto" };
  readonly catalog: {
    /** The absolute path of a facts file; undefined means the one that ships with the project. */
    readonly factsPath: string | undefined;
    /** Whether only those models are offered that `providers:` list. */
    readonly onlyListed: boolean;
    /**
     * USD per million tokens for models that no catalog knows, which are then sent to their makers;
     * undefined refuses them.
     */
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
  /** The most bytes of a file of sound. */
  readonly audio: { readonly bytesMax: number };
  readonly files: ConfiguredFiles;
  readonly batch: {
    /** The most lines of batches that this gateway runs at once. */
    readonly concurrency: number;
    /** Whether a provider's own batches are used where all lines go to it. */
    readonly native: "auto" | "never";
    /** Seconds between looks at a provider's batch. */
    readonly pollSeconds: number;
  };
  /** Keys of doors for callers who cannot send any, by the name of the door. */
  readonly doors: Readonly<
    Record<string, { readonly key: string; readonly networks: readonly string[] }>
  >;
  /** The operator's own names of models. */
  readonly aliases: Readonly<Record<string, AliasTarget>>;
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
          /** Absent where the contract's tier applies. */
          readonly perMinute?: number;
          readonly fiveHour: number | undefined;
          /** Absent where the plan includes none. */
          readonly monthlyCreditsNanoUsd?: bigint;
        }
      >
    >
  >;
  /** 32 bytes in base64 as they were configured; `loadEncryptionKey` turns them into the key. */
  readonly encryptionKey: string | undefined;
  /**
   * The secret that protects callers' own provider keys in place of the encryption key, and the one
   * before it; 32 bytes in base64.
   */
  readonly secretsKey: string | undefined;
  readonly previousSecretsKey: string | undefined;
  /** The port of `/metrics`, when it has its own. */
  readonly metricsPort: number | undefined;
  /** Where a start shows the first key and the claim link: on stdout, or in a file for this user. */
  readonly firstSecrets: "print" | "file";
  /** Whether the dashboard is served. */
  readonly dashboard: boolean;
  /** Settings of signing in and up. */
  readonly auth: {
    /**
     * The people who may create an account once the owner's is claimed: no one, invited people
     * only, or every visitor.
     */
    readonly signUp: "closed" | "invitation" | "open";
    /** The plan of workspaces that people create. */
    readonly plan: ConfiguredPlanId;
    /** The range API in which new passwords are looked up; undefined turns the check off. */
    readonly breachedPasswordsUrl: string | undefined;
    /**
     * Ranges of the operator's own networks from which descriptions of OAuth clients may be read.
     */
    readonly clientDocumentNetworks: readonly string[];
    /** OpenID providers, by their slugs. */
    readonly oidc: readonly {
      readonly id: string;
      readonly name: string;
      /**
       * The issuer, below which its metadata are looked up (OpenID Connect Discovery 1.0, section
       * 4).
       */
      readonly issuer: string;
      readonly clientId: string;
      /** Absent for public clients. */
      readonly clientSecret: string | undefined;
      readonly scopes: readonly string[];
      /** Whether people without an account get one by signing in there. */
      readonly signUp: boolean;
    }[];
  };
  /** Proxies for requests to providers, from the environment. They may contain credentials. */
  readonly proxies: ProxySettings;
  /** Certificates in PEM that are trusted beside the platform's own list. */
  readonly extraCertificates: readonly string[];
  /** The server that mail is sent through; absent where none is sent. */
  readonly mail: ConfiguredMail | undefined;
  /** Upstream MCP servers. Their headers may contain credentials. */
  readonly mcp: ConfiguredMcp;
  /** The search of the web for models; its key is a credential. Absent where there is none. */
  readonly search: ConfiguredSearch | undefined;
  /** What end customers may use that have no plan of their own. */
  readonly customers: ConfiguredCustomers;
  /** Ranges of the operator's own networks that callers' webhooks may reach. */
  readonly webhooks: { readonly allowedNetworks: readonly string[] };
  /** Ranges of the operator's own networks that skills may be imported from. */
  readonly claudeCode: ClaudeCodeSettings;
  readonly hub: { readonly importNetworks: readonly string[] };
  /** Card payments; off where there is no Stripe key. */
  readonly payments: ConfiguredPayments;
  /** The credits for referring a new user; absent where none are granted. */
  readonly referrals: ConfiguredReferrals | undefined;
  /** The records that the first start creates for automation. */
  readonly bootstrap: {
    readonly llmKey: string | undefined;
    readonly managementKey: string | undefined;
    readonly creditsNanoUsd: bigint | undefined;
    readonly plan: ConfiguredPlanId;
  };
  /** Each of these settings by name, with its source and without secrets, for operators. */
  readonly effective: readonly EffectiveSetting[];
  readonly openTelemetry: OtlpSettings;
  readonly logLevel: LogLevel;
}

/** A setting in force, and its source. A secret shows only whether it is set. */
export interface EffectiveSetting {
  key: string;
  value: string;
  source: "environment" | "file" | "default";
  /** The variable that it comes from, or that would set it; null where only the file does. */
  variable: string | null;
}

type Known = Omit<Configuration<unknown>, "effective">;

/**
 * A row of the table: the name in the file, the variables that take precedence over the file, and
 * what is shown of the value.
 */
type Row = readonly [
  key: string,
  variables: readonly string[],
  shown: (settings: Known) => unknown,
];

const isSet = (value: unknown): string =>
  value === undefined || value === null ? "not set" : "set";

/** Removes the credentials from an address. */
function withoutCredentials(address: string | undefined): string {
  if (address === undefined) return "not set";
  // The address of a proxy may lack its scheme, and then begins with its credentials.
  if (!address.includes("://") && !address.startsWith("sqlite:"))
    return address.replace(/^.*@/s, "***@");
  if (!URL.canParse(address)) return address;
  const url = new URL(address);
  if (url.username === "" && url.password === "" && url.search === "") return address;
  url.username = url.username === "" ? "" : "***";
  url.password = url.password === "" ? "" : "***";
  url.search = url.search === "" ? "" : "?***";
  return url.href;
}

const listed = (values: readonly string[]): string =>
  values.length === 0 ? "none" : values.join(", ");

/** The settings that operators can look up, in the order of the file's documentation. */
const rows: readonly Row[] = [
  ["server.host", ["HOST"], ({ server }) => server.host],
  ["server.port", ["PORT"], ({ server }) => server.port],
  [
    "server.public_url",
    ["SWITCHYARD_PUBLIC_URL"],
    ({ server }) => server.publicUrl ?? "where it listens",
  ],
  [
    "server.trust_proxy",
    [],
    ({ server }) =>
      typeof server.trustProxy === "boolean" ? server.trustProxy : listed(server.trustProxy),
  ],
  ["server.tls", [], ({ server }) => isSet(server.tls)],
  ["server.processes", [], ({ server }) => server.processes],
  ["server.body_memory_mb", [], ({ server }) => server.bodyMemoryBytes / 1024 ** 2],
  ["server.spool_mb", [], ({ server }) => server.spoolBytes / 1024 ** 2],
  ["storage.url", ["DATABASE_URL"], ({ storage }) => withoutCredentials(storage.url)],
  [
    "storage.replica_url",
    ["DATABASE_REPLICA_URL"],
    ({ storage }) => withoutCredentials(storage.replicaUrl),
  ],
  ["storage.durability", [], ({ storage }) => storage.durability],
  ["storage.pool_size", [], ({ storage }) => storage.poolSize],
  ["shared.url", ["REDIS_URL"], ({ shared }) => withoutCredentials(shared.url)],
  [
    "shared.sentinels",
    ["REDIS_SENTINEL_URLS"],
    ({ shared }) => listed(shared.sentinels.map(withoutCredentials)),
  ],
  ["archive.url", ["CLICKHOUSE_URL"], ({ archive }) => withoutCredentials(archive.url)],
  ["archive.reads", [], ({ archive }) => archive.reads],
  ["archive.days", [], ({ archive }) => archive.keepDays ?? "for good"],
  ["archive.content_days", [], ({ archive }) => archive.contentDays],
  ["archive.content_media_mb", [], ({ archive }) => archive.contentMediaMb],
  ["retention.generations_days", [], ({ retention }) => retention.generationsDays],
  ["retention.responses_days", [], ({ retention }) => retention.responsesDays],
  ["retention.log_budget_gb", [], ({ retention }) => retention.logBudgetGb],
  ["disconnect", [], ({ disconnect }) => disconnect],
  ["telemetry.trace_context", [], ({ telemetry }) => telemetry.traceContext],
  ["telemetry.usage_labels", [], ({ telemetry }) => listed(telemetry.usage?.labels ?? [])],
  ["telemetry.usage_series", [], ({ telemetry }) => telemetry.usage?.seriesMax],
  ["access_log", [], ({ accessLog }) => accessLog ?? "off"],
  [
    "stream.keepalive_before_content_s",
    [],
    ({ stream }) => stream.keepaliveBeforeContentSeconds ?? "off",
  ],
  ["sockets", [], ({ sockets }) => (sockets.enabled ? `${sockets.lanes} lanes each` : false)],
  ["providers", [], ({ providers }) => `${providers.length} of your own`],
  ["sandbox.enabled", [], ({ sandbox }) => sandbox.enabled],
  ["catalog.facts", [], ({ catalog }) => catalog.factsPath ?? "those of this release"],
  ["catalog.models", [], ({ catalog }) => (catalog.onlyListed ? "listed" : "all")],
  ["audio.max_mb", [], ({ audio }) => audio.bytesMax / 1024 ** 2],
  ["ocr.model", [], ({ ocr }) => ocr.model ?? "the converter of this process"],
  ["files.url", [], ({ files }) => files.url],
  ["files.quota_gb", [], ({ files }) => files.quotaGb],
  ["files.upload_from_mb", [], ({ files }) => files.uploadFromMb],
  ["batch.concurrency", [], ({ batch }) => batch.concurrency],
  ["batch.native", [], ({ batch }) => batch.native],
  ["batch.poll_s", [], ({ batch }) => batch.pollSeconds],
  ["doors", [], ({ doors }) => listed(Object.keys(doors))],
  ["aliases", [], ({ aliases }) => listed(Object.keys(aliases))],
  ["routers", [], ({ routers }) => listed(Object.keys(routers))],
  ["plans", [], ({ plans }) => listed(Object.keys(plans))],
  ["dashboard", [], ({ dashboard }) => dashboard],
  ["auth.sign_up", [], ({ auth }) => auth.signUp],
  ["auth.plan", [], ({ auth }) => auth.plan],
  ["auth.breached_passwords_url", [], ({ auth }) => withoutCredentials(auth.breachedPasswordsUrl)],
  ["auth.oidc", [], ({ auth }) => listed(auth.oidc.map(({ id }) => id))],
  ["mail", ["SMTP_URL"], ({ mail }) => isSet(mail)],
  ["payments", ["STRIPE_SECRET_KEY"], ({ payments }) => isSet(payments.stripe?.secretKey)],
  ["customers", [], ({ customers }) => isSet(customers.rule)],
  ["referrals", [], ({ referrals }) => isSet(referrals)],
  ["webhooks.allowed_networks", [], ({ webhooks }) => listed(webhooks.allowedNetworks)],
  ["mcp_servers", [], ({ mcp }) => listed(mcp.servers.map(({ id }) => id))],
  ["search", [], ({ search }) => search?.provider ?? "none"],
  ["mcp.allowed_networks", [], ({ mcp }) => listed(mcp.allowedNetworks)],
  ["mcp.max_rounds", [], ({ mcp }) => mcp.maxRounds],
  ["hub.import_networks", [], ({ hub }) => listed(hub.importNetworks)],
  [
    "encryption key",
    ["SWITCHYARD_ENCRYPTION_KEY"],
    ({ encryptionKey: key }) => (key === undefined ? "made at the first start" : "set"),
  ],
  ["secrets key", ["SWITCHYARD_SECRETS_KEY"], ({ secretsKey }) => isSet(secretsKey)],
  [
    "https proxy",
    ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
    ({ proxies }) => withoutCredentials(proxies.https),
  ],
  [
    "http proxy",
    ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
    ({ proxies }) => withoutCredentials(proxies.http),
  ],
  [
    "metrics port",
    ["SWITCHYARD_METRICS_PORT"],
    ({ metricsPort }) => metricsPort ?? "that of the API",
  ],
  ["log level", ["LOG_LEVEL"], ({ logLevel }) => logLevel],
  ["first secrets", ["SWITCHYARD_FIRST_SECRETS"], ({ firstSecrets }) => firstSecrets],
];

/** Returns the member of the file at a path such as `server.host`. */
const inFile = (file: unknown, key: string): unknown =>
  key
    .split(".")
    .reduce<unknown>(
      (inner, name) =>
        typeof inner === "object" && inner !== null ? Reflect.get(inner, name) : undefined,
      file,
    );

/** Returns each setting as it is in force. */
export const effectiveSettings = (
  settings: Known,
  { environment, file }: { environment: Environment; file: FileSettings<z.ZodType> },
): readonly EffectiveSetting[] =>
  rows.map(([key, variables, shown]) => {
    const variable = variables.find((name) => environment[name]?.trim());
    const source =
      variable !== undefined ? "environment" : inFile(file, key) === undefined ? "default" : "file";
    return {
      key,
      value: String(shown(settings)),
      source,
      variable: variable ?? variables[0] ?? null,
    };
  });
