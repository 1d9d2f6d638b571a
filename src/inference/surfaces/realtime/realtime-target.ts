import { routeBaseUrl, routeDialect, type UpstreamRoute } from "../../catalog/model.ts";
import { BetaUpstream } from "./beta-upstream.ts";
import { LiveUpstream } from "./google-live/live-upstream.ts";
import type { RealtimeUpstream } from "./realtime-upstream.ts";
import type { SoundWork } from "./sound-call.ts";

/** What a session does. */
export type SessionWork = "responses" | SoundWork;

/** Where a session is opened, and how its events are read. */
export interface RealtimeTarget {
  url: string;
  headers: Record<string, string>;
  /** Returns the provider's socket as one that speaks OpenAI's Realtime API (GA). */
  adapt(socket: RealtimeUpstream): RealtimeUpstream;
}

type Target = Pick<RealtimeTarget, "url" | "adapt">;

/** The path and query of each kind of session below a base URL (OpenAI). */
const paths: Readonly<Record<SessionWork, (model: string) => string>> = {
  responses: (model) => `/realtime?model=${model}`,
  // The model is named by the settings of the session.
  transcription: () => "/realtime?intent=transcription",
  translation: (model) => `/realtime/translations?model=${model}`,
};

/** The last version of Azure's API whose sessions speak the beta. */
const azureVersion = "2025-04-01-preview";

/** Returns the address of Azure's beta, which lies beside that of its v1 API. */
function azureTarget(
  baseUrl: string,
  { work, model }: { work: SessionWork; model: string },
): Target {
  const intent = work === "transcription" ? "&intent=transcription" : `&deployment=${model}`;
  return {
    url: `${baseUrl.replace(/\/v1$/, "")}/realtime?api-version=${azureVersion}${intent}`,
    adapt: (socket) => new BetaUpstream(socket),
  };
}

/** Returns the address of Gemini Live, which lies beside the paths of models. */
function liveTarget(baseUrl: string, upstreamModel: string): Target {
  const { origin, pathname } = new URL(baseUrl);
  const version = pathname.split("/").findLast((part) => part !== "") ?? "v1beta";
  return {
    url: `${origin}/ws/google.ai.generativelanguage.${version}.GenerativeService.BidiGenerateContent`,
    adapt: (socket) => new LiveUpstream(socket, upstreamModel),
  };
}

/**
 * Returns where a route's sessions are opened, with the headers that authenticate at its provider;
 * undefined where it has no sessions of that kind.
 */
export function realtimeTarget(
  route: UpstreamRoute,
  work: SessionWork,
): RealtimeTarget | undefined {
  const { provider, upstreamModel } = route;
  const baseUrl = routeBaseUrl(route, "realtime");
  const dialect = provider.dialects.realtime ?? routeDialect(route, "realtime");
  if (baseUrl === undefined || provider.apiKey === undefined || dialect === undefined)
    return undefined;
  const model = encodeURIComponent(upstreamModel);
  if (dialect !== "openai-realtime" && work === "translation") return undefined;
  if (dialect === "google-live" && work !== "responses") return undefined;
  const target: Target =
    dialect === "google-live"
      ? liveTarget(baseUrl, upstreamModel)
      : dialect === "azure-realtime"
        ? azureTarget(baseUrl, { work, model })
        : { url: baseUrl + paths[work](model), adapt: (socket) => socket };
  const { name, prefix } = provider.credentialHeader;
  return {
    ...target,
    headers: {
      "user-agent": "switchyard",
      ...provider.headers,
      ...(provider.apiKey !== "" && { [name]: prefix + provider.apiKey }),
    },
  };
}
