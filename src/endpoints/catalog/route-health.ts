import type { HealthWindows } from "../../inference/routing/health-windows.ts";
import type { ModelRoute } from "./sub-route.ts";

/** Of a hundred requests five that fail are more than chance and retries make of a healthy provider. */
const degradedShareMin = 0.05;

/** How a model does at a provider, over the last five minutes; the words are those of the health snapshot. */
export interface RouteHealth {
  status: "healthy" | "degraded" | "down" | "no_signal";
  requests: number;
  /** 0 to 1; null without traffic. */
  error_rate: number | null;
}

/** Reads it off the windows that routing looks at; `down` is what routing avoids as an outage. */
export function routeHealth(
  health: HealthWindows,
  { model, route: { provider } }: ModelRoute,
): RouteHealth {
  const rate = health.errorRate(provider.id, model.id);
  const share = rate === undefined ? null : rate.failures / rate.attempts;
  const known = share === null ? "no_signal" : share >= degradedShareMin ? "degraded" : "healthy";
  return {
    status: health.hasOutage(provider.id, model.id) ? "down" : known,
    requests: rate?.attempts ?? 0,
    error_rate: share === null ? null : Math.round(share * 10_000) / 10_000,
  };
}
