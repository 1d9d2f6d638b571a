import type { DocumentPart, ImagePart, MediaSource, TextPart } from "../../canonical/content.ts";
import type { JsonValue } from "../../canonical/json.ts";
import type { UserPart } from "../../canonical/message.ts";
import { mediaSource } from "../data-url.ts";
import { decodeCache, decodeSound, fileBytes, markerFields } from "../decode-openai-fields.ts";
import { asString, badRequest, RequestFields } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";

const knownFields = {
  text: new Set(["type", "text", ...markerFields]),
  image: new Set(["type", "image_url", ...markerFields]),
  audio: new Set(["type", "input_audio", ...markerFields]),
  file: new Set(["type", "file", ...markerFields]),
};

/** Content as fields, one for each part; a string is one text part, and nothing is none. */
export function contentParts(fields: RequestFields): RequestFields[] {
  const { content } = fields.object;
  const path = fields.pathOf("content");
  if (content === undefined || content === null || content === "") return [];
  if (typeof content === "string")
    return [new RequestFields({ type: "text", text: content }, path)];
  if (!Array.isArray(content))
    throw badRequest(path, "must be a string or an array of content parts.");
  return content.map(
    (part: JsonValue, index) =>
      new RequestFields(
        typeof part === "string" ? { type: "text", text: part } : part,
        `${path}[${index}]`,
      ),
  );
}

/** Content that may be text only: instructions and the results of tools. */
export function decodeTexts(fields: RequestFields): TextPart[] {
  return contentParts(fields).map((part) => {
    const type = part.requiredString("type");
    if (type !== "text")
      throw badRequest(part.pathOf("type"), `must be "text" here, not "${type}".`);
    return decodeText(part);
  });
}

/** Content of a user's message; types that are not known are kept as they are. */
export const decodeUserContent = (fields: RequestFields): UserPart[] =>
  contentParts(fields).map(decodeUserPart);

function decodeUserPart(part: RequestFields): UserPart {
  switch (part.requiredString("type")) {
    case "text":
      return decodeText(part);
    case "image_url":
      return decodeImage(part);
    case "input_audio":
      return decodeAudio(part);
    case "file":
      return decodeFile(part);
    default:
      return { type: "opaque", dialect: "openai-chat", value: part.object };
  }
}

/** A text part; throws `bad_request` when its text is no string. */
export function decodeText(part: RequestFields): TextPart {
  return withoutUndefined<TextPart>({
    type: "text",
    text: part.requiredString("text"),
    cache: decodeCache(part),
    extensions: part.unknown("openai-chat", knownFields.text),
  });
}

function decodeImage(part: RequestFields): ImagePart {
  const shorthand = asString(part.object.image_url);
  const image = shorthand === undefined ? part.nested("image_url") : undefined;
  const url = shorthand ?? image?.requiredString("url");
  if (url === undefined)
    throw badRequest(
      part.pathOf("image_url"),
      'is required: {"url": "https://... or data:image/..."}.',
    );
  return withoutUndefined<ImagePart>({
    type: "image",
    source: mediaSource(url),
    detail: image?.string("detail"),
    cache: decodeCache(part),
    extensions: part.unknown("openai-chat", knownFields.image),
  });
}

function decodeAudio(part: RequestFields): UserPart {
  return withoutUndefined<Extract<UserPart, { type: "audio" }>>({
    ...decodeSound(part),
    cache: decodeCache(part),
    extensions: part.unknown("openai-chat", knownFields.audio),
  });
}

function decodeFile(part: RequestFields): DocumentPart {
  const file = part.nested("file");
  const fileId = file?.string("file_id");
  const data = file?.string("file_data");
  if (fileId === undefined && data === undefined)
    throw badRequest(part.pathOf("file"), "needs file_data or file_id.");
  return withoutUndefined<DocumentPart>({
    type: "document",
    source: data === undefined ? { type: "file", fileId: fileId ?? "" } : fileSource(data),
    title: file?.string("filename"),
    cache: decodeCache(part),
    extensions: part.unknown("openai-chat", knownFields.file),
  });
}

/** Bytes; some servers take addresses too. */
const fileSource = (data: string): MediaSource =>
  /^https?:\/\//i.test(data) ? { type: "url", url: data } : fileBytes(data);
