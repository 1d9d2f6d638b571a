import { badField, GatewayError } from "../../../platform/kernel/errors.ts";
import { isLongerThan } from "../../../platform/kernel/schema-problems.ts";
import type { Loss } from "../../canonical/request.ts";
import { parseDataUrl } from "../../dialects/shared/openai-fields.ts";
import {
  gatewayMembers,
  listOf,
  requireFields,
  type Fields,
  flagIn,
  isAbsent,
  textIn,
} from "../read-fields.ts";
import { inMemory, type Upload } from "../media/uploads.ts";
import { fieldsOf } from "../../../platform/kernel/json/json-members.ts";

/** What is asked for: pictures of a prompt, changes of pictures, or variations of one. */
export type ImageOperation = "generations" | "edits" | "variations";

/** A picture that a request brings: a file, or the address of one. */
export type Picture = { file: Omit<Upload, "field"> } | { url: string };

/** A request for pictures, read and checked. */
export interface ImageRequest {
  operation: ImageOperation;
  /** The form of the answer: that of OpenAI's Images API, or of OpenRouter's `POST /images`. */
  form: "openai" | "openrouter";
  model: string;
  /** Empty for variations. */
  prompt: string;
  /** The number of pictures, 1 to 10. */
  count: number;
  size: string | undefined;
  quality: string | undefined;
  aspectRatio: string | undefined;
  stream: boolean;
  /** The number of partial pictures in a stream. */
  partials: number;
  /** The form of pictures in the answer; undefined where none was asked for. */
  answersIn: "url" | "b64_json" | undefined;
  /** Such as `png`; undefined where none was asked for. */
  outputFormat: string | undefined;
  pictures: readonly Picture[];
  mask: Picture | undefined;
  /** A transparent picture over the first one, whose strokes show what is to change. */
  markup: Picture | undefined;
  /** The members of the request, without those that the gateway reads itself. */
  fields: Fields;
  /** What is lost of it at every provider; absent where nothing is. */
  losses?: readonly Loss[];
}

/** Members that the gateway reads itself, and providers do not know. */
const ownMembers: ReadonlySet<string> = new Set([
  ...gatewayMembers,
  "prompt",
  "image",
  "images",
  "input_references",
  "mask",
  "markup",
  "stream",
]);

/** The most characters of a prompt (OpenAI's reference of `images.generate`). */
const promptCharactersMax = 32_000;
const countMax = 10;
/** The most pictures that a request brings (OpenAI's reference of `images.edit`). */
export const picturesMax = 16;

const choices: Readonly<Record<string, readonly string[]>> = {
  quality: ["auto", "low", "medium", "high", "xhigh", "max", "standard", "hd"],
  background: ["auto", "opaque", "transparent"],
  output_format: ["png", "jpeg", "webp", "gif", "svg"],
  moderation: ["auto", "low"],
  complexity: ["low", "medium", "high"],
  style: ["vivid", "natural"],
  response_format: ["url", "b64_json"],
  input_fidelity: ["low", "high"],
};

const ranges: Readonly<Record<string, readonly [least: number, most: number]>> = {
  n: [1, countMax],
  output_compression: [0, 100],
  partial_images: [0, 3],
  frame_count: [2, 16],
  frame_duration_ms: [1, 655_350],
};

/** Returns a number, which forms write as text. Throws `bad_request` outside of its range. */
function numberIn(body: Fields, name: string): number | undefined {
  const value = body[name];
  if (isAbsent(value)) return undefined;
  const number = typeof value === "string" ? Number(value) : value;
  const [least, most] = ranges[name] ?? [0, 0];
  if (typeof number === "number" && Number.isInteger(number) && number >= least && number <= most)
    return number;
  throw badField(name, `must be an integer from ${least} to ${most}.`);
}

function choiceIn(body: Fields, name: string): string | undefined {
  const value = body[name];
  if (isAbsent(value)) return undefined;
  const allowed = choices[name] ?? [];
  if (typeof value === "string" && allowed.includes(value)) return value;
  throw badField(name, `must be one of ${allowed.join(", ")}.`);
}

