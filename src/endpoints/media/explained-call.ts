import type { RequestContext } from "../../access/define-endpoint.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import { presetReference } from "../../identity/presets/preset.ts";
import type { CallOrigin, InferenceCall } from "../../inference/pipeline/inference-call.ts";
import { resolveModel } from "../../inference/routing/resolve-models.ts";
import { soundLength } from "../../inference/surfaces/audio/sound-length.ts";
import { speechCall } from "../../inference/surfaces/audio/speech-call.ts";
import { readSpeechRequest } from "../../inference/surfaces/audio/speech-request.ts";
import {
  readTranscriptionRequest,
  soundOf,
} from "../../inference/surfaces/audio/transcripts/transcription-request.ts";
import { transcriptionCall } from "../../inference/surfaces/audio/transcripts/transcriptions-call.ts";
import { readImageRequest } from "../../inference/surfaces/images/image-request.ts";
import { imagesCall } from "../../inference/surfaces/images/images-call.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { originOf, rateClassOf, whileCounted } from "../inference/read-call.ts";
import { routingMembers } from "./images.ts";
import { completed, presetSettings, type MediaBody } from "./read-media.ts";

type MediaSurface = keyof typeof presetSettings;

type Services = Pick<
  Dependencies,
  "inference" | "presets" | "directory" | "files" | "audioBytesMax" | "counters" | "clock"
>;

type Body = Record<string, unknown>;

/**
 * Returns the surface of pictures or sound that the model of a body serves; undefined for bodies of
 * chat, and for models that are not known.
 */
export function mediaSurfaceOf(
  context: RequestContext,
  body: Body,
  { inference, presets }: Pick<Services, "inference" | "presets">,
): MediaSurface | undefined {
  const { model, messages } = body;
  if (messages !== undefined || typeof model !== "string") return undefined;
  const { workspace } = context.caller as LlmKeyCaller;
  const slug = presetReference(model)?.slug;
  const config = slug === undefined ? undefined : presets.resolvePreset(workspace.id, slug)?.config;
  const id = slug === undefined ? model : (config?.model ?? config?.models?.[0]);
  if (id === undefined) return undefined;
  try {
    const { surface } = resolveModel(inference.catalog(workspace.id), id).model;
    return Object.hasOwn(presetSettings, surface) ? (surface as MediaSurface) : undefined;
  } catch (error) {
    if (error instanceof GatewayError) return undefined;
    throw error;
  }
}

/**
 * Builds the call of a JSON body for pictures or sound, to explain how it would be routed. Throws
 * `GatewayError` that names the field.
 */
export async function explainedCall(
  context: RequestContext,
  { surface, body: sent, services }: { surface: MediaSurface; body: Body; services: Services },
): Promise<InferenceCall> {
  const unread: Pick<MediaBody, "body" | "uploads"> = { body: sent, uploads: [] };
  const read = await completed(context, {
    read: unread,
    services,
    fileBytesMax: services.audioBytesMax,
    settings: presetSettings[surface],
  });
  const { body, presetId } = read;
  return whileCounted(
    context,
    { counters: services.counters, rateClass: rateClassOf(body["model"]) },
    async (counted) => {
      const caller = context.caller as LlmKeyCaller;
      const routing = routingMembers(body);
      const origin = originOf(context, { idPrefix: "", body: routing, caller, counted });
      const nowSeconds = (): number => Math.floor(services.clock.nowMs() / 1_000);
      return { ...(await callsOf[surface](origin, { ...read, nowSeconds })), presetId };
    },
  );
}

type Read = Pick<MediaBody, "body" | "uploads"> & { nowSeconds(): number };

const callsOf: Record<
  MediaSurface,
  (origin: CallOrigin, read: Read) => InferenceCall | Promise<InferenceCall>
> = {
  images(origin, { body, uploads, nowSeconds }) {
    const operation =
      (body["prompt"] ?? "") === "" && "image" in body ? "variations" : "generations";
    const request = readImageRequest(body, { operation, uploads });
    return imagesCall(origin, { body: routingMembers(body), request, nowSeconds });
  },
  speech: (origin, { body }) => speechCall(origin, { body, request: readSpeechRequest(body) }),
  async transcriptions(origin, { body, uploads }) {
    const file = soundOf(body, uploads);
    const length = await soundLength(file.content, file);
    const task = "transcribe";
    const request = readTranscriptionRequest(body, { task, file, length, isJson: true });
    return transcriptionCall(origin, { body: routingMembers(body), request });
  },
};
