import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { lazily, type Endpoint } from "../../http/endpoint.ts";
import { eventStreamHeaders, type Reply } from "../../http/reply.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import { execute } from "../../inference/pipeline/execute.ts";
import type { ServedWhole } from "../../inference/pipeline/served-answer.ts";
import type { InferenceCall } from "../../inference/pipeline/inference-call.ts";
import { requiresZeroRetention } from "../../inference/pipeline/settlement/keep-content.ts";
import { wholeEvents } from "../../inference/surfaces/images/image-relay.ts";
import { imagesCall } from "../../inference/surfaces/images/images-call.ts";
import { ImagesAnswer } from "../../inference/surfaces/images/images-answer.ts";
import {
  readImageRequest,
  withoutAddresses,
  type ImageOperation,
  type ImageRequest,
} from "../../inference/surfaces/images/image-request.ts";
import {
  KeptPictureEvents,
  readKeptPictures,
} from "../../inference/surfaces/images/kept-picture-events.ts";
import { withCheckedPictures } from "../../inference/surfaces/images/checked-pictures.ts";
import { tokensOfTexts } from "../../inference/surfaces/surface-call.ts";
import { assert } from "../../platform/kernel/assert.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  shownOf,
  streamResponse,
  surfaceErrors,
  unreachable,
  wholeResponse,
  wholeText,
} from "../inference/answer-call.ts";
import { originOf, rateClassOf, whileCounted } from "../inference/read-call.ts";
import { fitPictures } from "./fit-pictures.ts";
import { keepWhole, keptAs } from "./keep-media.ts";
import { answerMedia, mediaHeaders, presetSettings, type MediaBody } from "./read-media.ts";

const mib = 1024 * 1024;

/** OpenAI takes 16 pictures of less than 50 MB each. */
const limits = { formBytesMax: 16 * 50 * mib, jsonBytesMax: 64 * mib, fileBytesMax: 50 * mib };

const names = { names: unreachable } as const;

const requestFields = () => ({
  model: z.string().describe("Catalog id of a model that makes pictures."),
  prompt: z.string().max(32_000).describe("What is to be seen."),
  n: z.int().min(1).max(10).optional(),
  size: z.string().optional().describe("auto, pixels such as 1024x1024, or a tier such as 2K."),
  quality: z.enum(["auto", "low", "medium", "high", "xhigh", "max", "standard", "hd"]).optional(),
  background: z.enum(["auto", "opaque", "transparent"]).optional(),
  output_format: z.enum(["png", "jpeg", "webp", "gif", "svg"]).optional(),
  output_compression: z.int().min(0).max(100).optional(),
  stream: z.boolean().optional(),
  partial_images: z.int().min(0).max(3).optional(),
  user: z.string().optional(),
});

const openaiFields = () => ({
  ...requestFields(),
  moderation: z.enum(["auto", "low"]).optional(),
  response_format: z
    .enum(["url", "b64_json"])
    .optional()
    .describe("With url, the gateway hosts the pictures for an hour."),
  style: z.enum(["vivid", "natural"]).optional(),
});

const usage = lazily(() =>
  z.looseObject({
    input_tokens: z.int(),
    output_tokens: z.int(),
    total_tokens: z.int(),
    cost: z.number().optional(),
  }),
);

const openaiAnswer = lazily(() =>
  z.looseObject({
    created: z.int(),
    data: z.array(z.looseObject({ b64_json: z.string().optional(), url: z.string().optional() })),
    usage: usage().optional(),
  }),
);

const streamEvent = () =>
  z.looseObject({
    type: z.string().describe("Such as image_generation.partial_image or .completed."),
    b64_json: z.string().optional(),
  });

const description =
  "OpenAI's dialect for every image model, whichever dialect its provider uses. The hold is what the pictures may cost at most. " +
  "Fields that a provider does not take are named in `X-Service-Translation-Loss`. `usage.cost` is the charge. With an Idempotency-Key a " +
  "repetition gets the first answer.";

