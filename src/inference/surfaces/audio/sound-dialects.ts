import { assert } from "../../../platform/kernel/assert.ts";
import { routeDialect, type UpstreamDialect, type UpstreamRoute } from "../../catalog/model.ts";
import type { Adapter } from "../../pipeline/inference-call.ts";
import { deepgram } from "./deepgram.ts";
import { elevenlabs } from "./elevenlabs.ts";
import { googleAudio } from "./google-audio.ts";
import { openaiAudio } from "./openai-audio.ts";
import type { SoundDialect, SoundExchange } from "./sound-dialect.ts";

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

/** Returns how an exchange is sent. JSON without files is text, in which ids of users are found. */
export function sentSound({
  path,
  body: { parts, type },
}: SoundExchange): Pick<Adapter, "requestText" | "requestBody" | "requestPath" | "requestHeaders"> {
  const [only] = parts;
  const isText = parts.length === 1 && typeof only === "string";
  return {
    requestText: isText ? only : "",
    requestPath: path,
    requestHeaders: { "content-type": type },
    ...(!isText && { requestBody: parts }),
  };
}
