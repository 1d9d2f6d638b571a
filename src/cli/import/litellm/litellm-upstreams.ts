import {
  credentialVariableOf,
  type ImportPlan,
  isSigned,
  type Upstream,
  vendorAt,
} from "../import-plan.ts";
import { takeCloudVariable } from "../cloud-variables.ts";
import { addressIn, hostName, usableAddress } from "../server-address.ts";
import { localVendors, referenceOf } from "./litellm-words.ts";
import type { SourceNode } from "../source-node.ts";

/** What a deployment's `model` says of its provider. */
interface Named {
  /** The id of the provider that its prefix means; undefined for any other. */
  vendor: string | undefined;
  prefix: string | undefined;
  /** The name of the deployment's group. */
  name: string;
}

/** Reads where deployments are served, from their `litellm_params`. */
export class LiteLlmUpstreams {
  constructor(private readonly plan: ImportPlan) {}

  /** Returns a deployment's upstream; undefined where there is none, and then the report says so. */
  upstreamOf(
    parameters: SourceNode,
    { vendor: prefixed, prefix, name }: Named,
  ): Upstream | undefined {
    const address = parameters.get("api_base") ?? parameters.get("base_url");
    const written = address?.text();
    // openai/ with an address is how LiteLLM names any server that speaks OpenAI's dialect.
    const isOwnServer = written !== undefined && (prefixed === "openai" || prefixed === undefined);
    const vendor = isOwnServer ? vendorAt(written) : prefixed;
    if (vendor === undefined && !isOwnServer) {
      parameters
        .get("model")
        ?.report("left_out", `there is no provider ${prefix ?? ""} here, and no api_base`);
      return undefined;
    }
    const headers = this.headersOf(parameters.get("extra_headers") ?? parameters.get("headers"));
    const timeouts = this.timeoutsOf(parameters, vendor);
    this.addVendorVariables(parameters, vendor);
    const baseUrl = written === undefined ? undefined : addressOf(address, written, vendor);
    return {
      vendor,
      ...(vendor === undefined ? { name: hostName(baseUrl ?? "") ?? name } : {}),
      baseUrl,
      apiKey: this.keyOf(parameters.get("api_key"), vendor ?? name),
      ...(headers === undefined ? {} : { headers }),
      ...(timeouts === undefined ? {} : { timeouts }),
    };
  }

  private keyOf(node: SourceNode | undefined, owner: string): string | undefined {
    const written = node?.text();
    if (node === undefined || written === undefined) return undefined;
    const reference = referenceOf(written);
    if (reference !== undefined) return reference;
    node.report("changed", "the key goes to switchyard.env, not to the configuration");
    return this.plan.secret(credentialVariableOf(owner), written);
  }

  /** Returns an entry's timeouts; a provider with a cloud account has those of its first entry. */
  private timeoutsOf(parameters: SourceNode, vendor: string | undefined): Upstream["timeouts"] {
    const timeouts = timeoutsOf(parameters);
    const first = this.plan.providers.find(({ id }) => id === vendor && isSigned(id));
    const isOther =
      first !== undefined && JSON.stringify(first.timeouts_ms) !== JSON.stringify(timeouts);
    if (isOther && timeouts !== undefined)
      (parameters.get("timeout") ?? parameters.get("stream_timeout"))?.report(
        "left_out",
        `all of ${vendor} has the timeouts of its first entry`,
      );
    return timeouts;
  }

  private headersOf(node: SourceNode | undefined): Upstream["headers"] {
    const headers = (node?.entries() ?? []).flatMap(([header, part]): [string, string][] => {
      const written = part.text() ?? part.number()?.toString();
      if (written === undefined) {
        part.report("left_out", "is no text");
        return [];
      }
      const reference = referenceOf(written);
      return [[header, reference === undefined ? written : `${reference.slice(0, -1)}:-}`]];
    });
    return headers.length === 0 ? undefined : Object.fromEntries(headers);
  }

  /** Adds the variables in which providers read cloud accounts. */
  private addVendorVariables(parameters: SourceNode, vendor: string | undefined): void {
    for (const [key, variable] of Object.entries(cloudVariables[vendor ?? ""] ?? {})) {
      const node = parameters.get(key);
      const reference = referenceOf(node?.text() ?? "");
      takeCloudVariable(this.plan, node, { vendor: vendor ?? "", variable, reference });
    }
  }
}

const vertexVariables = {
  vertex_project: "GOOGLE_VERTEX_PROJECT",
  vertex_location: "GOOGLE_VERTEX_LOCATION",
  vertex_credentials: "GOOGLE_APPLICATION_CREDENTIALS",
};

/** The variables of cloud accounts, by provider and LiteLLM's parameter. */
const cloudVariables: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "google-vertex": vertexVariables,
  "google-vertex-anthropic": vertexVariables,
  "amazon-bedrock": {
    aws_region_name: "AWS_REGION",
    aws_access_key_id: "AWS_ACCESS_KEY_ID",
    aws_secret_access_key: "AWS_SECRET_ACCESS_KEY",
  },
};

/** Returns an address as the configuration writes it. */
function addressOf(
  node: SourceNode | undefined,
  written: string,
  vendor: string | undefined,
): string {
  const suffix =
    vendor === "azure"
      ? "/openai/v1"
      : localVendors.has(vendor ?? "") && !/\/v1\/?$/.test(written)
        ? "/v1"
        : "";
  const reference = referenceOf(written);
  if (reference === undefined) {
    const plain = usableAddress(node, written.replace(/[?#].*$/, "").replace(/\/+$/, ""));
    return plain.endsWith(suffix) ? plain : `${plain}${suffix}`;
  }
  return `${addressIn(node, reference.slice(2, -1))}${suffix}`;
}

function timeoutsOf(parameters: SourceNode): Upstream["timeouts"] {
  const ms = (key: string): number | undefined => {
    const seconds = parameters.get(key)?.number();
    return seconds === undefined ? undefined : Math.max(1, Math.round(seconds * 1_000));
  };
  const [total, first] = [ms("timeout"), ms("stream_timeout")];
  if (total === undefined && first === undefined) return undefined;
  return {
    ...(total === undefined ? {} : { total }),
    ...(first === undefined ? {} : { first_token: first }),
  };
}
