import { takeCloudVariable } from "../cloud-variables.ts";
import { type ImportPlan, isKnownVendor, type Upstream, vendorAt } from "../import-plan.ts";
import { headersOf } from "../secret-headers.ts";
import { addressIn, hostName, usableAddress } from "../server-address.ts";
import type { SourceNode } from "../source-node.ts";

/** TensorZero's types of providers that have another name here. */
const vendors: Readonly<Record<string, string>> = {
  aws_bedrock: "amazon-bedrock",
  gcp_vertex_anthropic: "google-vertex-anthropic",
  gcp_vertex_gemini: "google-vertex",
  google_ai_studio_gemini: "google",
};

/** Types of servers that speak OpenAI's dialect at an address of the operator's. */
const ownServers = new Set(["vllm", "sglang", "tgi"]);

/** Returns the provider of a type; undefined where there is none here. */
export const vendorOf = (type: string): string | undefined =>
  vendors[type] ?? (isKnownVendor(type) ? type : undefined);

/** Converts `env::NAME` to the configuration's form; undefined for other texts. */
const referenceOf = (text: string): string | undefined => {
  const name = /^env::([A-Za-z_]\w*)$/.exec(text)?.[1];
  return name === undefined ? undefined : `\${${name}}`;
};

/** The variables of cloud accounts, by provider and field. */
const cloudVariables: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "amazon-bedrock": {
    region: "AWS_REGION",
    access_key_id: "AWS_ACCESS_KEY_ID",
    secret_access_key: "AWS_SECRET_ACCESS_KEY",
    session_token: "AWS_SESSION_TOKEN",
  },
  ...Object.fromEntries(
    ["google-vertex", "google-vertex-anthropic"].map((vendor) => [
      vendor,
      { project_id: "GOOGLE_VERTEX_PROJECT", location: "GOOGLE_VERTEX_LOCATION" },
    ]),
  ),
};

/** Reads where models are served. */
export class TensorZeroUpstreams {
  /** Credentials of all providers of a type. */
  private readonly defaults = new Map<string, SourceNode>();

  constructor(private readonly plan: ImportPlan) {}

  /** Reads the credentials that all providers of a type have. */
  readDefaults(types: SourceNode | undefined): void {
    for (const [type, part] of types?.entries() ?? []) {
      const node = part.get("defaults")?.get("api_key_location");
      if (node !== undefined) this.defaults.set(type, node);
    }
  }

  /** Returns the upstream of a model that is named with its type alone. */
  shorthand(type: string, vendor: string): Upstream {
    return { vendor, apiKey: this.keyOf(this.defaults.get(type)) };
  }

  /** Returns a provider's upstream; undefined where there is none, and then the report says so. */
  upstreamOf(node: SourceNode, timeouts: SourceNode | undefined): Upstream | undefined {
    const type = node.get("type")?.text() ?? "";
    const base = node.get("api_base") ?? node.get("endpoint") ?? node.get("endpoint_url");
    const address = this.addressOf(base, type);
    const isOwn = ownServers.has(type) || (type === "openai" && address !== undefined);
    const vendor = isOwn ? vendorAt(address ?? "") : vendorOf(type);
    if ((vendor === undefined && !isOwn) || (isOwn && address === undefined)) {
      node.report("left_out", `there is no provider of the type ${type} here`);
      return undefined;
    }
    for (const [field, variable] of Object.entries(cloudVariables[vendor ?? ""] ?? {})) {
      const part = node.get(field);
      const written = part?.text() ?? "";
      if (/^(?:sdk|dynamic::|path::|none$)/.test(written))
        part?.report("changed", `is read from ${variable}, or from the account of the machine`);
      else
        takeCloudVariable(this.plan, part, {
          vendor: vendor ?? "",
          variable,
          reference: referenceOf(written),
        });
    }
    const key = node.get("api_key_location") ?? node.get("api_key") ?? this.defaults.get(type);
    const headers = headersOf(
      (node.get("extra_headers")?.items() ?? []).map((entry) => [
        entry.get("name")?.text() ?? "",
        entry.get("value"),
      ]),
      { plan: this.plan, referenceOf },
    );
    const times = timeoutsOf(node.get("timeouts")) ?? timeoutsOf(timeouts);
    const name = hostName(address?.replaceAll(/\$\{\w+:-([^}]*)\}/g, "$1") ?? "") ?? type;
    return {
      vendor,
      ...(vendor === undefined ? { name } : {}),
      ...(address === undefined || vendorOf(type) === "amazon-bedrock" ? {} : { baseUrl: address }),
      apiKey: this.keyOf(key),
      ...(headers === undefined ? {} : { headers }),
      ...(times === undefined ? {} : { timeouts: times }),
    };
  }

  private addressOf(node: SourceNode | undefined, type: string): string | undefined {
    const written = node?.text();
    if (node === undefined || written === undefined) return undefined;
    if (type === "aws_bedrock") {
      node.report("left_out", "Bedrock is asked at the address of its region");
      return undefined;
    }
    const suffix = type === "azure" ? "/openai/v1" : "";
    const variable = referenceOf(written)?.slice(2, -1);
    if (variable !== undefined) return `${addressIn(node, variable)}${suffix}`;
    if (written.startsWith("dynamic::")) {
      node.report("left_out", "addresses are the operator's, not those of a request");
      return undefined;
    }
    // Anthropic's address has the path of its endpoint.
    const plain = written.replace(/\/+$/, "").replace(/\/messages$/, "");
    const usable = usableAddress(node, plain);
    return usable.endsWith(suffix) ? usable : `${usable}${suffix}`;
  }

  /** Returns the credential of a location, or of the first one that a fallback names. */
  private keyOf(node: SourceNode | undefined): string | undefined {
    const parts = node?.isMap() === true ? [node.get("default"), node.get("fallback")] : [node];
    let reference: string | undefined;
    for (const part of parts) {
      const written = part?.text() ?? "";
      reference ??= referenceOf(written);
      if (written.startsWith("dynamic::"))
        part?.report("changed", "callers with a key of their own add it as an own provider key");
      else if (/^path/.test(written))
        part?.report("left_out", "credentials are read from variables, not from files");
    }
    return reference;
  }
}

function timeoutsOf(node: SourceNode | undefined): Upstream["timeouts"] {
  const total =
    node?.get("non_streaming")?.get("total_ms")?.number() ??
    node?.get("streaming")?.get("total_ms")?.number();
  const first = node?.get("streaming")?.get("ttft_ms")?.number();
  if (total === undefined && first === undefined) return undefined;
  return {
    ...(total === undefined ? {} : { total }),
    ...(first === undefined ? {} : { first_token: first }),
  };
}
