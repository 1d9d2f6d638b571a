import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import type { Reply } from "../../http/reply.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import { execute } from "../../inference/pipeline/execute.ts";
import { soundLength } from "../../inference/surfaces/audio/sound-length.ts";
import { MediaRoom } from "../../inference/surfaces/media/media-room.ts";
import { KeptFrames } from "../../inference/pipeline/stream/kept-frames.ts";
import { keptText, type KeptText } from "../../platform/kernel/json/text-keeper.ts";
import { transcriptionCall } from "../../inference/surfaces/audio/transcripts/transcriptions-call.ts";
import {
  readTranscriptionRequest,
  soundOf,
  transcriptFormats,
  type TranscriptionRequest,
} from "../../inference/surfaces/audio/transcripts/transcription-request.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  streamResponse,
  surfaceErrors,
  unreachable,
  wholeResponse,
  wholeText,
} from "../inference/answer-call.ts";
import { originOf, rateClassOf, whileCounted } from "../inference/read-call.ts";
import { keepWhole, keptAs } from "./keep-media.ts";
import { answerMedia, mediaHeaders, presetSettings, type MediaBody } from "./read-media.ts";

const mib = 1024 * 1024;
const names = { names: unreachable } as const;

const fields = () => ({
  model: z.string().describe("Catalog id of a model that transcribes."),
  language: z.string().optional().describe("Language that is spoken, such as en."),
  prompt: z.string().optional(),
  response_format: z.enum(transcriptFormats).optional(),
  temperature: z.number().min(0).max(1).optional(),
});

const jsonFields = () => ({
  ...fields(),
  input_audio: z
    .looseObject({ data: z.string().describe("Base64."), format: z.string() })
    .describe("The sound, in OpenRouter's form."),
});

const file = () => ({ file: z.string().describe("A file of sound of up to `audio.max_mb`.") });

const description =
  "OpenAI's dialect for every transcription model, whichever dialect its provider uses. The hold is the price of the length that the " +
  "file's container tells, bounded by its bytes; the charge is what the provider counts. Formats that the provider lacks are made here.";

interface Place extends Pick<Endpoint<Dependencies>, "path" | "summary"> {
  task: TranscriptionRequest["task"];
  more: () => z.ZodRawShape;
}

/** What requests to transcribe need. */
type SoundDependencies = Pick<
  Dependencies,
  | "inference"
  | "presets"
  | "directory"
  | "spool"
  | "files"
  | "audioBytesMax"
  | "idempotentAnswers"
  | "counters"
  | "clock"
>;

const endpointAt = ({ path, summary, task, more }: Place) =>
  defineEndpoint<SoundDependencies>({
    method: "POST",
    path,
    base: "api",
    access: { llmKey: true },
    counting: "by-handler",
    bodyBytesMax: 200 * mib,
    tag: "Inference",
    summary,
    description,
    headers: mediaHeaders,
    rawBody: z.lazy(() => z.looseObject({ ...jsonFields(), ...more() })),
    formBody: z.lazy(() => z.looseObject({ ...fields(), ...more(), ...file() })),
    response: () => z.looseObject({ text: z.string(), usage: z.looseObject({}).optional() }),
    otherResponseTypes: ["text/plain", "text/event-stream"],
    streamEvents: () => z.looseObject({ type: z.string() }),
    encodeError: surfaceErrors(names),
    handle: (context, dependencies) => answerTranscription(context, { task, dependencies }),
  });

/** Writes down what a sound says (OpenAI's `POST /audio/transcriptions`). */
export const audioTranscriptions = endpointAt({
  path: "/audio/transcriptions",
  summary: "Transcribe sound.",
  task: "transcribe",
  more: () => ({
    timestamp_granularities: z.array(z.enum(["word", "segment"])).optional(),
    stream: z.boolean().optional(),
  }),
});

/** Writes down in English what a sound says (OpenAI's `POST /audio/translations`). */
export const audioTranslations = endpointAt({
  path: "/audio/translations",
  summary: "Translate what a sound says into English.",
  task: "translate",
  more: () => ({}),
});

interface Asked {
  task: TranscriptionRequest["task"];
  dependencies: SoundDependencies;
}

function answerTranscription(context: RequestContext, asked: Asked): Promise<Reply> {
  const { audioBytesMax: fileBytesMax } = asked.dependencies;
  const limits = {
    formBytesMax: fileBytesMax + mib,
    jsonBytesMax: Math.min(64 * mib, Math.ceil(fileBytesMax * 1.4)),
    fileBytesMax,
  };
  return answerMedia(
    context,
    { services: asked.dependencies, limits, settings: presetSettings.transcriptions },
    (sent) => answerSent(context, { ...asked, sent }),
  );
}

async function answerSent(
  context: RequestContext,
  { task, dependencies, sent }: Asked & { sent: MediaBody },
): Promise<Reply> {
  const { body, uploads } = sent;
  const read = async (): Promise<TranscriptionRequest> => {
    const sound = soundOf(body, uploads);
    const length = await soundLength(sound.content, sound);
    const isJson = uploads.length === 0;
    return readTranscriptionRequest(body, { task, file: sound, length, isJson });
  };
  return whileCounted(
    context,
    {
      counters: dependencies.counters,
      rateClass: rateClassOf(body["model"]),
      estimateTokens: () => 0,
      ticket: context.traceId,
    },
    async (counted) => {
      const request = await read();
      const caller = context.caller as LlmKeyCaller;
      const { input_audio: _, ...routing } = body;
      const origin = originOf(context, { idPrefix: "trs-", body: routing, caller, counted });
      const asked = transcriptionCall(origin, { body: routing, request });
      const call = keptAs(dependencies.inference, {
        call: { ...asked, presetId: sent.presetId },
        sent,
        formOf: (bytesMax) => ({
          readRequest: () => readKept(request, { members: routing, bytesMax }),
          keeperOf: () => new KeptFrames(bytesMax),
        }),
      });
      const served = await execute(dependencies.inference, call);
      if (served.kind === "stream") {
        if (call.keptForm !== undefined) sent.lend();
        return streamResponse(context, {
          served,
          nowMs: dependencies.clock.monotonicMs(),
          frames: served.stream,
        });
      }
      const text = wholeText(served, call);
      keepWhole(dependencies.inference, { call, sent, answer: () => keptText(text) });
      const reply = wholeResponse(context, { served, call, text });
      if (["text", "srt", "vtt"].includes(request.format))
        reply.headers["content-type"] = "text/plain; charset=utf-8";
      return reply;
    },
  );
}

/** Reads a request as it is kept: as OpenRouter's JSON with as much of its sound as there is room for. */
async function readKept(
  { file: sound }: TranscriptionRequest,
  { members, bytesMax }: { members: Record<string, unknown>; bytesMax: number },
): Promise<KeptText> {
  const room = new MediaRoom(bytesMax);
  const { file: _, ...rest } = members;
  return room.textOf(rest, { input_audio: await room.readSound(sound) });
}
