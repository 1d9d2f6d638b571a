import { routeBaseUrl, type UpstreamRoute } from "../../catalog/model.ts";
import type { SoundWork } from "./sound-call.ts";

/** What a session does. */
export type SessionWork = "responses" | SoundWork;

/** The path and query of each kind of session below a base URL. */
const paths: Readonly<Record<SessionWork, (model: string) => string>> = {
  responses: (model) => `/realtime?model=${model}`,
  // The model is named by the settings of the session.
  transcription: () => "/realtime?intent=transcription",
  translation: (model) => `/realtime/translations?model=${model}`,
};

/** Returns the address of a route's sessions, and the headers that authenticate at its provider. */
export function realtimeTarget(
  route: UpstreamRoute,
  work: SessionWork,
): { url: string; headers: Record<string, string> } | undefined {
  const { provider, upstreamModel } = route;
  const baseUrl = routeBaseUrl(route, "realtime");
  if (baseUrl === undefined || provider.apiKey === undefined) return undefined;
  const { name, prefix } = provider.credentialHeader;
  return {
    url: baseUrl + paths[work](encodeURIComponent(upstreamModel)),
    headers: {
      "user-agent": "switchyard",
      ...provider.headers,
      ...(provider.apiKey !== "" && { [name]: prefix + provider.apiKey }),
    },
  };
}
