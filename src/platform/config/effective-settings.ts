import type { z } from "zod";
import type { Configuration } from "./configuration.ts";
import type { Environment } from "./expand-references.ts";
import type { FileSettings } from "./file-schema.ts";

/** A setting as it is in force, and where it comes from. Values of secrets are told as set or not. */
export interface EffectiveSetting {
  key: string;
  value: string;
  source: "environment" | "file" | "default";
  /** The variable that it comes from, or that would set it; null where only the file does. */
  variable: string | null;
}

type Known = Omit<Configuration<unknown>, "effective">;

/** A row of the table: name in the file, the variables that come before the file, and what is shown of the value. */
type Row = readonly [
  key: string,
  variables: readonly string[],
  shown: (settings: Known) => unknown,
];

const isSet = (value: unknown): string =>
  value === undefined || value === null ? "not set" : "set";

/** An address without what it may carry of credentials. */
function withoutCredentials(address: string | undefined): string {
  if (address === undefined) return "not set";
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

/** The settings that operators ask for; the order is that of the file's documentation. */
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
  ["server.body_memory_mb", [], ({ server }) => server.bodyMemoryBytes / 1024 ** 2],
  ["storage.url", ["DATABASE_URL"], ({ storage }) => withoutCredentials(storage.url)],
  ["storage.durability", [], ({ storage }) => storage.durability],
  ["shared.url", ["REDIS_URL"], ({ shared }) => withoutCredentials(shared.url)],
  ["retention.generations_days", [], ({ retention }) => retention.generationsDays],
  ["retention.responses_days", [], ({ retention }) => retention.responsesDays],
  ["retention.log_budget_gb", [], ({ retention }) => retention.logBudgetGb],
  ["disconnect", [], ({ disconnect }) => disconnect],
  ["providers", [], ({ providers }) => `${providers.length} of your own`],
  ["sandbox.enabled", [], ({ sandbox }) => sandbox.enabled],
  ["catalog.facts", [], ({ catalog }) => catalog.factsPath ?? "those of this release"],
  ["ocr.model", [], ({ ocr }) => ocr.model ?? "the converter of this process"],
  ["routers", [], ({ routers }) => listed(Object.keys(routers))],
  ["plans", [], ({ plans }) => listed(Object.keys(plans))],
  ["dashboard", [], ({ dashboard }) => dashboard],
  ["auth.sign_up", [], ({ auth }) => auth.signUp],
  ["auth.plan", [], ({ auth }) => auth.plan],
  ["auth.breached_passwords_url", [], ({ auth }) => withoutCredentials(auth.breachedPasswordsUrl)],
  ["auth.oidc", [], ({ auth }) => listed(auth.oidc.map(({ id }) => id))],
  ["mail", ["SMTP_URL"], ({ mail }) => isSet(mail)],
  ["payments", ["STRIPE_SECRET_KEY"], ({ payments }) => isSet(payments.stripe?.secretKey)],
  ["referrals", [], ({ referrals }) => isSet(referrals)],
  ["webhooks.allowed_networks", [], ({ webhooks }) => listed(webhooks.allowedNetworks)],
  ["hub.import_networks", [], ({ hub }) => listed(hub.importNetworks)],
  [
    "encryption key",
    ["SWITCHYARD_ENCRYPTION_KEY"],
    ({ encryptionKey: key }) => (key === undefined ? "made at the first start" : "set"),
  ],
  ["secrets key", ["SWITCHYARD_SECRETS_KEY"], ({ secretsKey }) => isSet(secretsKey)],
  [
    "https proxy",
    ["HTTPS_PROXY", "https_proxy"],
    ({ proxies }) => withoutCredentials(proxies.https),
  ],
  ["http proxy", ["HTTP_PROXY", "http_proxy"], ({ proxies }) => withoutCredentials(proxies.http)],
  [
    "metrics port",
    ["SWITCHYARD_METRICS_PORT"],
    ({ metricsPort }) => metricsPort ?? "that of the API",
  ],
  ["log level", ["LOG_LEVEL"], ({ logLevel }) => logLevel],
];

/** The member of the file at a path such as `server.host`. */
const inFile = (file: unknown, key: string): unknown =>
  key
    .split(".")
    .reduce<unknown>(
      (inner, name) =>
        typeof inner === "object" && inner !== null ? Reflect.get(inner, name) : undefined,
      file,
    );

/** Each setting as it is in force. */
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