/** Reads the picture of a member: a data URL, an address, or an object with either. */
function pictureOf(value: unknown, param: string): Picture {
  const written = typeof value === "string" ? value : undefined;
  const { image_url: nested, url } = fieldsOf(value);
  const found = written ?? url ?? (typeof nested === "string" ? nested : fieldsOf(nested)["url"]);
  if (typeof found !== "string")
    throw badField(
      param,
      "must name a picture by a data URL, an https URL or the file_id of a file of the workspace.",
    );
  const inline = parseDataUrl(found);
  if (inline !== undefined) {
    const bytes = Buffer.from(inline.data, "base64");
    const type = inline.mediaType;
    const filename = `image.${type.slice(type.indexOf("/") + 1)}`;
    return { file: { filename, type, content: inMemory(bytes) } };
  }
  if (/^https?:\/\//i.test(found)) return { url: found };
  throw badField(param, "must be a data URL with base64, or an https URL.");
}

/** Names of a form's field of a picture: `image`, and the lists that other clients write. */
const pictureField = /^images?(?:\[\d*\])?$/;

/** Matches fields of the pictures that lie over the first one. */
const overlayField = /^(mask|markup)(?:\[\])?$/;

/** Throws for files that would not be read: a mask that is left out would cost a whole picture. */
function checkUploads(uploads: readonly Upload[]): void {
  const overlays = new Set<string>();
  for (const { field } of uploads) {
    if (pictureField.test(field)) continue;
    const [, name] = overlayField.exec(field) ?? [];
    if (name === undefined)
      throw badField(field, "is no file of this request; it takes image, mask and markup.");
    if (overlays.has(name)) throw badField(name, "may be sent once.");
    overlays.add(name);
  }
}

/** Returns the pictures of a request: files of a form, or members of JSON. */
function picturesOf(body: Fields, uploads: readonly Upload[]): Picture[] {
  const files = uploads
    .filter(({ field }) => pictureField.test(field))
    .map(({ field: _, ...file }): Picture => ({ file }));
  if (files.length > 0) return files;
  for (const name of ["images", "image", "input_references"]) {
    const value = body[name];
    if (isAbsent(value)) continue;
    const list = listOf(value) ?? [value];
    return list.map((entry, index) => pictureOf(entry, `${name}[${index}]`));
  }
  return [];
}

/** Returns the picture of a member that lies over the first one: `mask` or `markup`. */
function overlayOf(
  name: "mask" | "markup",
  { body, uploads }: { body: Fields; uploads: readonly Upload[] },
): Picture | undefined {
  const upload = uploads.find(({ field }) => overlayField.exec(field)?.[1] === name);
  if (upload !== undefined) {
    const { field: _, ...file } = upload;
    return { file };
  }
  return isAbsent(body[name]) ? undefined : pictureOf(body[name], name);
}

/** Returns a member as JSON has it; forms write numbers as text. */
const memberOf = (body: Fields, name: string): unknown =>
  Object.hasOwn(ranges, name) ? numberIn(body, name) : body[name];

/** Members that a picture of several frames, and a drawing, are not made with. */
const excludedBy: Readonly<Record<string, readonly string[]>> = {
  gif: ["mask", "output_compression"],
  svg: ["output_compression"],
};

/** Throws for members that exclude each other (OpenAI's reference of `images.generate`). */
function checkTogether(
  body: Fields,
  { stream, count, uploads }: { stream: boolean; count: number; uploads: readonly Upload[] },
): void {
  const { background, output_format: format } = body;
  if (background === "transparent" && !["png", "webp", undefined, null].includes(format as string))
    throw badField("background", "transparent needs output_format png or webp.");
  if (format === "svg" && (stream || count > 1))
    throw badField("output_format", "svg is made one at a time and not streamed.");
  if (format === "gif" && stream) throw badField("output_format", "gif is not streamed.");
  for (const name of excludedBy[String(format)] ?? [])
    if (
      !isAbsent(body[name]) ||
      uploads.some(({ field }) => overlayField.exec(field)?.[1] === name)
    )
      throw badField(name, `cannot be combined with output_format ${String(format)}.`);
  if (format !== "gif") {
    for (const name of ["frame_count", "frame_duration_ms"])
      if (!isAbsent(body[name])) throw badField(name, "needs output_format gif.");
  }
  if (format !== "svg" && !isAbsent(body["svg"])) throw badField("svg", "needs output_format svg.");
  if (!isAbsent(body["partial_images"]) && Number(body["partial_images"]) > 0 && !stream)
    throw badField("partial_images", "needs stream: true.");
}

/** How much the author of an SVG may think (npm openai 7.59, `ImageGenerateParams.Svg`). */
const efforts: readonly unknown[] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/** Throws for a wrong author of an SVG. */
function checkSvg(svg: unknown): void {
  if (isAbsent(svg)) return;
  const { model, reasoning } = fieldsOf(svg);
  if (typeof svg !== "object" || (!isAbsent(model) && typeof model !== "string"))
    throw badField("svg", "must be an object with the name of a model.");
  const { effort } = fieldsOf(reasoning);
  if (!isAbsent(effort) && !efforts.includes(effort))
    throw badField("svg.reasoning.effort", `must be one of ${efforts.join(", ")}.`);
}

/** Throws where an operation lacks pictures, or has more than it takes. */
function checkPictures(operation: ImageOperation, pictures: readonly Picture[]): void {
  if (operation === "generations") return;
  if (pictures.length === 0)
    throw new GatewayError("missing_required_fields", "The request must have image.", {
      param: "image",
      metadata: { missing_fields: ["image"] },
    });
  const most = operation === "variations" ? 1 : picturesMax;
  if (pictures.length > most) throw badField("image", `may be sent at most ${most} times.`);
}

/** Throws for a mask or markup without a picture below it, and for both together. */
function checkOverlays(
  overlays: Pick<ImageRequest, "mask" | "markup">,
  pictures: readonly Picture[],
): void {
  for (const name of ["mask", "markup"] as const) {
    if (overlays[name] !== undefined && pictures.length === 0)
      throw badField(name, "needs an image; call /images/edits.");
  }
  if (overlays.mask !== undefined && overlays.markup !== undefined)
    throw badField("markup", "cannot be combined with mask; send one of them.");
}

/** Reads and checks a request for pictures. Throws `GatewayError` that names the field. */
export function readImageRequest(
  body: Fields,
  {
    operation,
    form = "openai",
    uploads = [],
  }: { operation: ImageOperation; form?: ImageRequest["form"]; uploads?: readonly Upload[] },
): ImageRequest {
  requireFields(body, operation === "variations" ? ["model"] : ["model", "prompt"]);
  const model = textIn(body, "model") ?? "";
  const prompt = textIn(body, "prompt") ?? "";
  if (isLongerThan(prompt, promptCharactersMax))
    throw badField("prompt", `may have at most ${promptCharactersMax} characters.`);
  for (const name of Object.keys(choices)) choiceIn(body, name);
  for (const name of Object.keys(ranges)) numberIn(body, name);
  for (const name of ["user", "safety_identifier"]) textIn(body, name);
  checkSvg(body["svg"]);
  checkUploads(uploads);
  const count = numberIn(body, "n") ?? 1;
  const stream = flagIn(body, "stream");
  checkTogether(body, { stream, count, uploads });
  checkRatio(body, form);
  const pictures = picturesOf(body, uploads);
  checkPictures(operation === "generations" && pictures.length > 0 ? "edits" : operation, pictures);
  const mask = overlayOf("mask", { body, uploads });
  const markup = overlayOf("markup", { body, uploads });
  checkOverlays({ mask, markup }, pictures);
  return {
    operation: operation === "generations" && pictures.length > 0 ? "edits" : operation,
    form,
    model,
    prompt,
    count,
    size: sizeOf(body),
    quality: choiceIn(body, "quality"),
    aspectRatio: textIn(body, "aspect_ratio"),
    stream,
    partials: numberIn(body, "partial_images") ?? 0,
    answersIn: choiceIn(body, "response_format") as ImageRequest["answersIn"],
    outputFormat: choiceIn(body, "output_format"),
    pictures,
    mask,
    markup,
    fields: Object.fromEntries(
      Object.keys(body)
        .filter((name) => !ownMembers.has(name) && !isAbsent(body[name]))
        .map((name) => [name, memberOf(body, name)]),
    ),
  };
}

/** Returns a request whose pictures come in base64, since none of them may be hosted. */
export function withoutAddresses(request: ImageRequest): ImageRequest {
  const { answersIn, fields } = request;
  return {
    ...request,
    answersIn: "b64_json",
    ...(answersIn === "url" && {
      fields: { ...fields, response_format: "b64_json" },
      losses: [
        { field: "response_format", reason: "with zero data retention, no picture is hosted" },
      ],
    }),
  };
}

/** Returns the size: pixels, `auto`, or a tier such as `2K` that OpenRouter's clients name. */
function sizeOf(body: Fields): string | undefined {
  const size = textIn(body, "size");
  const tier = textIn(body, "resolution");
  const found = size ?? tier;
  if (found === undefined) return undefined;
  if (!/^(?:auto|[1-9]\d{1,4}x[1-9]\d{1,4}|\d(?:\.\d)?k|\d{3,4})$/i.test(found))
    throw badField(
      size === undefined ? "resolution" : "size",
      "must be auto, pixels such as 1024x1024, or a tier such as 2K.",
    );
  if (size !== undefined && tier !== undefined && size.toLowerCase() !== tier.toLowerCase())
    throw badField("resolution", "contradicts size; send one of them.");
  return found;
}

/** Returns width and height in pixels; undefined where a size does not name them. */
export function pixelsOf(size: string | undefined): readonly [number, number] | undefined {
  const [, width, height] = /^(\d+)x(\d+)$/i.exec(size ?? "") ?? [];
  return width === undefined ? undefined : [Number(width), Number(height)];
}

/** Matches a ratio such as `16:9` or `2.35:1`. */
const ratioPattern = /^(\d{1,4}(?:\.\d{1,2})?):(\d{1,4}(?:\.\d{1,2})?)$/;

/** Returns width by height of a ratio such as `16:9`; undefined for what is none. */
export function ratioOf(written: string | undefined): number | undefined {
  const [, width, height] = ratioPattern.exec(written ?? "") ?? [];
  const ratio = Number(width) / Number(height);
  return ratio > 0 && Number.isFinite(ratio) ? ratio : undefined;
}

/** How far pixels may be from a ratio that they stand for, since sides are whole. */
const ratioTolerance = 0.03;

/** Throws where OpenRouter's clients name pixels, and a ratio that those have not. */
function checkRatio(body: Fields, form: ImageRequest["form"]): void {
  const ratio = ratioOf(textIn(body, "aspect_ratio"));
  const [width, height] = pixelsOf(textIn(body, "size")) ?? [];
  if (form !== "openrouter" || ratio === undefined || !width || !height) return;
  if (Math.abs(Math.log(width / height / ratio)) > ratioTolerance)
    throw badField("aspect_ratio", "contradicts size; send one of them.");
}
