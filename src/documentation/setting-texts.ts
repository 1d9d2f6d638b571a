import { isMap, isPair, isScalar, isSeq, parseDocument, type Node, type Pair } from "yaml";
import { z } from "zod";
import { configuredProviderSchema } from "../inference/catalog/configured/configured-provider.ts";
import { createFileSchema } from "../platform/config/file-schema.ts";
import { settingMeaning } from "./setting-meanings.ts";
import { type JsonFields, fieldsOf, entriesOf } from "../platform/kernel/json/json-members.ts";

/** A key of switchyard.yaml. */
export interface Setting {
  /** A path such as `retention.log_budget_gb` or `providers[].base_url`. */
  path: string;
  type: string;
  text: string;
  /** The value where the key is absent; empty where there is none. */
  standard: string;
  /** The value in the example file; empty where it has none. */
  example: string;
}

function typeOf(schema: JsonFields): string {
  if (schema["const"] !== undefined) return JSON.stringify(schema["const"]);
  if (Array.isArray(schema["enum"]))
    return schema["enum"].map((value) => `\`${String(value)}\``).join(", ");
  const choices = entriesOf(schema["anyOf"] ?? schema["oneOf"]);
  if (choices.length > 0)
    return [...new Set(choices.map((choice) => typeOf(fieldsOf(choice))))].join(" or ");
  if (schema["type"] === "array") return `list of ${typeOf(fieldsOf(schema["items"]))}`;
  const range = [schema["minimum"], schema["maximum"]]
    .filter((bound) => bound !== undefined && bound !== Number.MAX_SAFE_INTEGER)
    .join(" to ");
  return `${String(schema["type"] ?? "value")}${range === "" ? "" : ` (${range})`}`;
}

function walk(schema: JsonFields, path: string, found: Map<string, string>): void {
  for (const choice of entriesOf(schema["anyOf"] ?? schema["oneOf"] ?? schema["allOf"]))
    walk(fieldsOf(choice), path, found);
  if (schema["items"] !== undefined) walk(fieldsOf(schema["items"]), `${path}[]`, found);
  for (const [name, inner] of Object.entries(fieldsOf(schema["properties"]))) {
    const below = path === "" ? name : `${path}.${name}`;
    if (!found.has(below)) found.set(below, typeOf(fieldsOf(inner)));
    walk(fieldsOf(inner), below, found);
  }
  const others = fieldsOf(schema["additionalProperties"]);
  if (Object.keys(others).length === 0) return;
  const below = `${path}.<id>`;
  found.set(below, typeOf(others));
  walk(others, below, found);
}

/** Returns the values of the example file, by the path of their key. */
function exampleValues(yaml: string): Map<string, string> {
  const found = new Map<string, string>();
  const visit = (node: Node | null | undefined, path: string): void => {
    if (isSeq(node)) node.items.forEach((item) => visit(item as Node, `${path}[]`));
    if (!isMap(node)) return;
    for (const pair of node.items as Pair<Node, Node>[]) {
      if (!isPair(pair) || !isScalar(pair.key)) continue;
      const below = path === "" ? String(pair.key.value) : `${path}.${String(pair.key.value)}`;
      if (isScalar(pair.value) && !found.has(below)) found.set(below, String(pair.value.value));
      visit(pair.value, below);
    }
  };
  visit(parseDocument(yaml).contents as Node, "");
  return found;
}

/** Returns every key of switchyard.yaml from its schema, with its meaning and an example. */
export function settings(exampleYaml: string): Setting[] {
  const schema = z.toJSONSchema(createFileSchema(configuredProviderSchema, "."), {
    io: "output",
    unrepresentable: "any",
    reused: "inline",
  });
  const types = new Map<string, string>();
  walk(fieldsOf(schema), "", types);
  const examples = exampleValues(exampleYaml);
  const underId = (path: string): string | undefined => {
    const pattern = new RegExp(
      `^${path.replaceAll(/[[\].]/g, "\\$&").replaceAll("<id>", "[^.]+(?:/[^.]+)?")}$`,
    );
    return [...examples].find(([name]) => pattern.test(name))?.[1];
  };
  return [...types].map(([path, type]) => {
    const [text = "", standard] = settingMeaning(path) ?? [];
    const example = examples.get(path) ?? underId(path) ?? "";
    return { path, type, text, standard: standard ?? "", example };
  });
}

