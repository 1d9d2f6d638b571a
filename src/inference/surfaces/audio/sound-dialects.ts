import { assert } from "../../../platform/kernel/assert.ts";
import { routeDialect, type UpstreamDialect, type UpstreamRoute } from "../../catalog/model.ts";
import { deepgram } from "./deepgram.ts";
import { elevenlabs } from "./elevenlabs.ts";
import { googleAudio } from "./google-audio.ts";
import { openaiAudio } from "./openai-audio.ts";
import type { SoundDialect } from "./sound-dialect.ts";

const dialects: Partial<Record<UpstreamDialect, SoundDialect>> = {
  "openai-audio": openaiAudio,
  "google-audio": googleAudio,
  deepgram,
  elevenlabs,
};

/** Returns the dialect in which a route serves a surface of sound. */
export function soundDialectOf(
  route: UpstreamRoute,
  surface: "transcriptions" | "speech",
): SoundDialect {
  const dialect = dialects[routeDialect(route, surface) ?? "openai-audio"];
  assert(dialect !== undefined, "a route of sound has a dialect of sound");
  return dialect;
}
