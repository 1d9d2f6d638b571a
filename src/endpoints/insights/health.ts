import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { Dependencies } from "../dependencies.ts";

/** Contract, "Limits": clients need not ask more often than once a minute. */
const cacheControl = "public, max-age=60, s-maxage=300, stale-while-revalidate=600";

const statusSchema = z.enum(["healthy", "degraded", "partial", "down", "no_signal"]);
const componentSchema = z.looseObject({
  status: statusSchema,
  description: z.string(),
  note: z.string().nullable(),
  data: z.looseObject({}),
});

/** How the service is. Always 200: what is down stands in the body. */
export const health = defineEndpoint({
  method: "GET",
  path: "/health",
  base: "api",
  access: { open: true },
  counting: "at-door",
  tag: "Insights",
  summary: "Show the health snapshot.",
  description: "The thresholds of every state stand in docs/health.md.",
  response: z.object({
    status: statusSchema,
    description: z.string(),
    version: z.string(),
    checked_at: z.string(),
    components: z.object({
      api: componentSchema,
      providers: componentSchema,
      smoke_tests: componentSchema.nullable(),
      workflows: componentSchema.nullable(),
      routing: componentSchema.nullable(),
      postgres: componentSchema,
      clickhouse: componentSchema,
    }),
    events: z.array(
      z.object({
        at: z.string(),
        upstream_id: z.string(),
        from: z.string(),
        to: z.string(),
        message: z.string().optional(),
      }),
    ),
  }),
  encodeError: encodeContractError,
  handle(context, { insights }: Pick<Dependencies, "insights">) {
    context.headers["cache-control"] = cacheControl;
    return context.json(insights.health.snapshot());
  },
});