interface Place extends Pick<Endpoint<Dependencies>, "path" | "summary"> {
  operation: ImageOperation;
  form?: ImageRequest["form"];
  fields: () => z.ZodRawShape;
  files?: () => z.ZodRawShape;
}

/** What requests for pictures need. */
type ImageDependencies = Pick<
  Dependencies,
  | "inference"
  | "presets"
  | "directory"
  | "spool"
  | "files"
  | "hostedFiles"
  | "idempotentAnswers"
  | "counters"
  | "clock"
  | "publicUrl"
>;

const endpointAt = ({ path, summary, operation, form = "openai", fields, files }: Place) =>
  defineEndpoint<ImageDependencies>({
    method: "POST",
    path,
    base: "api",
    access: { llmKey: true },
    counting: "by-handler",
    bodyBytesMax: limits.formBytesMax,
    tag: "Inference",
    summary,
    description,
    headers: mediaHeaders,
    rawBody: z.lazy(() => z.looseObject(fields())),
    ...(files && { formBody: z.lazy(() => z.looseObject({ ...fields(), ...files() })) }),
    response: openaiAnswer,
    otherResponseTypes: ["text/event-stream"],
    streamEvents: streamEvent,
    encodeError: surfaceErrors(names),
    handle: (context, dependencies) => answerImages(context, { operation, form, dependencies }),
  });

/** Makes pictures of a prompt (OpenAI's `POST /images/generations`). */
export const imageGenerations = endpointAt({
  path: "/images/generations",
  summary: "Make pictures of a prompt.",
  operation: "generations",
  fields: openaiFields,
});

const file = () => z.string().describe("A PNG, JPEG or WebP file of less than 50 MB.");

/** Changes pictures (OpenAI's `POST /images/edits`). */
export const imageEdits = endpointAt({
  path: "/images/edits",
  summary: "Change pictures as a prompt says.",
  operation: "edits",
  fields: () => ({
    ...openaiFields(),
    images: z
      .array(z.looseObject({ image_url: z.string().optional() }))
      .max(16)
      .optional()
      .describe("Pictures by data URL or https URL, in JSON."),
    input_fidelity: z.enum(["low", "high"]).optional(),
  }),
  files: () => ({
    image: file().optional(),
    mask: file().optional(),
    markup: file().optional(),
  }),
});

/** Makes variations of a picture (OpenAI's `POST /images/variations`). */
export const imageVariations = endpointAt({
  path: "/images/variations",
  summary: "Make variations of a picture.",
  operation: "variations",
  fields: () => {
    const { prompt: _, ...others } = openaiFields();
    return others;
  },
  files: () => ({ image: file() }),
});

/** The same in OpenRouter's form (its `POST /images`). Source: npm @openrouter/sdk 1.3.19. */
export const openrouterImages = endpointAt({
  path: "/images",
  summary: "Make pictures of a prompt, for OpenRouter's clients.",
  operation: "generations",
  form: "openrouter",
  fields: () => ({
    ...requestFields(),
    aspect_ratio: z.string().optional(),
    resolution: z.string().optional().describe("A tier such as 2K."),
    input_references: z.array(z.looseObject({})).max(16).optional(),
    seed: z.int().optional(),
  }),
});

/** Shows a picture that is hosted for an hour. Its address is its credential. */
export const imageContent = defineEndpoint<Pick<Dependencies, "hostedFiles">>({
  method: "GET",
  path: "/images/content/:token",
  base: "api",
  access: { open: true },
  counting: { perAddress: { id: "image-content", perMinute: 600 } },
  tag: "Inference",
  summary: "Fetch a picture by the address that an answer gave it.",
  description: "Pictures are kept for an hour. No credential is needed: the address is one.",
  anyOrigin: true,
  otherResponseTypes: ["text/plain"],
  encodeError: encodeContractError,
  async handle(context, { hostedFiles }) {
    const found = await hostedFiles.open(context.param("token"));
    if (found === undefined)
      throw new GatewayError("not_found", "There is no such picture, or its hour is over.");
    return new Response(found.bytes, {
      headers: {
        ...context.headers,
        "content-type": found.type,
        // Drawings have styles, which do nothing beyond them.
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        "cache-control": "private, max-age=3600",
      },
    });
  },
});

