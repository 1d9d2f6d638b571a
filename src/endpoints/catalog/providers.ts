import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import {
  modelCounts,
  providerEntry,
  providerLogoSvg,
} from "../../inference/catalog/list-models.ts";
import type { CatalogSnapshot } from "../../inference/catalog/model.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { catalogEndpoint } from "./sub-route.ts";

/** The list of each snapshot, created on first use. It changes only with the catalog. */
const texts = new WeakMap<CatalogSnapshot, string>();

function listText(catalog: CatalogSnapshot): string {
  let text = texts.get(catalog);
  if (text === undefined) {
    const counts = modelCounts(catalog);
    const data = [...catalog.providers.values()].map((provider) =>
      providerEntry(provider, counts.get(provider.id) ?? 0),
    );
    texts.set(catalog, (text = JSON.stringify({ object: "list", data })));
  }
  return text;
}

const entrySchema = lazily(() =>
  z.looseObject({
    id: z.string(),
    name: z.string(),
    description: z.string().max(200),
    logo: z.string().describe("Root-relative path of an SVG"),
    website: z.string().optional(),
    status: z
      .enum(["active", "byok"])
      .describe("byok: serves only callers with their own key at this provider"),
    model_count: z.int(),
    endpoints: z.array(z.string()).describe("Surfaces that the provider offers"),
  }),
);

/** Lists every provider of the catalog, whether or not it can be called now. */
export const listProviders = defineEndpoint<Pick<Dependencies, "inference">>({
  ...catalogEndpoint,
  path: "/providers",
  access: { open: true },
  summary: "List providers.",
  description:
    "Always returns the whole list. GET /health shows whether a provider answers at present.",
  response: () => z.object({ object: z.literal("list"), data: z.array(entrySchema()) }),
  handle: (context, { inference }) =>
    new Response(listText(inference.catalog()), {
      headers: {
        "content-type": "application/json",
        "cache-control": "public, max-age=60",
        ...context.headers,
      },
    }),
});

/** Returns the logo of a provider. */
export const providerLogo = defineEndpoint<Pick<Dependencies, "inference">>({
  method: "GET",
  path: "/logos/:file",
  base: "root",
  access: { open: true },
  counting: "at-door",
  tag: "Catalog",
  summary: "Show a provider's logo.",
  otherResponseTypes: ["image/svg+xml"],
  encodeError: encodeContractError,
  handle(context, { inference }) {
    const provider = inference.catalog().providers.get(context.param("file").replace(/\.svg$/, ""));
    if (provider === undefined) throw new GatewayError("not_found", "There is no such logo.");
    return new Response(providerLogoSvg(provider), {
      headers: {
        "content-type": "image/svg+xml",
        "cache-control": "public, max-age=86400",
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'",
        ...context.headers,
      },
    });
  },
});
