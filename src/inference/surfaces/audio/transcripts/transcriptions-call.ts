import { GatewayError } from "../../../../platform/kernel/errors.ts";
import type { CatalogModel } from "../../../catalog/model.ts";
import type {
  Adapter,
  AdaptedRoute,
  CallOrigin,
  InferenceCall,
} from "../../../pipeline/inference-call.ts";
import type { Fields } from "../../read-fields.ts";
import { surfaceCall } from "../../surface-call.ts";
import { soundDialectOf } from "../sound-dialects.ts";
import { eventsOfTranscript, TranscriptRelay } from "./transcript-relay.ts";
import { expectedSound } from "./transcript.ts";
import { TranscriptAnswer } from "./transcript-answer.ts";
import type { TranscriptionRequest } from "./transcription-request.ts";
import { sentBody } from "../../media/uploads.ts";

/** Builds the call of a request for a transcript or a translation. */
export function transcriptionCall(
  origin: CallOrigin,
  { body, request }: { body: Fields; request: TranscriptionRequest },
): InferenceCall {
  const use = { usage: expectedSound(request) };
  const call = surfaceCall(origin, {
    surface: "transcriptions",
    text: "",
    routing: body,
    requirements: { texts: 1, parameters: Object.keys(request.fields), inputTokens: 0 },
    adapt: (route) => adaptTranscription(request, route),
    assertServes: assertTranscribes,
  });
  return {
    ...call,
    requirements: { ...call.requirements, stream: request.stream, mediaAt: () => use },
  };
}

/** Throws `model_unavailable` for models that write nothing down. */
function assertTranscribes({ id, surface }: CatalogModel): void {
  if (surface === "transcriptions") return;
  const message = `The model ${id} makes no transcripts here; it serves ${surface}. GET /models?category=audio lists those that do.`;
  throw new GatewayError("model_unavailable", message, { param: "model" });
}

function adaptTranscription(request: TranscriptionRequest, adapted: AdaptedRoute): Adapter {
  const exchange = soundDialectOf(adapted.route, "transcriptions").transcribe(request, adapted);
  const byTime = adapted.route.price?.base.inputAudioMs !== undefined;
  const metering = { request, byTime };
  return {
    ...sentBody(exchange, exchange.body),
    losses: exchange.losses,
    unusableCode: "upstream_invalid_response",
    answerDeviations: {
      eventsOfWhole(text) {
        const body: unknown = JSON.parse(text);
        const heard = typeof body === "object" && body !== null ? exchange.read(body) : undefined;
        return heard === undefined
          ? `data: ${text.replaceAll("\n", " ")}\n\n`
          : eventsOfTranscript(request, heard);
      },
    },
    readWhole(_, body) {
      const transcript = exchange.read(body);
      return transcript && new TranscriptAnswer(transcript, metering);
    },
    createRelay: (options) => new TranscriptRelay(options, metering),
  };
}
