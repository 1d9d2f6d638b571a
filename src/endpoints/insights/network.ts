import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { Dependencies } from "../dependencies.ts";

/** Contract, "Limits": refreshed every ten minutes. */
const cacheControl = "public, max-age=600, s-maxage=600";

const trendSchema = lazily(() =>
  z.array(z.object({ bucket: z.string(), tokens: z.int(), requests: z.int() })),
);

export const networkStatistics = defineEndpoint({
  method: "GET",
  path: "/analytics/network",
  base: "api",
  access: { open: true },
  counting: "at-door",
  tag: "Insights",
  summary: "Show the statistics of the whole service.",
  response: () =>
    z.object({
      generated_at: z.string().nullable(),
      totals: z.object({
        tokens: z.int(),
        requests: z.int(),
        prompt_tokens: z.int(),
        completion_tokens: z.int(),
        cached_tokens: z.int(),
        reasoning_tokens: z.int(),
      }),
      top_models: z.array(
        z.object({
          model_id: z.string(),
          model_name: z.string(),
          provider: z.string(),
          rank: z.int(),
          tokens: z.int(),
          requests: z.int(),
          share: z.number(),
        }),
      ),
      trend: z.object({ "24h": trendSchema(), "7d": trendSchema(), "30d": trendSchema() }),
    }),
  encodeError: encodeContractError,
  handle(context, { insights }: Pick<Dependencies, "insights">) {
    context.headers["cache-control"] = cacheControl;
    return context.json(insights.network.current());
  },
});
