import type { AudioPart, DocumentPart, ImagePart, MediaSource } from "../../canonical/content.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { UserPart } from "../../canonical/message.ts";
import { unsupportedContent } from "../request-fields.ts";
import type { GeminiPlace } from "./encode-state.ts";

/** One part of a user's message as Gemini's parts; empty text makes none. */
export function encodeUserPart(part: UserPart, place: GeminiPlace): JsonObject[] {
  switch (part.type) {
    case "text":
      place.loseDecoration(part);
      return textParts(part.text);
    case "image":
      place.loseDecoration(part);
      return [encodeImage(part, place)];
    case "document":
      place.loseDecoration(part);
      return encodeDocument(part, place);
    case "audio":
      place.loseDecoration(part);
      return [encodeAudio(part)];
    case "opaque":
      if (part.dialect === "google-generate") return [part.value];
      throw unsupportedContent(
        place.path,
        `has the type ${JSON.stringify(part.value.type)}, which Gemini does not know.`,
      );
  }
}

/** Gemini refuses parts without content. */
export const textParts = (text: string): JsonObject[] => (text === "" ? [] : [{ text }]);

/** An image of either side of the conversation. */
export function encodeImage({ source, detail }: ImagePart, place: GeminiPlace): JsonObject {
  if (detail !== undefined && detail !== "auto")
    place.at(".detail").lose("Gemini chooses the resolution itself");
  return encodeMedia(source, place);
}

function encodeMedia(source: MediaSource, place: GeminiPlace): JsonObject {
  if (source.type === "base64")
    return { inlineData: { mimeType: source.mediaType, data: source.data } };
  const uri = source.type === "url" ? source.url : source.fileId;
  if (/^(?:https?|gs):\/\//i.test(uri)) return fileData(uri);
  throw unsupportedContent(
    place.path,
    "names an upload or an address that Gemini cannot read; send the bytes as base64, or an https address.",
  );
}

/** Gemini fetches public https addresses, its own uploads and Cloud Storage itself (since 2026-01). */
function fileData(fileUri: string): JsonObject {
  const mimeType =
    mediaTypeByExtension[/\.([a-z0-9]+)(?:[?#]|$)/i.exec(fileUri)?.[1]?.toLowerCase() ?? ""];
  return { fileData: { ...(mimeType !== undefined && { mimeType }), fileUri } };
}

/** Media types that an address tells by its ending; Vertex AI insists on one, the Gemini API looks by itself. */
const mediaTypeByExtension: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  webp: "image/webp",
  heic: "image/heic",
  heif: "image/heif",
  gif: "image/gif",
  pdf: "application/pdf",
  txt: "text/plain",
  md: "text/markdown",
  html: "text/html",
  csv: "text/csv",
  wav: "audio/wav",
  mp3: "audio/mp3",
  ogg: "audio/ogg",
  flac: "audio/flac",
  mp4: "video/mp4",
  webm: "video/webm",
  mov: "video/quicktime",
};

const encodeAudio = ({ data, format }: AudioPart): JsonObject => ({
  inlineData: { mimeType: format === "pcm16" ? "audio/l16;rate=24000" : `audio/${format}`, data },
});

function encodeDocument(part: DocumentPart, place: GeminiPlace): JsonObject[] {
  const { source, title, context, citations } = part;
  if (citations === true) place.at(".citations").lose("Gemini is not asked to cite");
  if (context !== undefined) place.at(".context").lose("Gemini has no such field");
  switch (source.type) {
    case "text":
      return textParts(title === undefined ? source.text : `${title}\n${source.text}`);
    case "parts":
      return [
        ...textParts(title ?? ""),
        ...source.parts.flatMap((inner, index) =>
          encodeUserPart(inner, place.at(`.source[${index}]`)),
        ),
      ];
    default:
      if (title !== undefined) place.at(".title").lose("Gemini has no such field");
      return [encodeMedia(source, place)];
  }
}
