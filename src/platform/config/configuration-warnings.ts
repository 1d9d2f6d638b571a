import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { closestName } from "../kernel/schema-problems.ts";
import type { ConfigurationProblem } from "./configuration-error.ts";
import type { Environment } from "./environment-settings.ts";

/** A setting that can be used, and is probably not what was meant. */
export type ConfigurationWarning = ConfigurationProblem;

const prefix = "SWITCHYARD_";

/** The variables of this prefix that the gateway and its command read. */
const ownVariables = [
  ...["CONFIG", "DATA_DIR", "METRICS_PORT", "PUBLIC_URL", "ENCRYPTION_KEY", "SECRETS_KEY"],
  ...["SECRETS_KEY_PREVIOUS", "BOOTSTRAP_LLM_KEY", "BOOTSTRAP_MANAGEMENT_KEY"],
  ...[
    "BOOTSTRAP_CREDITS",
    "BOOTSTRAP_PLAN",
    "FIRST_SECRETS",
    "KEY",
    "MANAGEMENT_KEY",
    "URL",
    "PROCESS",
  ],
].map((name) => `${prefix}${name}`);

/** The variables that are read without the prefix. */
const plainVariables = [
  ...["HOST", "PORT", "LOG_LEVEL", "DATABASE_URL", "DATABASE_REPLICA_URL", "REDIS_URL"],
  ...["REDIS_SENTINEL_URLS", "CLICKHOUSE_URL", "SMTP_URL", "SMTP_FROM"],
];

/** Matches what Kubernetes sets for a Service whose name starts with `switchyard`, and tests. */
const foreignName =
  /_SERVICE_(?:HOST|PORT(?:_\w+)?)$|_PORT_\d+_(?:TCP|UDP)(?:_\w+)?$|^SWITCHYARD_TEST_/;
const foreignValue = /^(?:tcp|udp|sctp):\/\//;

/** Returns ", did you mean NAME?" for the name that is nearest; empty where none is. */
export function suggestion(name: string, known: Iterable<string>): string {
  const closest = closestName(name, known);
  return closest === undefined ? "" : `; did you mean ${closest}?`;
}

/** Returns variables with the gateway's prefix that nothing reads, each with the likely name. */
export function unknownVariables(
  environment: Environment,
  fileText: string,
): ConfigurationWarning[] {
  return Object.entries(environment).flatMap(([name, value]) => {
    if (!name.startsWith(prefix) || !value?.trim()) return [];
    if (foreignName.test(name) || foreignValue.test(value)) return [];
    const secret = name.replace(/_FILE$/, "");
    if (ownVariables.includes(name) || ownVariables.includes(secret)) return [];
    if (new RegExp(`\\$\\{${secret}[:}]`).test(fileText)) return [];
    const bare = name.slice(prefix.length);
    const meant = plainVariables.includes(bare)
      ? `; did you mean ${bare}?`
      : suggestion(name, ownVariables);
    return [{ key: name, message: `is read by nothing here${meant}` }];
  });
}

/** Returns what is said of OpenTelemetry's variables that ask for a protocol that is not spoken. */
export function telemetryWarnings(environment: Environment): ConfigurationWarning[] {
  const names = ["", "TRACES_", "METRICS_", "LOGS_"];
  const isSent = names.some((name) => environment[`OTEL_EXPORTER_OTLP_${name}ENDPOINT`]?.trim());
  if (!isSent || environment["OTEL_SDK_DISABLED"]?.toLowerCase() === "true") return [];
  return names.flatMap((name) => {
    const key = `OTEL_EXPORTER_OTLP_${name}PROTOCOL`;
    const protocol = environment[key]?.trim();
    if (!protocol || protocol === "http/json") return [];
    const message =
      protocol === "grpc"
        ? "telemetry is sent as http/json, not by gRPC: name the HTTP port (usually 4318, not 4317), and set http/json"
        : `telemetry is sent as http/json, not as ${JSON.stringify(protocol)}: set http/json`;
    return [{ key, message }];
  });
}

/** Returns what is said of a public URL with a path, below which only the API works. */
export function publicUrlWarnings(publicUrl: string | undefined): ConfigurationWarning[] {
  const path = publicUrl === undefined ? "/" : new URL(publicUrl).pathname;
  if (path === "/") return [];
  const message =
    `has the path ${path}, below which only the API works, and only where a proxy removes it: ` +
    "the dashboard and signing in need the root of a host; give the gateway a host name of its own";
  return [{ key: "server.public_url", message }];
}

/** Returns what is said where each of several gateways stores files in a directory of its own. */
export function filesWarnings({
  isShared,
  processes,
  isInDataDirectory,
}: {
  /** Whether there is a server of shared state, and so other gateways. */
  isShared: boolean;
  processes: number | "auto";
  isInDataDirectory: boolean;
}): ConfigurationWarning[] {
  // Processes of one machine have one data directory.
  if (!isShared || processes !== 1 || !isInDataDirectory) return [];
  const message =
    "files are stored in the data directory of this gateway, where other gateways do not find them: " +
    "name a directory that all of them share, or s3://BUCKET/PREFIX";
  return [{ key: "files.url", message }];
}

const dayMs = 86_400_000;
const daysAhead = 14;

/**
 * Returns what is said of a certificate that clients refuse, or will soon. A file that cannot be
 * read is refused elsewhere.
 */
export function certificateWarnings(
  tls: { certPath: string } | undefined,
  nowMs: number,
): ConfigurationWarning[] {
  if (tls === undefined) return [];
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(readFileSync(tls.certPath));
  } catch {
    return [];
  }
  const [fromMs, untilMs] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  const until = new Date(untilMs).toISOString();
  const message =
    untilMs <= nowMs
      ? `the certificate expired at ${until}: clients refuse the connection; renew it and reload`
      : fromMs > nowMs
        ? `the certificate is valid only from ${new Date(fromMs).toISOString()}: until then, clients refuse the connection`
        : untilMs - nowMs < daysAhead * dayMs
          ? `the certificate expires at ${until}: renew it and reload`
          : undefined;
  return message === undefined ? [] : [{ key: "server.tls.cert", message }];
}