/** The gateway's environment variables: name, default, meaning. */
export const variables: readonly (readonly [name: string, standard: string, text: string])[] = [
  ["PORT", "8787", "The port to listen on; 0 picks a free port."],
  ["HOST", "127.0.0.1", "The address to listen on; 0.0.0.0 means all addresses of the machine."],
  ["SWITCHYARD_CONFIG", "./switchyard.yaml if it exists", "The configuration file."],
  [
    "SWITCHYARD_DATA_DIR",
    "./data",
    "The folder of the database and the encryption key. At its start, the gateway makes the folder's files private to its user.",
  ],
  [
    "SWITCHYARD_PUBLIC_URL",
    "the address it listens on",
    "The URL at which clients reach the gateway; used for links, OAuth metadata and cookies.",
  ],
  ["SWITCHYARD_METRICS_PORT", "the API's own", "A separate port for `/metrics`."],
  [
    "SWITCHYARD_FIRST_SECRETS",
    "`print`",
    "`file`: the first key and the claim link go to `first-start.txt` in the data directory (mode 0600), not to stdout.",
  ],
  ["DATABASE_URL", "SQLite in the data directory", "`sqlite:PATH` or `postgres://...`."],
  [
    "DATABASE_REPLICA_URL",
    "none",
    "`postgres://...`: a replica of the database, for lists, usage and analytics.",
  ],
  [
    "REDIS_URL",
    "memory",
    "`redis://` or `rediss://`: a Valkey or Redis server, or any server of a cluster, for several gateways on one Postgres.",
  ],
  [
    "REDIS_SENTINEL_URLS",
    "none",
    "The `redis://` or `rediss://` URLs of the sentinels, separated by commas. The host in `REDIS_URL` is then the name of the primary.",
  ],
  [
    "CLICKHOUSE_URL",
    "none",
    "`clickhouse+http(s)://USER:PASSWORD@HOST:PORT/DATABASE`: the archive of generation records.",
  ],
  [
    "SWITCHYARD_ENCRYPTION_KEY",
    "generated at the first start",
    "32 bytes in base64 (`openssl rand -base64 32`); required with Postgres.",
  ],
  [
    "SWITCHYARD_SECRETS_KEY",
    "the encryption key",
    "32 bytes in base64, which encrypt callers' own provider keys.",
  ],
  [
    "SWITCHYARD_SECRETS_KEY_PREVIOUS",
    "",
    "The previous secrets key, for the one start that encrypts everything again.",
  ],
  [
    "STRIPE_SECRET_KEY",
    "card payments are off",
    "A secret key `sk_...`, or a restricted key `rk_...`, of your Stripe account.",
  ],
  ["STRIPE_WEBHOOK_SECRET", "", "`whsec_...` of the webhook endpoint."],
  ["STRIPE_API_BASE", "Stripe's own", "Another URL of Stripe's API, for tests."],
  [
    "SMTP_URL",
    "no mail is sent",
    "The mail server: `smtp://` or `smtps://` with host and credentials.",
  ],
  ["SMTP_FROM", "", "The sender of mail."],
  ["LOG_LEVEL", "info", "`debug`, `info`, `warn`, `error` or `silent`; JSON lines on stderr."],
  ["HTTPS_PROXY", "", "The proxy for requests to `https:` providers."],
  ["HTTP_PROXY", "", "The proxy for requests to `http:` providers."],
  ["ALL_PROXY", "", "The proxy for requests of a scheme that has no proxy of its own."],
  [
    "NO_PROXY",
    "",
    "Hosts, domains, addresses and ranges that the gateway calls directly, without a proxy.",
  ],
  [
    "SWITCHYARD_BOOTSTRAP_LLM_KEY",
    "",
    "A full `sk-svc-v1-...` secret; without it, the first start generates one.",
  ],
  ["SWITCHYARD_BOOTSTRAP_MANAGEMENT_KEY", "", "A full `ak_...` secret with all scopes."],
  ["SWITCHYARD_BOOTSTRAP_CREDITS", "", "USD, credited to the first workspace's balance once."],
  [
    "SWITCHYARD_BOOTSTRAP_PLAN",
    "enterprise",
    "`free`, `payg`, `go`, `pro`, `pro_plus`, `max` or `enterprise`.",
  ],
  [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "off",
    "The collector for traces and metrics over OTLP/HTTP; the standard `OTEL_*` variables apply.",
  ],
  ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "", "The same, for traces only."],
  ["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "", "The same, for metrics only."],
  ["OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "", "The same, for `access_log: otlp`."],
  ["OTEL_METRIC_EXPORT_INTERVAL", "60000", "Milliseconds between two exports of metrics."],
];
