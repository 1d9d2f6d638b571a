import type {
  DocumentPart,
  ImagePart,
  MediaSource,
  OpaquePart,
  TextPart,
} from "../../canonical/content.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { UserPart } from "../../canonical/message.ts";
import type { EncodePlace } from "../encode-state.ts";
import { unsupportedContent } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { cacheFields } from "./cache-fields.ts";
import { replayCitation } from "./citation-fields.ts";

/** A block of a user's message or of a tool's result; none for text that says nothing, which Anthropic answers with 400. */
export function encodeUserPart(part: UserPart, place: EncodePlace): JsonObject[] {
  switch (part.type) {
    case "text":
      return encodeText(part, place);
    case "image":
      return [encodeImage(part, place)];
    case "document":
      return [encodeDocument(part, place)];
    case "audio":
      throw unsupportedContent(
        place.path,
        "is sound, which this model's provider does not take; send its transcript.",
      );
    case "opaque":
      return [encodeOpaque(part, place)];
  }
}

/** A text block with its citations; none when it is blank. */
export function encodeText(part: TextPart, place: EncodePlace): JsonObject[] {
  if (part.text.trim() === "") return [];
  const { annotations = [], cache, extensions } = part;
  if (annotations.length === 0 && cache === undefined && extensions === undefined)
    return [{ type: "text", text: part.text }];
  const citations = annotations.flatMap(replayCitation);
  if (citations.length < annotations.length)
    place.at(".annotations").lose("citations of another dialect or of another model");
  return [
    {
      type: "text",
      text: part.text,
      ...(citations.length > 0 && { citations }),
      ...cacheFields(cache),
      ...place.extensionFields(extensions),
    },
  ];
}

/** One plain text as a string, which every server takes; blocks otherwise. */
export function plainOrBlocks(blocks: readonly JsonObject[]): JsonValue {
  const [first] = blocks;
  const plain = blocks.length === 1 && first?.type === "text" && Object.keys(first).length === 2;
  return plain && typeof first.text === "string" ? first.text : blocks;
}

function encodeImage(part: ImagePart, place: EncodePlace): JsonObject {
  if (part.detail !== undefined) place.at(".detail").lose("messages has no such field");
  return {
    type: "image",
    source: mediaSource(part.source, { place, data: imageBytes }),
    ...cacheFields(part.cache),
    ...place.extensionFields(part.extensions),
  };
}

interface SourceWriter {
  place: EncodePlace;
  /** Inline bytes as a source. */
  data(source: Extract<MediaSource, { type: "base64" }>, place: EncodePlace): JsonObject;
}

function mediaSource(source: MediaSource, { place, data }: SourceWriter): JsonObject {
  switch (source.type) {
    case "url":
      return { type: "url", url: source.url };
    case "base64":
      return data(source, place);
    case "file":
      if (place.state.sameDialect) return { type: "file", file_id: source.fileId };
      throw unsupportedContent(
        place.path,
        "names an uploaded file, which this model's provider cannot read; send its bytes or address.",
      );
  }
}

/** Image types that Anthropic reads, with how their bytes begin in base64. */
const imageTypes: readonly (readonly [type: string, beginning: string])[] = [
  ["image/jpeg", "/9j/"],
  ["image/png", "iVBORw0KGgo"],
  ["image/gif", "R0lGOD"],
  ["image/webp", "UklGR"],
];

/** The bytes under the type that they are of: Anthropic compares the two and refuses what does not fit. */
function imageBytes(
  { mediaType, data }: { mediaType: string; data: string },
  place: EncodePlace,
): JsonObject {
  const seen = imageTypes.find(([, beginning]) => data.startsWith(beginning))?.[0];
  const type = place.state.sameDialect
    ? mediaType
    : (seen ?? imageTypes.find(([known]) => known === mediaType)?.[0]);
  if (type === undefined) {
    throw unsupportedContent(
      place.path,
      `has the unsupported image type ${mediaType}; send a JPEG, PNG, GIF or WebP.`,
    );
  }
  return { type: "base64", media_type: type, data };
}

const encodeDocument = (part: DocumentPart, place: EncodePlace): JsonObject => {
  const search =
    part.extensions?.fields.type === "search_result" &&
    part.extensions.dialect === "anthropic-messages";
  const citations = part.citations === undefined ? undefined : { enabled: part.citations };
  return withoutUndefined<JsonObject>({
    ...(search
      ? searchContent(part, place)
      : { type: "document", source: documentSource(part, place) }),
    title: part.title,
    context: part.context,
    citations,
    ...cacheFields(part.cache),
    ...place.extensionFields(part.extensions),
  });
};

/** A search result keeps its texts where a document has a source. */
const searchContent = ({ source }: DocumentPart, place: EncodePlace): JsonObject => ({
  content: source.type === "parts" ? innerBlocks(source.parts, place) : [],
});

const innerBlocks = (parts: readonly (TextPart | ImagePart)[], place: EncodePlace): JsonObject[] =>
  parts.flatMap((inner, index) => encodeUserPart(inner, place.at(`.source[${index}]`)));

function documentSource({ source }: DocumentPart, place: EncodePlace): JsonObject {
  switch (source.type) {
    case "text":
      return { type: "text", media_type: source.mediaType ?? "text/plain", data: source.text };
    case "parts":
      return { type: "content", content: innerBlocks(source.parts, place) };
    default:
      return mediaSource(source, { place, data: documentBytes });
  }
}

function documentBytes(
  { mediaType, data }: { mediaType: string; data: string },
  place: EncodePlace,
): JsonObject {
  if (mediaType === "application/pdf" || place.state.sameDialect)
    return { type: "base64", media_type: mediaType, data };
  if (mediaType.startsWith("text/")) {
    return {
      type: "text",
      media_type: "text/plain",
      data: Buffer.from(data, "base64").toString("utf8"),
    };
  }
  throw unsupportedContent(
    place.path,
    `has the unsupported document type ${mediaType}; send a PDF or plain text.`,
  );
}

/** A user's part of another dialect cannot be left out without changing what was asked. */
function encodeOpaque(part: OpaquePart, place: EncodePlace): JsonObject {
  if (part.dialect === "anthropic-messages") return part.value;
  throw unsupportedContent(
    place.path,
    `has the type ${JSON.stringify(part.value.type)}, which this model's provider does not know.`,
  );
}
