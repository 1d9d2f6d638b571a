import type { DocumentPart, ImagePart, OpaquePart, TextPart } from "../../canonical/content.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { UserPart } from "../../canonical/message.ts";
import { dataUrl } from "../data-url.ts";
import { unsupportedContent } from "../request-fields.ts";
import type { EncodeState } from "./encode-state.ts";

/** One part of a user's message; a document of several parts becomes several. */
export function encodeUserPart(part: UserPart, path: string, state: EncodeState): JsonObject[] {
  switch (part.type) {
    case "text": return [encodeText(part, path, state)];
    case "image": return [encodeImage(part, path, state)];
    case "document": return encodeDocument(part, path, state);
    case "audio": return [{
      type: "input_audio",
      input_audio: { data: part.data, format: part.format },
      ...state.cacheFields(part.cache),
      ...state.extensionFields(part.extensions, path),
    }];
    case "opaque": return [encodeOpaque(part, path)];
  }
}

export const encodeText = (part: TextPart, path: string, state: EncodeState): JsonObject => ({
  type: "text",
  text: part.text,
  ...state.cacheFields(part.cache),
  ...state.extensionFields(part.extensions, path),
});

function encodeImage(part: ImagePart, path: string, state: EncodeState): JsonObject {
  const { source, detail } = part;
  if (source.type === "file") {
    throw unsupportedContent(path, "names an uploaded image, which this model's provider cannot read; send the image's bytes or address.");
  }
  const url = source.type === "url" ? source.url : dataUrl(source);
  return {
    type: "image_url",
    image_url: { url, ...(detail !== undefined && { detail }) },
    ...state.cacheFields(part.cache),
    ...state.extensionFields(part.extensions, path),
  };
}

function encodeDocument(part: DocumentPart, path: string, state: EncodeState): JsonObject[] {
  if (part.citations === true) state.lose(`${path}.citations`, "chat models are not asked to cite");
  if (part.context !== undefined) state.lose(`${path}.context`, "chat files have no such field");
  const { source } = part;
  switch (source.type) {
    case "text": return [{ type: "text", text: titled(part.title, source.text), ...state.cacheFields(part.cache) }];
    case "parts": return [
      ...(part.title === undefined ? [] : [{ type: "text", text: part.title }]),
      ...source.parts.flatMap((inner, index) => encodeUserPart(inner, `${path}.source[${index}]`, state)),
    ];
    default: return [{
      type: "file",
      file: { ...fileFields(part, path, state) },
      ...state.cacheFields(part.cache),
      ...state.extensionFields(part.extensions, path),
    }];
  }
}

/** Documents of plain text have no type of their own in chat. */
const titled = (title: string | undefined, text: string): string => (title === undefined ? text : `${title}\n${text}`);

function fileFields(part: DocumentPart, path: string, state: EncodeState): JsonObject {
  const { source, title } = part;
  const filename = title ?? (state.sameDialect ? undefined : "document.pdf");
  const named = filename === undefined ? {} : { filename };
  if (source.type === "base64") return { file_data: dataUrl(source), ...named };
  if (source.type === "file" && state.sameDialect) return { file_id: source.fileId, ...named };
  if (source.type === "url" && state.sameDialect) return { file_data: source.url, ...named };
  throw unsupportedContent(path, "is a document that this model's provider cannot fetch; send its bytes as base64.");
}

/** A user's part of another dialect cannot be left out without changing what was asked. */
export function encodeOpaque(part: OpaquePart, path: string): JsonObject {
  if (part.dialect === "openai-chat") return part.value;
  throw unsupportedContent(path, `has the type ${JSON.stringify(part.value.type)}, which this model's provider does not know.`);
}
