import type { Loss } from "../../canonical/request.ts";
import { readUsage } from "../../dialects/google-generate/usage.ts";
import { badRequest, withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import type { AdaptedRoute } from "../../pipeline/inference-call.ts";
import { googleModelName } from "../../providers/endpoint.ts";
import { listOf, type Fields } from "../read-fields.ts";
import { InlineFile } from "../media/inline-file.ts";
import {
  jsonBody,
  knownRatio,
  nearestRatio,
  type ImageDialect,
  type ImageExchange,
  type MadePicture,
  type ReadPictures,
} from "./image-dialect.ts";
import { pixelsOf, type ImageRequest, type Picture } from "./image-request.ts";
import type { CountedTokens } from "./image-usage.ts";
import { fieldsOf } from "../../../platform/kernel/json/json-members.ts";

/** The ratios that the Gemini API knows. Source: https://ai.google.dev/gemini-api/docs/image-generation */
export const geminiRatios = [
  "1:1",
  "2:3",
  "3:2",
  "3:4",
  "4:3",
  "4:5",
  "5:4",
  "9:16",
  "16:9",
  "21:9",
];
/** Ratios of Imagen. Source: https://ai.google.dev/gemini-api/docs/imagen */
export const imagenRatios = ["1:1", "3:4", "4:3", "9:16", "16:9"];
/** The most pictures of one request to Imagen. */
const imagenMax = 4;

/** Google's pictures: Imagen's `:predict`, and Gemini models through `generateContent`. */
export const googleImages: ImageDialect = {
  encode: (request, adapted) =>
    /^(?:models\/)?imagen-/.test(adapted.route.upstreamModel)
      ? encodeForImagen(request, adapted)
      : encodeForGemini(request, adapted),
};

/** Names the fields of a request that Google has no form for. */
function lossesOf({ fields, markup }: ImageRequest, names: readonly string[]): Loss[] {
  return [...Object.keys(fields), ...(markup === undefined ? [] : ["markup"])]
    .filter((field) => !names.includes(field) && field !== "response_format")
    .map((field) => ({ field, reason: "Google has no such field" }));
}

const tiers = ["512", "1K", "2K", "4K"];

/** Returns the tier of a size: its own name, or that of the larger side in pixels. */
function tierOf(size: string | undefined): string | undefined {
  const named = tiers.find((tier) => tier.toLowerCase() === size?.toLowerCase());
  if (named !== undefined) return named;
  const larger = Math.max(...(pixelsOf(size) ?? [0]));
  if (larger <= 1_536) return undefined;
  return larger <= 2_816 ? "2K" : "4K";
}

/** Returns how a size is asked for: as the nearest ratio, with a tier, and what that loses. */
function sizeIn({ size, aspectRatio }: ImageRequest, known: readonly string[]) {
  const asked = knownRatio(aspectRatio === "auto" ? undefined : aspectRatio, known);
  const isPixels = pixelsOf(size) !== undefined;
  return {
    ratio: asked.ratio ?? nearestRatio(size, known),
    tier: tierOf(size),
    losses: [
      ...(isPixels ? [{ field: "size", reason: "sent as the nearest aspect ratio" }] : []),
      ...asked.losses,
    ],
  };
}

function encodeForImagen(request: ImageRequest, { route }: AdaptedRoute): ImageExchange {
  if (request.operation !== "generations")
    throw badRequest("image", "is not taken by Imagen; use a Gemini model to change pictures.");
  const { ratio, tier, losses } = sizeIn(request, imagenRatios);
  const counts: number[] = [];
  for (let left = request.count; left > 0; left -= imagenMax)
    counts.push(Math.min(left, imagenMax));
  return {
    path: `/${googleModelName(route.upstreamModel)}:predict`,
    bodies: counts.map((sampleCount) =>
      jsonBody({
        instances: [{ prompt: request.prompt }],
        parameters: withoutUndefined<Fields>({ sampleCount, aspectRatio: ratio, imageSize: tier }),
      }),
    ),
    losses: [...losses, ...lossesOf(request, ["n", "size", "aspect_ratio", "resolution"])],
    read: (body) => readImagen(body, request.size ?? tier),
  };
}

/** Reads an answer of Imagen, in which a filtered picture is missing or has a reason in its place. */
function readImagen(body: object, size: string | undefined): ReadPictures | undefined {
  const { predictions } = fieldsOf(body);
  const list = predictions === undefined ? [] : listOf(predictions);
  if (list === undefined) return undefined;
  const pictures = list.flatMap((entry): MadePicture[] => {
    const { bytesBase64Encoded: base64, mimeType } = fieldsOf(entry);
    if (typeof base64 !== "string") return [];
    return [{ base64, ...(typeof mimeType === "string" && { type: mimeType }) }];
  });
  const [reason] = list.flatMap((entry) => {
    const { raiFilteredReason: filtered } = fieldsOf(entry);
    return typeof filtered === "string" ? [filtered] : [];
  });
  return {
    pictures,
    tokens: undefined,
    kind: size === undefined ? {} : { size },
    shown: {},
    ...(reason !== undefined && { withheld: reason }),
  };
}

function partOf(picture: Picture): Fields {
  if ("url" in picture)
    throw badRequest("image", "must be a file or a data URL for this provider, not an address.");
  const { file } = picture;
  return { inlineData: { mimeType: file.type ?? "image/png", data: new InlineFile(file.content) } };
}

function encodeForGemini(request: ImageRequest, { route }: AdaptedRoute): ImageExchange {
  if (request.mask !== undefined)
    throw badRequest("mask", "is not taken by Gemini models; describe the place in the prompt.");
  const { ratio, tier, losses } = sizeIn(request, geminiRatios);
  const imageConfig = withoutUndefined<Fields>({ aspectRatio: ratio, imageSize: tier });
  const json = {
    contents: [
      { role: "user", parts: [{ text: request.prompt }, ...request.pictures.map(partOf)] },
    ],
    generationConfig: {
      responseModalities: ["TEXT", "IMAGE"],
      ...(Object.keys(imageConfig).length > 0 && { imageConfig }),
    },
  };
  return {
    path: `/${googleModelName(route.upstreamModel)}:generateContent`,
    bodies: Array.from({ length: request.count }, () => jsonBody(json)),
    losses: [...losses, ...lossesOf(request, ["n", "size", "aspect_ratio", "resolution"])],
    read: (body) => readGemini(body, request.size ?? tier),
  };
}

/** Reads an answer of Gemini. Drafts among its thoughts are neither shown nor counted. */
function readGemini(body: object, size: string | undefined): ReadPictures | undefined {
  const { candidates, usageMetadata, promptFeedback } = fieldsOf(body);
  const list = listOf(candidates) ?? (promptFeedback === undefined ? undefined : []);
  if (list === undefined) return undefined;
  const pictures: MadePicture[] = [];
  let withheld = fieldsOf(promptFeedback)["blockReason"];
  for (const candidate of list) {
    const { content, finishReason } = fieldsOf(candidate);
    if (finishReason !== "STOP") withheld ??= finishReason;
    for (const part of listOf(fieldsOf(content)["parts"]) ?? []) {
      const { inlineData, thought } = fieldsOf(part);
      const { data, mimeType } = fieldsOf(inlineData);
      if (thought === true || typeof data !== "string") continue;
      pictures.push({ base64: data, ...(typeof mimeType === "string" && { type: mimeType }) });
    }
  }
  return {
    pictures,
    tokens: geminiTokens(usageMetadata),
    kind: size === undefined ? {} : { size },
    shown: {},
    ...(typeof withheld === "string" && { withheld }),
  };
}

/** Returns the tokens of an answer. Where they have no modalities, those of the answer are pictures. */
function geminiTokens(written: unknown): CountedTokens | undefined {
  const metered = readUsage(written);
  if (metered === undefined) return undefined;
  const { usage, clamped } = metered;
  const { outputTokens, ...rest } = usage;
  const isOpen = usage.outputImageTokens === undefined && outputTokens !== undefined;
  return {
    usage: isOpen ? { ...rest, outputImageTokens: outputTokens } : usage,
    clamped,
  };
}
