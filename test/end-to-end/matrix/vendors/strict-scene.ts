import { buildCatalog } from "../../../../src/inference/catalog/build-catalog.ts";
import {
  provider,
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../../support/gateway.ts";
import { vendorIds, type VendorId } from "../../../support/strict-vendors/rule.ts";
import {
  startStrictUpstream,
  type StrictUpstream,
} from "../../../support/strict-vendors/strict-upstream.ts";
import { vendorRules } from "../../../support/strict-vendors/vendor-rules.ts";
import type { Fields } from "../support/json-value.ts";

/** A gateway before the vendors' strict doubles. */
export interface StrictScene {
  gateway: TestGateway;
  upstream: StrictUpstream;
  /** Returns the catalog id under which a vendor serves a wire name. */
  idOf(vendor: VendorId, upstreamModel: string): string;
  /** Asks a vendor for one of its models. */
  ask(path: string, body: Fields, vendor: VendorId): Promise<Response>;
  end(): Promise<void>;
}

/** Returns the wire names of a vendor's rules, each once. */
const ruledModels = (vendor: VendorId): string[] => [
  ...new Set(
    vendorRules.filter((rule) => rule.vendor === vendor).map(({ violates }) => violates.model),
  ),
];

const price = { prompt: "0.50", completion: "1.50" };

/** Returns the models of a vendor's rules that the bundled catalog does not know. */
function otherModels(vendor: VendorId): string[] {
  const catalog = buildCatalog({ environment: {}, configuredProviders: [], nowMs: 0 });
  const known = new Set(
    [...catalog.models.values()].flatMap(({ routes, router }) =>
      (router === undefined ? routes : []).flatMap((route) =>
        route.provider.id === vendor ? [route.upstreamModel] : [],
      ),
    ),
  );
  return ruledModels(vendor).filter((name) => !known.has(name));
}

const entryOf = (vendor: VendorId, upstream: StrictUpstream) =>
  provider({
    id: vendor,
    base_url: upstream.baseUrl(vendor),
    api_key: "strict-secret",
    ...(vendor === "llama-cpp" && { like: "vllm", deviations: ["llama_cpp_completions"] }),
    models: otherModels(vendor).map((name) => ({
      id: `${vendor}/${name.replaceAll(/[^\w.-]/g, "-").toLowerCase()}`,
      upstream_model: name,
      context_length: 131_072,
      pricing: price,
    })),
  });

/** Starts the gateway with every vendor's models at its strict double. */
export async function startStrictScene(): Promise<StrictScene> {
  const upstream = await startStrictUpstream();
  const providers = vendorIds.map((vendor) => entryOf(vendor, upstream));
  const gateway = await startGateway({
    providers,
    plans: { enterprise: { perMinute: 1_000_000 } },
    // Enough for the longest answer of the dearest model, so that no cap is lowered.
    bootstrap: {
      llmKey: testLlmKey,
      managementKey: testManagementKey,
      creditsNanoUsd: 1_000_000_000_000_000n,
      plan: "enterprise",
    },
  });
  const catalog = buildCatalog({ environment: {}, configuredProviders: providers, nowMs: 0 });
  const ids = new Map<string, string>();
  for (const { id, routes, router } of catalog.models.values())
    for (const route of router === undefined ? routes : [])
      ids.set(`${route.provider.id} ${route.upstreamModel}`, id);
  return {
    gateway,
    upstream,
    idOf(vendor, upstreamModel) {
      const id = ids.get(`${vendor} ${upstreamModel}`);
      if (id === undefined) throw new Error(`${vendor} serves no ${upstreamModel}`);
      return id;
    },
    ask: (path, body, vendor) =>
      gateway.post(path, { ...body, provider: { order: [vendor], only: [vendor] } }),
    async end() {
      await gateway.stop();
      upstream.stop();
    },
  };
}
