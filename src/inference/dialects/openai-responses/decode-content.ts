import type { DocumentPart, ImagePart, MediaSource, TextPart } from "../../canonical/content.ts";
import type { JsonValue } from "../../canonical/json.ts";
import type { AssistantPart, ToolResultPart, UserPart } from "../../canonical/message.ts";
import { mediaSource } from "../data-url.ts";
import { decodeCache, decodeSound, fileBytes, markerFields } from "../decode-openai-fields.ts";
import { badRequest, RequestFields } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { decodeAnnotations } from "./annotation-fields.ts";

const knownFields = {
  text: new Set(["type", "text", "annotations", "logprobs", ...markerFields]),
  image: new Set(["type", "image_url", "file_id", "detail", ...markerFields]),
  audio: new Set(["type", "input_audio", ...markerFields]),
  file: new Set(["type", "file_data", "file_id", "file_url", "filename", ...markerFields]),
};

/** A member that is text or parts, as parts: `content` of a message, `output` of a result. */
export function contentParts(fields: RequestFields, key: string): RequestFields[] {
  const content = fields.object[key];
  const path = fields.pathOf(key);
  if (content === undefined || content === null || content === "") return [];
  if (typeof content === "string")
    return [new RequestFields({ type: "input_text", text: content }, path)];
  if (!Array.isArray(content))
    throw badRequest(path, "must be a string or an array of content parts.");
  return content.map(
    (part: JsonValue, index) =>
      new RequestFields(
        typeof part === "string" ? { type: "input_text", text: part } : part,
        `${path}[${index}]`,
      ),
  );
}

const isText = (type: string): boolean =>
  type === "input_text" || type === "output_text" || type === "text" || type === "summary_text";

/** Content of instructions: text alone. */
export function decodeInstructions(message: RequestFields): TextPart[] {
  return contentParts(message, "content").map((part) => {
    const type = part.requiredString("type");
    if (!isText(type))
      throw badRequest(part.pathOf("type"), `must be "input_text" here, not "${type}".`);
    return decodeText(part);
  });
}

/** A part of a user's message; types that are not known are kept as they are. */
export function decodeUserPart(part: RequestFields): UserPart {
  const type = part.requiredString("type");
  if (isText(type)) return decodeText(part);
  switch (type) {
    case "input_image":
      return decodeImage(part);
    case "input_file":
      return decodeFile(part);
    case "input_audio":
      return decodeAudio(part);
    default:
      return { type: "opaque", dialect: "openai-responses", value: part.object };
  }
}

/** A part of the model's message. */
export function decodeAssistantPart(part: RequestFields): AssistantPart {
  const type = part.requiredString("type");
  if (isText(type)) return decodeText(part);
  if (type === "refusal") return { type: "refusal", refusal: part.requiredString("refusal") };
  return { type: "opaque", dialect: "openai-responses", value: part.object };
}

/** A part of a tool's result. */
export function decodeResultPart(part: RequestFields): ToolResultPart {
  const decoded = decodeUserPart(part);
  if (decoded.type === "audio")
    throw badRequest(
      part.pathOf("type"),
      "must be text, an image or a file; tool results carry no audio.",
    );
  return decoded;
}

function decodeText(part: RequestFields): TextPart {
  return withoutUndefined<TextPart>({
    type: "text",
    text: part.requiredString("text"),
    annotations: decodeAnnotations(part.object.annotations),
    cache: decodeCache(part),
    extensions: part.unknown("openai-responses", knownFields.text),
  });
}

function decodeImage(part: RequestFields): ImagePart {
  const url = part.string("image_url");
  const fileId = part.string("file_id");
  if (url === undefined && fileId === undefined) {
    throw badRequest(
      part.pathOf("image_url"),
      "is required: an address or a data URL, or a file_id.",
    );
  }
  return withoutUndefined<ImagePart>({
    type: "image",
    source: url === undefined ? { type: "file", fileId: fileId ?? "" } : mediaSource(url),
    detail: part.string("detail"),
    cache: decodeCache(part),
    extensions: part.unknown("openai-responses", knownFields.image),
  });
}

function decodeAudio(part: RequestFields): UserPart {
  return withoutUndefined<Extract<UserPart, { type: "audio" }>>({
    ...decodeSound(part),
    cache: decodeCache(part),
    extensions: part.unknown("openai-responses", knownFields.audio),
  });
}

function decodeFile(part: RequestFields): DocumentPart {
  return withoutUndefined<DocumentPart>({
    type: "document",
    source: fileSource(part),
    title: part.string("filename"),
    cache: decodeCache(part),
    extensions: part.unknown("openai-responses", knownFields.file),
  });
}

function fileSource(part: RequestFields): MediaSource {
  const data = part.string("file_data");
  if (data !== undefined) return fileBytes(data);
  const url = part.string("file_url");
  if (url !== undefined) return { type: "url", url };
  const fileId = part.string("file_id");
  if (fileId === undefined) throw badRequest(part.path, "needs file_data, file_url or file_id.");
  return { type: "file", fileId };
}
