import { routeBaseUrl, type UpstreamRoute } from "../../catalog/model.ts";

/** Returns the address of a route's sessions, and the headers that authenticate at its provider. */
export function realtimeTarget(
  route: UpstreamRoute,
): { url: string; headers: Record<string, string> } | undefined {
  const { provider, upstreamModel } = route;
  const baseUrl = routeBaseUrl(route, "realtime");
  if (baseUrl === undefined || provider.apiKey === undefined) return undefined;
  const { name, prefix } = provider.credentialHeader;
  return {
    url: `${baseUrl}/realtime?model=${encodeURIComponent(upstreamModel)}`,
    headers: {
      "user-agent": "switchyard",
      ...provider.headers,
      ...(provider.apiKey !== "" && { [name]: prefix + provider.apiKey }),
    },
  };
}
