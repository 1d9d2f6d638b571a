import { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import { uptimeDays, type UptimeDay } from "../../inference/catalog/route-history.ts";
import { dayMs } from "../../platform/lib/clock.ts";
import type { Dependencies } from "../dependencies.ts";
import { modelByEncodedId } from "./model-view.ts";
import { catalogEndpoint, routesOf, subRoute, type Telling } from "./sub-route.ts";

const response = z.object({
  object: z.literal("model.uptime"),
  model: z.string(),
  days: z.int(),
  data: z.array(
    z.object({
      provider: z.string(),
      uptime: z.number().nullable(),
      buckets: z.array(
        z.object({
          date: z.iso.date(),
          attempts: z.int(),
          failures: z.int(),
          uptime: z.number().nullable(),
        }),
      ),
    }),
  ),
});

/** The share of attempts that found the provider there, at four decimals; null where nobody tried. */
const uptimeOf = ({
  attempts,
  failures,
}: Pick<UptimeDay, "attempts" | "failures">): number | null =>
  attempts === 0 ? null : Math.round((1 - failures / attempts) * 10_000) / 10_000;

function providerUptime(provider: string, days: readonly UptimeDay[]): object {
  const total = { attempts: 0, failures: 0 };
  for (const { attempts, failures } of days) {
    total.attempts += attempts;
    total.failures += failures;
  }
  return {
    provider,
    uptime: uptimeOf(total),
    buckets: days.map(({ day, attempts, failures }) => ({
      date: new Date(day * dayMs).toISOString().slice(0, 10),
      attempts,
      failures,
      uptime: uptimeOf({ attempts, failures }),
    })),
  };
}

const uptime: Telling = async (model, { routeHistory }) => {
  const routes = routesOf(model);
  const history = await routeHistory.uptime({
    models: [...new Set(routes.map((each) => each.model.id))],
    providers: [...new Set(routes.map(({ route }) => route.provider.id))],
  });
  return {
    object: "model.uptime",
    model: model.id,
    days: uptimeDays,
    data: [...history].map(([provider, days]) => providerUptime(provider, days)),
  };
};

const shared = {
  ...catalogEndpoint,
  description:
    "Attempts at each provider by day (UTC) over 90 days, the oldest first, and how many failed by the provider's own " +
    "fault; a routing preset shows its members' together. Null where nobody tried.",
  response,
};

/** How often the providers of a model were there. */
export const modelUptime = defineEndpoint<Dependencies>({
  ...shared,
  path: "/models/:owner/:model/uptime",
  summary: "Show the uptime of a model's providers.",
  handle: subRoute(uptime),
});

/** The same by a percent-encoded slug. */
export const modelUptimeByEncodedId = defineEndpoint<Dependencies>({
  ...shared,
  path: "/models/:id/uptime",
  summary: "Show the uptime of a model's providers (slug percent-encoded in one segment).",
  handle: subRoute(uptime, modelByEncodedId("uptime")),
});
