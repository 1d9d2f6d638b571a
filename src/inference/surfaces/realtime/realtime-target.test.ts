import { expect, test } from "bun:test";
import type { UpstreamRoute } from "../../catalog/model.ts";
import type { UpstreamDialect } from "../../providers/provider-definition.ts";
import { realtimeTarget, type SessionWork } from "./realtime-target.ts";

/** A route of a provider that speaks a dialect of sessions. */
const routeOf = (baseUrl: string, dialect: UpstreamDialect): UpstreamRoute =>
  ({
    upstreamModel: "voice 1",
    provider: {
      baseUrl,
      apiKey: "secret",
      credentialHeader: { name: "api-key", prefix: "" },
      headers: {},
      dialects: { realtime: dialect },
    },
  }) as unknown as UpstreamRoute;

const azure = "https://r.openai.azure.com/openai/v1";
const openai = "https://api.openai.com/v1";
const google = "https://generativelanguage.googleapis.com/v1beta";
const live = "google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent";

test.each([
  [openai, "openai-realtime", "responses", `${openai}/realtime?model=voice%201`],
  [openai, "openai-realtime", "transcription", `${openai}/realtime?intent=transcription`],
  [openai, "openai-realtime", "translation", `${openai}/realtime/translations?model=voice%201`],
  [azure, "openai-realtime", "responses", `${azure}/realtime?model=voice%201`],
  [
    azure,
    "azure-realtime",
    "responses",
    "https://r.openai.azure.com/openai/realtime?api-version=2025-04-01-preview&deployment=voice%201",
  ],
  [google, "google-live", "responses", `https://generativelanguage.googleapis.com/ws/${live}`],
  [google, "google-live", "transcription", undefined],
  [azure, "azure-realtime", "translation", undefined],
] as const)("%s as %s opens %s at %s", (baseUrl, dialect, work: SessionWork, url) => {
  const target = realtimeTarget(routeOf(baseUrl, dialect), work);
  expect(target?.url).toBe(url as string);
  if (target !== undefined) expect(target.headers["api-key"]).toBe("secret");
});
