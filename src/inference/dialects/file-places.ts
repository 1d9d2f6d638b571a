import type { DialectId } from "../canonical/dialect-id.ts";

type Json = Record<string, unknown>;

/** A part of content that may name its file in place of having it. */
export interface FilePlace {
  /** Its content in base64. */
  content: string;
  /** Returns the part that names the file. */
  named(reference: string): Json;
}

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const dataUrlEnd = (value: unknown): string =>
  typeof value === "string" ? value.slice(value.indexOf(",") + 1) : "";

/**
 * Reads a part of content in each dialect; undefined for one without the content of a file. Images
 * in chat completions have no ids.
 */
export const filePlaceIn: Partial<Record<DialectId, (part: Json) => FilePlace | undefined>> = {
  "openai-chat": ({ file, ...part }) =>
    part["type"] === "file" && isObject(file)
      ? {
          content: dataUrlEnd(file["file_data"]),
          named: (fileId) => ({ ...part, file: { file_id: fileId } }),
        }
      : undefined,
  "openai-responses": ({ file_data: data, image_url: image, filename: _, ...part }) =>
    part["type"] === "input_file" || part["type"] === "input_image"
      ? {
          content: dataUrlEnd(part["type"] === "input_file" ? data : image),
          named: (fileId) => ({ ...part, file_id: fileId }),
        }
      : undefined,
  "anthropic-messages": ({ source, ...part }) =>
    (part["type"] === "document" || part["type"] === "image") &&
    isObject(source) &&
    source["type"] === "base64"
      ? {
          content: String(source["data"]),
          named: (fileId) => ({ ...part, source: { type: "file", file_id: fileId } }),
        }
      : undefined,
  "google-generate": ({ inlineData, ...part }) =>
    isObject(inlineData)
      ? {
          content: String(inlineData["data"]),
          named: (fileUri) => ({
            ...part,
            fileData: { mimeType: inlineData["mimeType"], fileUri },
          }),
        }
      : undefined,
};