interface Asked {
  operation: ImageOperation;
  form: ImageRequest["form"];
  dependencies: ImageDependencies;
}

const answerImages = (context: RequestContext, asked: Asked): Promise<Reply> =>
  answerMedia(
    context,
    { services: asked.dependencies, limits, settings: presetSettings.images },
    (sent) => answerSent(context, { ...asked, sent }),
  );

async function answerSent(
  context: RequestContext,
  { operation, form, dependencies, sent }: Asked & { sent: MediaBody },
): Promise<Reply> {
  const { body, uploads } = sent;
  const read = (): ImageRequest => readImageRequest(body, { operation, form, uploads });
  return whileCounted(
    context,
    {
      counters: dependencies.counters,
      rateClass: rateClassOf(body["model"]),
      estimateTokens: () => tokensOfTexts([read().prompt]),
      ticket: context.traceId,
    },
    async (counted) => {
      const caller = context.caller as LlmKeyCaller;
      const checked = await withCheckedPictures(read());
      const isUnhosted = requiresZeroRetention(dependencies.inference, { body, caller });
      const request = isUnhosted ? withoutAddresses(checked) : checked;
      const origin = originOf(context, { idPrefix: "img-", body, caller, counted });
      const members = routingMembers(body);
      const asked = imagesCall(origin, {
        body: members,
        request,
        nowSeconds: () => Math.floor(dependencies.clock.nowMs() / 1_000),
      });
      const call = keptAs(dependencies.inference, {
        call: { ...asked, presetId: sent.presetId },
        sent,
        formOf: (bytesMax) => ({
          readRequest: () => readKeptPictures(request, { members, bytesMax }),
          keeperOf: () => new KeptPictureEvents(bytesMax),
        }),
      });
      return serve(context, { call, sent, request, dependencies });
    },
  );
}

/** Returns the members that routing and records read; pictures and sound are none of them. */
export const routingMembers = (body: Record<string, unknown>): Record<string, unknown> => {
  const {
    image: _image,
    images: _images,
    mask: _mask,
    markup: _markup,
    input_references: _inputs,
    input_audio: _sound,
    ...rest
  } = body;
  return rest;
};

async function serve(
  context: RequestContext,
  {
    call,
    sent,
    request,
    dependencies,
  }: {
    call: InferenceCall;
    sent: MediaBody;
    request: ImageRequest;
    dependencies: Pick<Dependencies, "inference" | "hostedFiles" | "clock" | "publicUrl">;
  },
): Promise<Reply> {
  const served = await execute(dependencies.inference, call);
  if (served.kind === "stream") {
    if (call.keptForm !== undefined) sent.lend();
    return streamResponse(context, {
      served,
      nowMs: dependencies.clock.monotonicMs(),
      frames: served.stream,
    });
  }
  const { answer } = served;
  assert(answer instanceof ImagesAnswer, "an answer of images has pictures");
  const { provider } = served.candidate.route;
  const pictures = await fitPictures(answer, { services: dependencies, provider });
  keepWhole(dependencies.inference, {
    call,
    sent,
    answer: (bytesMax) => answer.kept(shownOf(served, call), { pictures, bytesMax }),
  });
  if (!request.stream)
    return wholeResponse(context, { served, call, text: wholeText(served, call) });
  return wholeAsEvents(context, { served, call, answer });
}

/** Answers with the events that a whole answer is in place of, where a provider sent no stream. */
function wholeAsEvents(
  context: RequestContext,
  { served, call, answer }: { served: ServedWhole; call: InferenceCall; answer: ImagesAnswer },
): Reply {
  const text = wholeEvents(answer, JSON.parse(wholeText(served, call)));
  const reply = wholeResponse(context, { served, call, text });
  reply.share(eventStreamHeaders);
  return reply;
}
