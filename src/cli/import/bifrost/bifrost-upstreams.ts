import type { ConfiguredProvider } from "../../../inference/catalog/configured/configured-provider.ts";
import { takeCloudVariable } from "../cloud-variables.ts";
import {
  credentialVariableOf,
  type ImportPlan,
  isKnownVendor,
  type Upstream,
  vendorAt,
} from "../import-plan.ts";
import { headersOf } from "../secret-headers.ts";
import { addressIn, hostName, usableAddress } from "../server-address.ts";
import type { SourceNode } from "../source-node.ts";

/** Bifrost's names of providers that have another name here. */
const vendors: Readonly<Record<string, string>> = {
  bedrock: "amazon-bedrock",
  gemini: "google",
  vertex: "google-vertex",
};

/** Servers that speak OpenAI's dialect at an address of the operator's. */
const ownServers = new Set(["vllm", "sgl", "ollama"]);

/** Converts `env.NAME` to the configuration's form; undefined for other texts. */
const referenceOf = (text: string): string | undefined => {
  const name = /^env\.([A-Za-z_]\w*)$/.exec(text)?.[1];
  return name === undefined ? undefined : `\${${name}}`;
};

/** The variables of cloud accounts, by the configuration of a key and its field. */
const cloudVariables: readonly (readonly [
  config: string,
  vendor: string,
  fields: Readonly<Record<string, string>>,
])[] = [
  [
    "bedrock_key_config",
    "amazon-bedrock",
    {
      region: "AWS_REGION",
      access_key: "AWS_ACCESS_KEY_ID",
      secret_key: "AWS_SECRET_ACCESS_KEY",
      session_token: "AWS_SESSION_TOKEN",
    },
  ],
  [
    "vertex_key_config",
    "google-vertex",
    {
      project_id: "GOOGLE_VERTEX_PROJECT",
      region: "GOOGLE_VERTEX_LOCATION",
      auth_credentials: "GOOGLE_APPLICATION_CREDENTIALS",
    },
  ],
];

/** Reads where providers are, and their credentials. */
export class BifrostUpstreams {
  private readonly addresses = new Map<string, string>();

  constructor(private readonly plan: ImportPlan) {}

  /** Returns the provider of a name; undefined for one of the operator's own. */
  vendorOf(name: string): string | undefined {
    const known = vendors[name] ?? name;
    return isKnownVendor(known) ? known : vendorAt(this.addresses.get(name) ?? "");
  }

  /** Returns the upstream of a key; undefined where there is none, and then the report says so. */
  upstreamOf(
    name: string,
    { part, key }: { part: SourceNode; key: SourceNode | undefined },
  ): Upstream | undefined {
    const node = key ?? part;
    const address = this.addressOf(name, { part, key });
    if (address !== undefined) this.addresses.set(name, address);
    const vendor = this.vendorOf(name);
    const base = part.get("custom_provider_config")?.get("base_provider_type")?.text();
    part.get("custom_provider_config")?.get("is_key_less")?.whole();
    if (vendor === undefined && address === undefined) {
      node.report("left_out", `names no provider that is known here: ${name}`);
      return undefined;
    }
    if (base !== undefined && base !== "openai" && vendor === undefined)
      part
        .get("custom_provider_config")
        ?.get("base_provider_type")
        ?.report(
          "changed",
          `the provider is asked in OpenAI's dialect: write its dialect for ${base}`,
        );
    for (const [config, owner, fields] of cloudVariables)
      for (const [field, variable] of Object.entries(fields)) {
        const value = key?.get(config)?.get(field);
        const reference = referenceOf(value?.text() ?? "");
        takeCloudVariable(this.plan, value, { vendor: owner, variable, reference });
      }
    key?.get("azure_key_config")?.get("api_version")?.whole();
    const network = part.get("network_config");
    const headers = headersOf(network?.get("extra_headers")?.entries() ?? [], {
      plan: this.plan,
      referenceOf,
    });
    const timeouts = timeoutsOf(network);
    const isVendorsOwn =
      address !== undefined && vendorAt(address) === vendor && vendor !== undefined;
    return {
      vendor,
      ...(vendor === undefined ? { name: name || hostName(address ?? "") } : {}),
      ...(address === undefined || isVendorsOwn ? {} : { baseUrl: address }),
      apiKey: this.keyOf(key, vendor ?? name),
      ...(headers === undefined ? {} : { headers }),
      ...(timeouts === undefined ? {} : { timeouts }),
    };
  }

  private addressOf(
    name: string,
    { part, key }: { part: SourceNode; key: SourceNode | undefined },
  ): string | undefined {
    const own = ["ollama_key_config", "sgl_key_config", "vllm_key_config"]
      .map((config) => key?.get(config)?.get("url"))
      .find((url) => url !== undefined);
    const node =
      key?.get("azure_key_config")?.get("endpoint") ??
      own ??
      part.get("network_config")?.get("base_url");
    const written = node?.text();
    if (node === undefined || written === undefined) return undefined;
    const suffix = name === "azure" ? "/openai/v1" : "/v1";
    const variable = referenceOf(written)?.slice(2, -1);
    if (variable !== undefined) return `${addressIn(node, variable)}${suffix}`;
    const plain = usableAddress(node, written.replace(/\/+$/, ""));
    const isServer = ownServers.has(name) || vendors[name] === undefined;
    const needsVersion = name === "azure" || (isServer && !/\/v\d\w*$/.test(plain));
    return needsVersion && !plain.endsWith(suffix) ? `${plain}${suffix}` : plain;
  }

  private keyOf(key: SourceNode | undefined, owner: string): string | undefined {
    const node = key?.get("value");
    const written = node?.text() ?? node?.get("value")?.text();
    if (node === undefined || written === undefined) return undefined;
    const reference = referenceOf(written);
    if (reference !== undefined) return reference;
    if (written.startsWith("vault.")) {
      node.report(
        "left_out",
        `credentials are read from variables: set ${credentialVariableOf(owner)}`,
      );
      return `\${${credentialVariableOf(owner)}}`;
    }
    node.report("changed", "the key goes to switchyard.env, not to the configuration");
    // Another key may be a reference to the usual variable.
    const label = key?.get("name")?.text() ?? "";
    return this.plan.secret(`${credentialVariableOf(owner)} ${label}`.trim(), written);
  }
}

function timeoutsOf(network: SourceNode | undefined): ConfiguredProvider["timeouts_ms"] {
  const total = network?.get("default_request_timeout_in_seconds")?.number();
  const idle = network?.get("stream_idle_timeout_in_seconds")?.number();
  if (total === undefined && idle === undefined) return undefined;
  return {
    ...(total === undefined ? {} : { total: Math.round(total * 1_000) }),
    ...(idle === undefined ? {} : { idle: Math.round(idle * 1_000) }),
  };
}
