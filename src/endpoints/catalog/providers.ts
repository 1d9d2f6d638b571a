import { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { modelCounts } from "../../inference/catalog/list-models.ts";
import { providerEntry } from "../../inference/catalog/provider-entry.ts";
import type { Dependencies } from "../dependencies.ts";

/** Every provider of the catalog, whether it can be called now or not. */
export const listProviders = defineEndpoint<Dependencies>({
  method: "GET",
  path: "/providers",
  base: "api",
  access: { open: true },
  counting: "at-door",
  tag: "Catalog",
  summary: "List providers.",
  response: z.object({
    object: z.literal("list"),
    data: z.array(z.looseObject({ id: z.string(), name: z.string(), description: z.string(), logo: z.string() })),
  }),
  encodeError: encodeContractError,
  handle(context, { inference }) {
    const catalog = inference.catalog();
    const counts = modelCounts(catalog);
    const data = [...catalog.providers.values()].map((provider) => providerEntry(provider, counts.get(provider.id) ?? 0));
    return context.json({ object: "list", data });
  },
});
