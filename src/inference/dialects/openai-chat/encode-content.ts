import type { DocumentPart, ImagePart, OpaquePart, TextPart } from "../../canonical/content.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { UserPart } from "../../canonical/message.ts";
import { dataUrl } from "../data-url.ts";
import { unsupportedContent } from "../request-fields.ts";
import type { EncodePlace } from "../encode-state.ts";

/** One part of a user's message; a document of several parts becomes several. */
export function encodeUserPart(part: UserPart, place: EncodePlace): JsonObject[] {
  switch (part.type) {
    case "text":
      return [encodeText(part, place)];
    case "image":
      return [encodeImage(part, place)];
    case "document":
      return encodeDocument(part, place);
    case "audio":
      return [
        {
          type: "input_audio",
          input_audio: { data: part.data, format: part.format },
          ...place.state.cacheFields(part.cache),
          ...place.extensionFields(part.extensions),
        },
      ];
    case "opaque":
      return [encodeOpaque(part, place)];
  }
}

/** A text part with its cache marker and its unknown fields. */
export function encodeText({ text, cache, extensions }: TextPart, place: EncodePlace): JsonObject {
  if (cache === undefined && extensions === undefined) return { type: "text", text };
  return {
    type: "text",
    text,
    ...place.state.cacheFields(cache),
    ...place.extensionFields(extensions),
  };
}

function encodeImage(part: ImagePart, place: EncodePlace): JsonObject {
  const { source, detail } = part;
  if (source.type === "file") {
    throw unsupportedContent(
      place.path,
      "names an uploaded image, which this model's provider cannot read; send the image's bytes or address.",
    );
  }
  const url = source.type === "url" ? source.url : dataUrl(source);
  return {
    type: "image_url",
    image_url: { url, ...(detail !== undefined && { detail }) },
    ...place.state.cacheFields(part.cache),
    ...place.extensionFields(part.extensions),
  };
}

function encodeDocument(part: DocumentPart, place: EncodePlace): JsonObject[] {
  if (part.citations === true) place.at(".citations").lose("chat models are not asked to cite");
  if (part.context !== undefined) place.at(".context").lose("chat files have no such field");
  const { source } = part;
  switch (source.type) {
    case "text":
      return [
        {
          type: "text",
          text: titled(part.title, source.text),
          ...place.state.cacheFields(part.cache),
        },
      ];
    case "parts":
      return [
        ...(part.title === undefined ? [] : [{ type: "text", text: part.title }]),
        ...source.parts.flatMap((inner, index) =>
          encodeUserPart(inner, place.at(`.source[${index}]`)),
        ),
      ];
    default:
      return [
        {
          type: "file",
          file: { ...fileFields(part, place) },
          ...place.state.cacheFields(part.cache),
          ...place.extensionFields(part.extensions),
        },
      ];
  }
}

/** Documents of plain text have no type of their own in chat. */
const titled = (title: string | undefined, text: string): string =>
  title === undefined ? text : `${title}\n${text}`;

function fileFields(part: DocumentPart, place: EncodePlace): JsonObject {
  const { source, title } = part;
  const filename = title ?? (place.state.sameDialect ? undefined : "document.pdf");
  const named = filename === undefined ? {} : { filename };
  if (source.type === "base64") return { file_data: dataUrl(source), ...named };
  if (source.type === "file" && place.state.sameDialect)
    return { file_id: source.fileId, ...named };
  if (source.type === "url" && place.state.sameDialect) return { file_data: source.url, ...named };
  throw unsupportedContent(
    place.path,
    "is a document that this model's provider cannot fetch; send its bytes as base64.",
  );
}

/** A user's part of another dialect cannot be left out without changing what was asked. */
export function encodeOpaque(part: OpaquePart, place: EncodePlace): JsonObject {
  if (part.dialect === "openai-chat") return part.value;
  throw unsupportedContent(
    place.path,
    `has the type ${JSON.stringify(part.value.type)}, which this model's provider does not know.`,
  );
}
