import { AssertionError } from "../../../platform/kernel/assert.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { CatalogModel } from "../../catalog/model.ts";
import type {
  Adapter,
  AdaptedRoute,
  CallOrigin,
  InferenceCall,
} from "../../pipeline/inference-call.ts";
import type { Fields } from "../read-fields.ts";
import { surfaceCall } from "../surface-call.ts";
import { soundTypes, type SpeechAnswer } from "./sound-dialect.ts";
import { soundDialectOf } from "./sound-dialects.ts";
import { speechDecoder } from "./speech-bytes.ts";
import { expectedSpeech, type SpeechRequest } from "./speech-request.ts";
import { sentBody } from "../media/uploads.ts";

/** Builds the call of a request to speak. */
export function speechCall(
  origin: CallOrigin,
  { body, request }: { body: Fields; request: SpeechRequest },
): InferenceCall {
  const use = { usage: expectedSpeech(request) };
  const call = surfaceCall(origin, {
    surface: "speech",
    text: "",
    routing: body,
    requirements: { texts: 1, parameters: Object.keys(request.fields), inputTokens: 0 },
    adapt: (route) => adaptSpeech(request, route),
    assertServes: assertSpeaks,
  });
  return { ...call, requirements: { ...call.requirements, mediaAt: () => use } };
}

/** Throws `model_unavailable` for models that do not speak. */
function assertSpeaks({ id, surface }: CatalogModel): void {
  if (surface === "speech") return;
  const message = `The model ${id} does not speak here; it serves ${surface}. GET /models?category=audio lists those that do.`;
  throw new GatewayError("model_unavailable", message, { param: "model" });
}

function noText(): never {
  throw new AssertionError("speech is read as bytes");
}

/**
 * Returns the form of an answer: servers that know no events send the sound in their place, and some
 * send a format of their own whichever was asked for.
 */
function cameAs(asked: SpeechAnswer, type = ""): SpeechAnswer {
  const isSound = /^audio\//i.test(type);
  const isPlain = asked.form === "bytes" || isSound || /^application\/octet-stream/i.test(type);
  if (!("type" in asked) || !isPlain) return asked;
  // Samples have no header that names them, and their length is counted.
  const isOther = isSound && asked.type !== soundTypes["pcm"];
  return { form: "bytes", type: isOther ? type : asked.type };
}

function adaptSpeech(request: SpeechRequest, adapted: AdaptedRoute): Adapter {
  const exchange = soundDialectOf(adapted.route, "speech").speak(request, adapted);
  const { base } = adapted.route.price ?? {};
  const byPiece = base?.characters !== undefined || base?.outputAudioMs !== undefined;
  return {
    ...sentBody(exchange, exchange.body),
    losses: exchange.losses,
    unusableCode: "upstream_invalid_response",
    answerDeviations: {},
    readWhole: noText,
    createRelay: noText,
    decodeBytes: (headers) => {
      // ElevenLabs names what it bills.
      const billed = Number(headers["character-cost"]);
      const characters = Number.isInteger(billed) && billed > 0 ? billed : undefined;
      const answer = cameAs(exchange.answer, headers["content-type"]);
      return speechDecoder(request, { answer, counts: { byPiece, characters } });
    },
  };
}
