import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { answerOnceFor } from "../../access/idempotent-answers.ts";
import { eventStreamHeaders, type Answer } from "../../http/reply.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import { showsNoCost } from "../../inference/pipeline/answer-metadata.ts";
import { executeBytes } from "../../inference/pipeline/execute.ts";
import type { ServedBytes } from "../../inference/pipeline/stream/open-stream.ts";
import { KeptSound } from "../../inference/surfaces/audio/kept-sound.ts";
import { keptText } from "../../platform/kernel/json/text-keeper.ts";
import { speechCall } from "../../inference/surfaces/audio/speech-call.ts";
import {
  readSpeechRequest,
  type SpeechRequest,
} from "../../inference/surfaces/audio/speech-request.ts";
import { tokensOfTexts } from "../../inference/surfaces/surface-call.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import { totalInputTokens, totalOutputTokens } from "../../platform/kernel/usage.ts";
import type { Dependencies } from "../dependencies.ts";
import { bytesResponse, surfaceErrors, unreachable } from "../inference/answer-call.ts";
import {
  inferenceBodyBytesMax,
  originOf,
  rateClassOf,
  whileCounted,
} from "../inference/read-call.ts";
import { keptAs } from "./keep-media.ts";
import { mediaHeaders, presetSettings, readMedia, type MediaBody } from "./read-media.ts";

/** What speaking needs. */
type SpeechDependencies = Pick<
  Dependencies,
  | "inference"
  | "presets"
  | "directory"
  | "spool"
  | "files"
  | "idempotentAnswers"
  | "counters"
  | "clock"
>;

const names = { names: unreachable } as const;

/** Speaks a text (OpenAI's `POST /audio/speech`). */
export const audioSpeech = defineEndpoint<SpeechDependencies>({
  method: "POST",
  path: "/audio/speech",
  base: "api",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  tag: "Inference",
  summary: "Speak a text.",
  description:
    "OpenAI's dialect for every speech model, whichever dialect its provider uses. Answers with the sound as it comes, or with events " +
    "where `stream_format` is sse. The charge is in the generation record.",
  headers: mediaHeaders,
  rawBody: z.lazy(() =>
    z.looseObject({
      model: z.string().describe("Catalog id of a model that speaks."),
      input: z.string().max(4_096).describe("The text."),
      voice: z.union([z.string(), z.looseObject({ id: z.string() })]).optional(),
      instructions: z.string().optional(),
      response_format: z
        .enum(["mp3", "opus", "aac", "flac", "wav", "pcm", "ogg", "mulaw"])
        .optional(),
      speed: z.number().min(0.25).max(4).optional(),
      stream_format: z.enum(["audio", "sse"]).optional(),
    }),
  ),
  otherResponseTypes: ["audio/*", "text/event-stream"],
  streamEvents: () => z.looseObject({ type: z.string(), audio: z.string().optional() }),
  encodeError: surfaceErrors(names),
  handle: answerSpeech,
});

async function answerSpeech(
  context: RequestContext,
  dependencies: SpeechDependencies,
): Promise<Answer> {
  const sent = await readMedia(context, {
    services: dependencies,
    limits: {
      formBytesMax: inferenceBodyBytesMax,
      jsonBytesMax: inferenceBodyBytesMax,
      fileBytesMax: 0,
    },
    settings: presetSettings.speech,
  });
  return answerOnceFor(
    dependencies.idempotentAnswers,
    { context, bodyText: sent.fingerprint },
    () => answerSent(context, { dependencies, sent }),
  );
}

async function answerSent(
  context: RequestContext,
  {
    dependencies,
    sent,
  }: { dependencies: Pick<Dependencies, "inference" | "counters" | "clock">; sent: MediaBody },
): Promise<Answer> {
  const { body, presetId } = sent;
  return whileCounted(
    context,
    {
      counters: dependencies.counters,
      rateClass: rateClassOf(body["model"]),
      estimateTokens: () => tokensOfTexts([readSpeechRequest(body).input]),
      ticket: context.traceId,
    },
    async (counted) => {
      const request = readSpeechRequest(body);
      const caller = context.caller as LlmKeyCaller;
      const origin = originOf(context, { idPrefix: "spc-", body, caller, counted });
      const call = keptAs(dependencies.inference, {
        call: { ...speechCall(origin, { body, request }), presetId },
        sent,
        formOf: (bytesMax) => ({
          readRequest: async () => keptText(JSON.stringify(body)),
          keeperOf: (type = "") => new KeptSound(type, bytesMax),
        }),
      });
      const served = await executeBytes(dependencies.inference, call);
      const { bytes } = served;
      const nowMs = dependencies.clock.monotonicMs();
      if (request.asEvents) {
        const events = eventsOf(bytes.stream(), () => usageOf(request, served));
        return bytesResponse(context, { served, nowMs, body: events, headers: eventStreamHeaders });
      }
      const headers = { "content-type": bytes.type };
      if (!call.wantsBalance)
        return bytesResponse(context, { served, nowMs, body: bytes.stream(), headers });
      // The charge stands in the head, so the sound has to be whole before it is sent.
      const whole = await new Response(bytes.stream()).blob();
      const { settled } = bytes;
      return bytesResponse(context, { served, nowMs, body: whole, headers, settled });
    },
  );
}

/**
 * Returns the usage of the last event, with what was charged: the tokens that were metered. Where
 * characters or time are charged, those of the input are estimated from the text.
 */
const usageOf = (
  { input }: SpeechRequest,
  { candidate, bytes: { metered, settled } }: Pick<ServedBytes, "candidate" | "bytes">,
) => {
  const { usage } = metered;
  const inputTokens = totalInputTokens(usage) || tokensOfTexts([input]);
  const outputTokens = totalOutputTokens(usage);
  return {
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    ...(settled !== undefined &&
      !showsNoCost({ settled, candidate }) && { cost: usdFromNano(settled.chargedNano) }),
  };
};

/** The event of speech that its provider broke off. */
const brokenOff = {
  type: "error",
  error: {
    message: "The provider broke off the speech.",
    type: "server_error",
    code: "bad_gateway",
    param: null,
  },
};

/**
 * Converts sound to the events of OpenAI's speech, as the client reads. A provider that fails on the
 * way ends them with an event of an error.
 */
function eventsOf(
  sound: ReadableStream<Uint8Array>,
  usage: () => object,
): ReadableStream<Uint8Array> {
  const reader = sound.getReader();
  const encoder = new TextEncoder();
  const frame = (event: object): Uint8Array => encoder.encode(`data: ${JSON.stringify(event)}\n\n`);
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const read = await reader.read().catch(() => undefined);
        if (read?.done === false) {
          const audio = Buffer.from(read.value).toString("base64");
          controller.enqueue(frame({ type: "speech.audio.delta", audio }));
          return;
        }
        controller.enqueue(
          frame(read === undefined ? brokenOff : { type: "speech.audio.done", usage: usage() }),
        );
        controller.close();
      },
      cancel: () => reader.cancel(),
    },
    { highWaterMark: 0 },
  );
}
