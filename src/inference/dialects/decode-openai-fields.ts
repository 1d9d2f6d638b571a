import type { CacheMarker } from "../canonical/cache-marker.ts";
import type { MediaSource } from "../canonical/content.ts";
import type { UserPart } from "../canonical/message.ts";
import type { CanonicalRequest, OutputFormat, Sampling } from "../canonical/request.ts";
import { parseDataUrl } from "./data-url.ts";
import { decodeGateway, decodePromptCaching } from "./decode-gateway.ts";
import { asObject, badRequest, type RequestFields } from "./request-fields.ts";
import { withoutUndefined } from "./without-undefined.ts";

/** The object, or undefined when nothing stands in it. */
export const filled = <T extends object>(fields: T): T | undefined =>
  Object.keys(fields).length === 0 ? undefined : fields;

/** Sampling fields that chat and Responses share: beside OpenAI's two, those that servers behind the gateway take. */
export const decodeSharedSampling = (body: RequestFields): Sampling =>
  withoutUndefined<Sampling>({
    temperature: body.number("temperature"),
    topP: body.number("top_p"),
    topK: body.number("top_k"),
    minP: body.number("min_p"),
    topA: body.number("top_a"),
    frequencyPenalty: body.number("frequency_penalty"),
    presencePenalty: body.number("presence_penalty"),
    repetitionPenalty: body.number("repetition_penalty"),
    seed: body.number("seed"),
  });

/** Fields of the request as a whole that chat and Responses spell alike. */
export const decodeSharedFields = (body: RequestFields): Partial<CanonicalRequest> =>
  withoutUndefined<Partial<CanonicalRequest>>({
    modalities: body.strings("modalities"),
    promptCaching: filled(decodePromptCaching(body)),
    metadata: body.objectField("metadata"),
    endUserId: body.string("user"),
    safetyIdentifier: body.string("safety_identifier"),
    serviceTier: body.string("service_tier"),
    store: body.boolean("store"),
    moderation: body.objectField("moderation"),
    gateway: filled(decodeGateway(body)),
  });

/** A schema that the answer has to fit, from where the dialect keeps its fields. */
export const decodeSchemaOutput = (fields: RequestFields | undefined): OutputFormat =>
  withoutUndefined<Extract<OutputFormat, { type: "json-schema" }>>({
    type: "json-schema",
    schema: fields?.objectField("schema"),
    name: fields?.string("name"),
    description: fields?.string("description"),
    strict: fields?.boolean("strict"),
  });

/** The sound of an `input_audio` part. Throws `GatewayError` `bad_request` where it is missing. */
export function decodeSound(
  part: RequestFields,
): Pick<Extract<UserPart, { type: "audio" }>, "type" | "data" | "format"> {
  const audio = part.nested("input_audio");
  if (audio === undefined)
    throw badRequest(part.pathOf("input_audio"), 'is required: {"data": base64, "format": "wav"}.');
  return {
    type: "audio",
    data: audio.requiredString("data"),
    format: audio.requiredString("format"),
  };
}

/** The bytes of a file: a data URL, or bare base64 of a PDF, as OpenAI's reference has both. */
export function fileBytes(data: string): MediaSource {
  const inline = parseDataUrl(data);
  return inline
    ? { type: "base64", ...inline }
    : { type: "base64", mediaType: "application/pdf", data };
}

/** Fields of a part or a tool that mark the end of a prompt's reusable beginning. */
export const markerFields = ["prompt_cache_breakpoint", "cache_control"] as const;

/** A part's or tool's cache marker, in either spelling. */
export function decodeCache(part: RequestFields): CacheMarker | undefined {
  for (const spelling of markerFields) {
    const marker = asObject(part.object[spelling]);
    if (marker === undefined) continue;
    const { ttl } = marker;
    return { ...((ttl === "5m" || ttl === "30m" || ttl === "1h") && { ttl }), spelling };
  }
  return undefined;
}
