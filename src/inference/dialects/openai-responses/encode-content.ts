import type {
  DocumentPart,
  ImagePart,
  MediaSource,
  OpaquePart,
  TextPart,
} from "../../canonical/content.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { UserPart } from "../../canonical/message.ts";
import { dataUrl } from "../data-url.ts";
import type { EncodePlace } from "../encode-state.ts";
import { unsupportedContent } from "../request-fields.ts";

/** One part of a user's message or of a result; a document of several parts becomes several. */
export function encodeUserPart(part: UserPart, place: EncodePlace): JsonObject[] {
  switch (part.type) {
    case "text":
      return [encodeInputText(part, place)];
    case "image":
      return [{ type: "input_image", ...imageFields(part, place), ...markers(part, place) }];
    case "document":
      return encodeDocument(part, place);
    case "audio":
      return [
        {
          type: "input_audio",
          input_audio: { data: part.data, format: part.format },
          ...markers(part, place),
        },
      ];
    case "opaque":
      return [encodeOpaque(part, place)];
  }
}

/** Content as plain text where it is one text and nothing else: compatible servers take that at least. */
export function plainOrParts(parts: readonly JsonObject[]): JsonValue {
  const [first] = parts;
  if (first === undefined) return "";
  const plain =
    parts.length === 1 && first.type === "input_text" && Object.keys(first).length === 2;
  return plain ? (first.text as string) : parts;
}

/** A text of the user's or of instructions. */
export function encodeInputText(part: TextPart, place: EncodePlace): JsonObject {
  const { text, cache, extensions } = part;
  if (cache === undefined && extensions === undefined) return { type: "input_text", text };
  return { type: "input_text", text, ...markers(part, place) };
}

/** A part's cache marker and its unknown fields. */
export const markers = (
  part: Pick<TextPart, "cache" | "extensions">,
  place: EncodePlace,
): JsonObject => ({
  ...place.state.cacheFields(part.cache),
  ...place.extensionFields(part.extensions),
});

function imageFields({ source, detail }: ImagePart, place: EncodePlace): JsonObject {
  const detailed = detail === undefined ? {} : { detail };
  if (source.type === "file") return { ...fileId(source, place), ...detailed };
  return { image_url: source.type === "url" ? source.url : dataUrl(source), ...detailed };
}

/** An uploaded file means something to its provider alone. */
function fileId(source: Extract<MediaSource, { type: "file" }>, place: EncodePlace): JsonObject {
  if (place.state.sameDialect) return { file_id: source.fileId };
  throw unsupportedContent(
    place.path,
    "names an uploaded file, which this model's provider cannot read; send its bytes or address.",
  );
}

function encodeDocument(part: DocumentPart, place: EncodePlace): JsonObject[] {
  if (part.citations === true)
    place.at(".citations").lose("Responses models are not asked to cite");
  if (part.context !== undefined) place.at(".context").lose("Responses files have no such field");
  const { source, title } = part;
  switch (source.type) {
    case "text":
      return [
        {
          type: "input_text",
          text: title === undefined ? source.text : `${title}\n${source.text}`,
          ...markers(part, place),
        },
      ];
    case "parts":
      return [
        ...(title === undefined ? [] : [{ type: "input_text", text: title }]),
        ...source.parts.flatMap((inner, index) =>
          encodeUserPart(inner, place.at(`.source[${index}]`)),
        ),
      ];
    default:
      return [
        {
          type: "input_file",
          ...documentFields(source, { title, place }),
          ...markers(part, place),
        },
      ];
  }
}

function documentFields(
  source: MediaSource,
  { title, place }: { title: string | undefined; place: EncodePlace },
): JsonObject {
  const named = title === undefined ? {} : { filename: title };
  if (source.type === "url") return { file_url: source.url, ...named };
  if (source.type === "file") return { ...fileId(source, place), ...named };
  // OpenAI refuses bytes without a name.
  const filename = title ?? (place.state.sameDialect ? undefined : "document.pdf");
  return { file_data: dataUrl(source), ...(filename !== undefined && { filename }) };
}

/** A user's part of another dialect cannot be left out without changing what was asked. */
function encodeOpaque(part: OpaquePart, place: EncodePlace): JsonObject {
  if (part.dialect === "openai-responses") return part.value;
  throw unsupportedContent(
    place.path,
    `has the type ${JSON.stringify(part.value.type)}, which this model's provider does not know.`,
  );
}
