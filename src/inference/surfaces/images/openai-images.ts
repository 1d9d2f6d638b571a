import { badField } from "../../../platform/kernel/errors.ts";
import type { Loss } from "../../canonical/request.ts";
import { withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import type { AdaptedRoute } from "../../pipeline/inference-call.ts";
import { listOf, type Fields } from "../read-fields.ts";
import { encodeForm, formFieldsOf, type FormField } from "../media/uploads.ts";
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
import { readAuthored, readImageUsage } from "./image-usage.ts";
import { inPixels } from "./openai-size.ts";
import { fieldsOf } from "../../../platform/kernel/json/json-members.ts";

/**
 * OpenAI's Images API, and the servers that resemble it. Source:
 * https://platform.openai.com/docs/api-reference/images
 */
export const openaiImages: ImageDialect = {
  encode(request, route) {
    const { pictures } = route.route.provider.deviations;
    if (pictures === "aspect-ratio") return encodeForXai(request, route);
    if (pictures === "width-height") return encodeForTogether(request, route);
    return encodeForOpenai(request, route);
  },
};

/** Returns whether a name is one of OpenAI's own models; other servers have other bounds. */
export const isGptImage = (name: string): boolean => /^(?:gpt-image-|chatgpt-image)/.test(name);

/** GPT image models of the first generation know three sizes; later ones any (npm openai 7.55). */
const isFirstGeneration = (name: string): boolean =>
  /^(?:gpt-image-1(?:[.-]|$)|chatgpt-image)/.test(name);

/** Returns the sizes that a model of OpenAI's knows; undefined where it takes any. */
export const sizesOf = (name: string): readonly string[] | undefined => {
  if (name.startsWith("dall-e-2")) return ["256x256", "512x512", "1024x1024"];
  if (name.startsWith("dall-e-3")) return ["1024x1024", "1792x1024", "1024x1792"];
  return isFirstGeneration(name) ? ["auto", "1024x1024", "1536x1024", "1024x1536"] : undefined;
};

/** Throws for what OpenAI's page of a model says that it refuses. */
function checkBounds(name: string, request: ImageRequest): void {
  const { size, count, prompt, operation } = request;
  const sizes = sizesOf(name);
  if (size !== undefined && sizes !== undefined && !sizes.includes(size.toLowerCase()))
    throw badField("size", `${name} makes ${sizes.join(", ")}.`);
  if (name.startsWith("dall-e-3") && count > 1) throw badField("n", `${name} makes one at a time.`);
  if (name.startsWith("dall-e-3") && operation !== "generations")
    throw badField("model", `${name} changes no pictures; use a GPT image model.`);
  const longest = name.startsWith("dall-e-2") ? 1_000 : name.startsWith("dall-e-3") ? 4_000 : null;
  if (longest !== null && prompt.length > longest)
    throw badField("prompt", `${name} takes at most ${longest} characters.`);
  checkQuality(name, request);
  if (!isGptImage(name)) return;
  if (operation === "variations")
    throw badField("model", `${name} makes no variations; call /images/edits, or use dall-e-2.`);
  if (sizes === undefined) checkFreeSize(name, size);
  checkGptImage(name, request);
}

/** Returns the qualities of a model; undefined for models of other servers. */
export function qualitiesOf(name: string): readonly string[] | undefined {
  if (name.startsWith("dall-e-2")) return ["auto", "standard"];
  if (name.startsWith("dall-e-3")) return ["auto", "standard", "hd"];
  if (!isGptImage(name)) return undefined;
  return /^gpt-image-2\.[5-9]/.test(name)
    ? ["auto", "low", "medium", "high", "xhigh", "max"]
    : ["auto", "low", "medium", "high"];
}

function checkQuality(name: string, { quality }: ImageRequest): void {
  const known = qualitiesOf(name);
  if (quality !== undefined && known !== undefined && !known.includes(quality))
    throw badField("quality", `${name} knows ${known.join(", ")}.`);
}

/** Throws for what GPT image models refuse (npm openai 7.59, types of images). */
function checkGptImage(
  name: string,
  { fields, outputFormat, pictures, markup }: ImageRequest,
): void {
  const { output_compression: compression, input_fidelity: fidelity } = fields;
  const isCompressed = outputFormat === "jpeg" || outputFormat === "webp";
  if (compression !== undefined && compression !== 100 && !isCompressed)
    throw badField("output_compression", "needs output_format jpeg or webp.");
  if (name.startsWith("gpt-image-1-mini") && fidelity === "high")
    throw badField("input_fidelity", `${name} knows low alone.`);
  if (markup !== undefined && !/^gpt-image-2\.[5-9]/.test(name))
    throw badField("markup", `${name} takes none; use mask, or a model of GPT Image 2.5.`);
  if (pictures.some((picture) => "file" in picture && picture.file.type === "image/gif"))
    throw badField("image", `${name} takes PNG, JPEG and WebP files.`);
}

function checkFreeSize(name: string, size: string | undefined): void {
  const [width, height] = pixelsOf(size) ?? [];
  if (width === undefined || height === undefined) return;
  if (width % 16 !== 0 || height % 16 !== 0)
    throw badField("size", `${name} takes sides that are multiples of 16.`);
  if (width > 3 * height || height > 3 * width)
    throw badField("size", `${name} takes ratios from 1:3 to 3:1.`);
  if (Math.max(width, height) > 3_840 || Math.min(width, height) > 2_160)
    throw badField("size", `${name} makes at most 3840x2160.`);
}

/** Throws for an SVG where pictures alone have a price: its author is billed by the token. */
function checkAuthor({ outputFormat }: ImageRequest, { price }: AdaptedRoute["route"]): void {
  if (outputFormat !== "svg" || price === undefined) return;
  const { outputImages = 0n, outputImageTokens, outputTokens } = price.base;
  if (outputImages > 0n && (outputImageTokens ?? outputTokens) === 0n)
    throw badField(
      "output_format",
      "svg is written by a model that is billed by the token, which has no price here. Choose another format, or ask the operator, " +
        "who sets pricing.image_output of the model.",
    );
}

/** Members that a model answers with 400, by its name. */
const refusedBy = (name: string): readonly string[] => {
  if (isGptImage(name))
    return isFirstGeneration(name)
      ? ["response_format", "style"]
      : ["response_format", "style", "input_fidelity"];
  if (name.startsWith("dall-e"))
    return ["background", "output_format", "output_compression", "moderation", "partial_images"];
  return [];
};

function encodeForOpenai(asked: ImageRequest, { route }: AdaptedRoute): ImageExchange {
  const { upstreamModel } = route;
  const sizes = sizesOf(upstreamModel);
  const isOwn = sizes !== undefined || isGptImage(upstreamModel);
  const { request, losses: unsized } = isOwn
    ? inPixels(asked, sizes)
    : { request: asked, losses: [] };
  checkBounds(upstreamModel, request);
  checkAuthor(request, route);
  const refused = refusedBy(upstreamModel);
  const isOld = upstreamModel.startsWith("dall-e");
  const fields = Object.fromEntries(
    Object.entries(request.fields).filter(([name]) => !refused.includes(name)),
  );
  // GPT image models answer in base64 alone, from which a requested address is made here.
  const losses: Loss[] = refused
    .filter((name) => name in request.fields && name !== "response_format")
    .map((field): Loss => ({ field, reason: `${upstreamModel} does not take it` }));
  const members = withoutUndefined<Fields>({
    ...fields,
    model: upstreamModel,
    prompt: request.operation === "variations" ? undefined : request.prompt,
    // Models of before make no streams: their answer becomes one here, whose events have base64.
    stream: request.stream && !isOld ? true : undefined,
    ...(request.stream && isOld && { response_format: "b64_json" }),
  });
  const links = request.pictures.some((picture) => "url" in picture);
  return {
    path: `/images/${request.operation}`,
    bodies: [
      request.operation === "generations"
        ? jsonBody(members)
        : links
          ? jsonBody({ ...members, ...linkedPictures(request) })
          : encodeForm(formOf(request, members)),
    ],
    losses: [...unsized, ...losses],
    read: (body) => readOpenai(body, request),
  };
}

/** Returns the members of a request whose pictures stand elsewhere and are read by the provider. */
function linkedPictures({ pictures, mask, markup }: ImageRequest): Fields {
  const linkOf = (picture: Picture): Fields => {
    if ("url" in picture) return { image_url: picture.url };
    throw badField("images", "must all be https URLs, or all be files or data URLs.");
  };
  return {
    images: pictures.map(linkOf),
    ...(mask && { mask: linkOf(mask) }),
    ...(markup && { markup: linkOf(markup) }),
  };
}

/** Returns the form of an edit: one picture as `image`, several as `image[]`, as OpenAI's SDKs do. */
function formOf({ pictures, mask, markup }: ImageRequest, members: Fields): FormField[] {
  const name = pictures.length === 1 ? "image" : "image[]";
  const files = [
    ...pictures.map((picture) => [name, picture] as const),
    ...(mask ? [["mask", mask] as const] : []),
    ...(markup ? [["markup", markup] as const] : []),
  ];
  return [
    ...Object.entries(members).flatMap(([key, value]) => formFieldsOf(key, value)),
    ...files.flatMap(([field, picture]): FormField[] =>
      "file" in picture ? [[field, picture.file]] : [],
    ),
  ];
}

/** Reads an answer of OpenAI's form. */
function readOpenai(body: object, { pictures }: ImageRequest): ReadPictures | undefined {
  const { created, data, usage, ...rest } = fieldsOf(body);
  const list = listOf(data);
  if (list === undefined) return undefined;
  const made = list.flatMap((entry): MadePicture[] => {
    const {
      b64_json: base64,
      url,
      revised_prompt: revisedPrompt,
      media_type: type,
    } = fieldsOf(entry);
    const picture = withoutUndefined<MadePicture>({
      base64: typeof base64 === "string" && base64 !== "" ? base64 : undefined,
      url: typeof url === "string" && url !== "" ? url : undefined,
      type: typeof type === "string" ? type : undefined,
      revisedPrompt: typeof revisedPrompt === "string" ? revisedPrompt : undefined,
    });
    return picture.base64 === undefined && picture.url === undefined ? [] : [picture];
  });
  const text = (name: string): string | undefined =>
    typeof rest[name] === "string" ? (rest[name] as string) : undefined;
  const authored = readAuthored(rest["svg_usage"]);
  return {
    pictures: made,
    ...(authored !== undefined && { authored }),
    ...(typeof created === "number" && { createdAtSeconds: created }),
    tokens: readImageUsage(usage, { hasPictures: pictures.length > 0 }),
    kind: withoutUndefined({ size: text("size"), quality: text("quality") }),
    shown: withoutUndefined<Fields>({
      background: rest["background"],
      output_format: rest["output_format"],
      quality: rest["quality"],
      size: rest["size"],
      safety_identifier: rest["safety_identifier"],
      svg_usage: rest["svg_usage"],
    }),
  };
}

/** Returns a file as a data URL within JSON. */
const inlineOf = ({ file }: Extract<Picture, { file: unknown }>): InlineFile =>
  new InlineFile(file.content, file.type ?? "image/png");

/** Returns the members that are sent, and a loss for each that is not. */
function kept({ fields, markup }: ImageRequest, names: readonly string[], vendor: string) {
  const isKept = ([name]: readonly [string, unknown]): boolean => names.includes(name);
  const entries = Object.entries({ ...fields, ...(markup && { markup }) });
  return {
    fields: Object.fromEntries(entries.filter(isKept)),
    losses: entries
      .filter((entry) => !isKept(entry) && entry[0] !== "response_format")
      .map(([field]): Loss => ({ field, reason: `${vendor} has no such field` })),
  };
}

const asRatio: Loss = { field: "size", reason: "sent as the nearest aspect ratio" };

/** Aspect ratios of xAI. Source: https://docs.x.ai/docs/guides/image-generations */
export const xaiRatios = [
  "auto",
  "1:1",
  "16:9",
  "9:16",
  "4:3",
  "3:4",
  "3:2",
  "2:3",
  "2:1",
  "1:2",
  "19.5:9",
  "9:19.5",
  "20:9",
  "9:20",
];

/** xAI knows aspect ratios in place of sizes. */
function encodeForXai(request: ImageRequest, { route }: AdaptedRoute): ImageExchange {
  const { fields, losses } = kept(request, ["n", "aspect_ratio", "resolution", "user"], "xAI");
  const asked = knownRatio(request.aspectRatio, xaiRatios);
  const ratio = asked.ratio ?? nearestRatio(request.size);
  const pictures = request.pictures.map((picture) => {
    if ("url" in picture) return { url: picture.url, type: "image_url" };
    return { url: inlineOf(picture), type: "image_url" };
  });
  if (request.mask !== undefined) throw badField("mask", "xAI takes no masks.");
  const isTier = request.size !== undefined && /k$/i.test(request.size);
  const json = withoutUndefined<Fields>({
    ...fields,
    model: route.upstreamModel,
    prompt: request.prompt,
    aspect_ratio: ratio,
    resolution: isTier ? request.size?.toLowerCase() : fields["resolution"],
    response_format: request.stream ? "b64_json" : (request.answersIn ?? "b64_json"),
    ...(pictures.length === 1
      ? { image: pictures[0] }
      : pictures.length > 1 && { images: pictures }),
  });
  return {
    path: request.operation === "generations" ? "/images/generations" : "/images/edits",
    bodies: [jsonBody(json)],
    losses: [
      ...losses
        .filter(({ field }) => field !== "size" || !isTier)
        .map((loss) => (loss.field === "size" && ratio !== undefined ? asRatio : loss)),
      ...asked.losses,
    ],
    read: (body) => readOpenai(body, request),
  };
}

/** Together names width and height, and answers in base64 as `base64`. Source: npm together-ai 0.52 */
function encodeForTogether(request: ImageRequest, { route }: AdaptedRoute): ImageExchange {
  const names = [
    "n",
    "seed",
    "steps",
    "guidance_scale",
    "negative_prompt",
    "image_loras",
    "disable_safety_checker",
    "width",
    "height",
  ];
  const { fields, losses } = kept(request, names, "Together");
  const [width, height] = pixelsOf(request.size) ?? [];
  if (request.operation !== "generations" && request.mask !== undefined)
    throw badField("mask", "Together takes no masks.");
  const json = withoutUndefined<Fields>({
    ...fields,
    model: route.upstreamModel,
    prompt: request.prompt,
    width: width ?? fields["width"],
    height: height ?? fields["height"],
    response_format: request.answersIn === "url" && !request.stream ? "url" : "base64",
    output_format: ["jpeg", "png"].includes(request.outputFormat ?? "")
      ? request.outputFormat
      : undefined,
    reference_images:
      request.pictures.length === 0
        ? undefined
        : request.pictures.map((picture) => ("url" in picture ? picture.url : inlineOf(picture))),
  });
  return {
    path: "/images/generations",
    bodies: [jsonBody(json)],
    losses: losses.filter(
      ({ field }) =>
        (field !== "size" || width === undefined) &&
        (field !== "output_format" || json["output_format"] === undefined),
    ),
    read: (body) => readOpenai(body, request),
  };
}
