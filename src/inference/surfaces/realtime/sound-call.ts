import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { CatalogModel } from "../../catalog/model.ts";
import type { CallOrigin, InferenceCall } from "../../pipeline/inference-call.ts";
import { surfaceCall } from "../surface-call.ts";

/** What is done with the sound of a session that has no responses. */
export type SoundWork = "transcription" | "translation";

/** The most tokens of a second of sound that any provider counts (Google), and of its transcript. */
const inputTokensPerSecond = 32;
const outputTokensPerSecond = 10;

/** Tokens of a prompt and of an empty transcript that are held beside those of the sound. */
const promptTokens = 128;
const transcriptTokens = 64;

/** Builds the call of a stretch of sound, for its plan, its hold and its record. */
export function soundCall(
  origin: CallOrigin,
  { model, work, soundMs }: { model: string; work: SoundWork; soundMs: number },
): InferenceCall {
  const seconds = Math.ceil(soundMs / 1_000);
  const use = {
    usage: {
      inputAudioMs: soundMs,
      ...(work === "translation"
        ? { outputAudioMs: soundMs }
        : {
            inputAudioTokens: seconds * inputTokensPerSecond,
            inputTokens: promptTokens,
            outputTokens: seconds * outputTokensPerSecond + transcriptTokens,
          }),
    },
  };
  const call = surfaceCall(origin, {
    surface: "realtime",
    text: "",
    routing: { model },
    requirements: { texts: 1, inputTokens: 0 },
    adapt: () => {
      throw new GatewayError("bad_request", "Events of a session are sent as they are.");
    },
    assertServes: work === "translation" ? assertTranslates : assertTranscribes,
  });
  return { ...call, requirements: { ...call.requirements, mediaAt: () => use } };
}

/** Throws `model_unavailable` for models that transcribe nothing. */
function assertTranscribes({ id, surface }: CatalogModel): void {
  if (surface === "transcriptions") return;
  const message = `The model ${id} makes no transcripts; it serves ${surface}. GET /models?category=audio lists those that do.`;
  throw new GatewayError("model_unavailable", message, { param: "model" });
}

/** Throws `model_unavailable` for models without sessions. */
function assertTranslates({ id, surface }: CatalogModel): void {
  if (surface === "realtime") return;
  const message = `The model ${id} has no realtime sessions; it serves ${surface}. GET /models lists surfaces.`;
  throw new GatewayError("model_unavailable", message, { param: "model" });
}
