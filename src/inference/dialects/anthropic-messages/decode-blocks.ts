import type {
  DocumentPart,
  ImagePart,
  MediaSource,
  OpaquePart,
  TextPart,
} from "../../canonical/content.ts";
import { badRequest, RequestFields } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { decodeCache } from "./cache-fields.ts";
import { decodeCitations } from "./citation-fields.ts";
import { extensionsOf } from "./own-fields.ts";

const knownFields = {
  text: new Set(["type", "text", "citations", "cache_control"]),
  image: new Set(["type", "source", "cache_control"]),
  document: new Set(["type", "source", "title", "context", "citations", "cache_control"]),
  // Its type and its source stay beside the canonical document and make a search result of it again.
  searchResult: new Set(["content", "title", "citations", "cache_control"]),
};

/** Content as fields, one for each block; text is one block, and nothing is none. */
export function contentBlocks(fields: RequestFields, key = "content"): RequestFields[] {
  const content = fields.object[key];
  const path = fields.pathOf(key);
  if (content === undefined || content === null || content === "") return [];
  if (typeof content === "string")
    return [new RequestFields({ type: "text", text: content }, path)];
  if (!Array.isArray(content))
    throw badRequest(path, "must be a string or an array of content blocks.");
  return content.map((block, index) => new RequestFields(block, `${path}[${index}]`));
}

/** Blocks of instructions, which are text alone. */
export function decodeTexts(fields: RequestFields, key: string): TextPart[] {
  return contentBlocks(fields, key).map((block) => {
    const type = block.requiredString("type");
    if (type !== "text")
      throw badRequest(block.pathOf("type"), `must be "text" here, not "${type}".`);
    return decodeText(block);
  });
}

/** A block that a user or a tool may send; what only this dialect knows is kept as it is. */
export function decodeUserBlock(
  block: RequestFields,
): TextPart | ImagePart | DocumentPart | OpaquePart {
  switch (block.requiredString("type")) {
    case "text":
      return decodeText(block);
    case "image":
      return decodeImage(block) ?? opaque(block);
    case "document":
      return decodeDocument(block) ?? opaque(block);
    case "search_result":
      return decodeSearchResult(block);
    default:
      return opaque(block);
  }
}

/** A block that no other dialect understands. */
export const opaque = (block: RequestFields): OpaquePart => ({
  type: "opaque",
  dialect: "anthropic-messages",
  value: block.object,
});

/** A text block. Throws `bad_request` when its text is no string. */
export const decodeText = (block: RequestFields): TextPart =>
  withoutUndefined<TextPart>({
    type: "text",
    text: block.requiredString("text"),
    annotations: decodeCitations(block.object.citations),
    cache: decodeCache(block.object),
    extensions: extensionsOf(block, knownFields.text),
  });

function decodeImage(block: RequestFields): ImagePart | undefined {
  const source = mediaSource(requiredSource(block));
  return (
    source &&
    withoutUndefined<ImagePart>({
      type: "image",
      source,
      cache: decodeCache(block.object),
      extensions: extensionsOf(block, knownFields.image),
    })
  );
}

function requiredSource(block: RequestFields): RequestFields {
  const source = block.nested("source");
  if (source === undefined) {
    throw badRequest(
      block.pathOf("source"),
      'is required: {"type": "base64", "media_type": "...", "data": "..."}.',
    );
  }
  return source;
}

function mediaSource(source: RequestFields): MediaSource | undefined {
  switch (source.requiredString("type")) {
    case "base64":
      return {
        type: "base64",
        mediaType: mediaTypeOf(source.requiredString("media_type")),
        data: source.requiredString("data"),
      };
    case "url":
      return { type: "url", url: source.requiredString("url") };
    case "file":
      return { type: "file", fileId: source.requiredString("file_id") };
    default:
      return undefined;
  }
}

/** Folded to lower case without parameters; `image/jpg` is no registered type. */
function mediaTypeOf(written: string): string {
  const type = (written.split(";")[0] ?? "").trim().toLowerCase();
  return type === "image/jpg" ? "image/jpeg" : type;
}

function decodeDocument(block: RequestFields): DocumentPart | undefined {
  const source = documentSource(requiredSource(block));
  return (
    source &&
    withoutUndefined<DocumentPart>({
      type: "document",
      source,
      title: block.string("title"),
      context: block.string("context"),
      citations: block.nested("citations")?.boolean("enabled"),
      cache: decodeCache(block.object),
      extensions: extensionsOf(block, knownFields.document),
    })
  );
}

function documentSource(source: RequestFields): DocumentPart["source"] | undefined {
  switch (source.requiredString("type")) {
    case "text": {
      const mediaType = source.string("media_type") ?? "text/plain";
      return {
        type: "text",
        text: source.requiredString("data"),
        ...(mediaType !== "text/plain" && { mediaType }),
      };
    }
    case "content": {
      const parts = contentBlocks(source).map(decodeUserBlock);
      const plain = parts.filter(
        (part): part is TextPart | ImagePart => part.type === "text" || part.type === "image",
      );
      return plain.length === parts.length ? { type: "parts", parts: plain } : undefined;
    }
    default:
      return mediaSource(source);
  }
}

/** A search result is a document of texts with an address. */
const decodeSearchResult = (block: RequestFields): DocumentPart =>
  withoutUndefined<DocumentPart>({
    type: "document",
    source: { type: "parts", parts: decodeTexts(block, "content") },
    title: block.string("title"),
    citations: block.nested("citations")?.boolean("enabled"),
    cache: decodeCache(block.object),
    extensions: extensionsOf(block, knownFields.searchResult),
  });
