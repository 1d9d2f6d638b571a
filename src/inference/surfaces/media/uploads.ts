import { randomBytes } from "node:crypto";
import type { StoredContent } from "../../../platform/spool/spool.ts";
import type { Adapter } from "../../pipeline/inference-call.ts";
import { InlineFile } from "./inline-file.ts";

/** A file of a request, with the name and the type that its sender gave it. */
export interface Upload {
  /** The name of the form's field. */
  field: string;
  filename: string;
  /** The content type as it was sent; undefined where there was none. */
  type: string | undefined;
  content: StoredContent;
}

/** A field of a form towards a provider: text, or a file. */
export type FormField = readonly [name: string, value: string | Omit<Upload, "field">];

/** A part of a body: text, or what is read while it is sent. */
type BodyPart = NonNullable<Adapter["requestBody"]>[number];

/** A body towards a provider in parts, with its content type. */
export interface MediaBody {
  parts: readonly BodyPart[];
  type: string;
}

/** Returns how a body is sent. JSON without files is text, in which ids of users are found. */
export function sentBody(
  { path }: { path: string },
  { parts, type }: MediaBody,
): Pick<Adapter, "requestText" | "requestBody" | "requestPath" | "requestHeaders"> {
  const [only] = parts;
  const isText = parts.length === 1 && typeof only === "string";
  return {
    requestText: isText ? only : "",
    requestPath: path,
    requestHeaders: { "content-type": type },
    ...(!isText && { requestBody: parts }),
  };
}

/** Escapes a name in a content-disposition (WHATWG, "multipart/form-data encoding algorithm"). */
const escaped = (name: string): string =>
  name.replaceAll("\r", "%0D").replaceAll("\n", "%0A").replaceAll('"', "%22");

/**
 * Encodes a form (RFC 7578). Names and types of files are those of their sender, since providers
 * tell the format of a file by them.
 */
export function encodeForm(fields: readonly FormField[]): MediaBody {
  const boundary = `switchyard-${randomBytes(18).toString("base64url")}`;
  const parts: BodyPart[] = [];
  for (const [name, value] of fields) {
    const begin = `--${boundary}\r\ncontent-disposition: form-data; name="${escaped(name)}"`;
    if (typeof value === "string") parts.push(`${begin}\r\n\r\n${value}\r\n`);
    else {
      const type = /^[\x20-\x7e]+$/.test(value.type ?? "")
        ? value.type
        : "application/octet-stream";
      parts.push(
        `${begin}; filename="${escaped(value.filename)}"\r\ncontent-type: ${type}\r\n\r\n`,
        value.content,
        "\r\n",
      );
    }
  }
  parts.push(`--${boundary}--\r\n`);
  return { parts, type: `multipart/form-data; boundary=${boundary}` };
}

/** Returns bytes in memory as a stored content. */
export const inMemory = (bytes: Uint8Array): StoredContent => ({
  size: bytes.byteLength,
  read: async (start, length) => bytes.subarray(start, start + length),
});

/** Returns the base64 of a content, which is encoded while it is read. */
function base64Content(content: StoredContent): StoredContent {
  return {
    size: 4 * Math.ceil(content.size / 3),
    read: async (start, length) => {
      const first = Math.floor(start / 4);
      const end = Math.ceil((start + length) / 4);
      const bytes = await content.read(first * 3, (end - first) * 3);
      const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
      return Buffer.from(text.slice(start - first * 4, start - first * 4 + length), "latin1");
    },
  };
}

/** Encodes JSON whose files are read while they are sent. */
export function encodeJson(value: object): readonly BodyPart[] {
  const mark = randomBytes(12).toString("hex");
  const files: InlineFile[] = [];
  const text = JSON.stringify(value, (_, member: unknown) =>
    member instanceof InlineFile ? `${mark}${files.push(member) - 1}` : member,
  );
  if (files.length === 0) return [text];
  const pieces = text.split(new RegExp(`(${mark}\\d+)`));
  return pieces.flatMap((piece): readonly BodyPart[] => {
    const file = piece.startsWith(mark) ? files[Number(piece.slice(mark.length))] : undefined;
    if (file === undefined) return [piece];
    const begin = file.urlType === undefined ? "" : `data:${file.urlType};base64,`;
    return [begin, base64Content(file.content)];
  });
}

/** Returns the fields of a form for a member of JSON: lists and objects in OpenAI's bracket form. */
export function formFieldsOf(name: string, value: unknown): FormField[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((entry) => formFieldsOf(`${name}[]`, entry));
  if (typeof value === "object")
    return Object.entries(value).flatMap(([key, inner]) => formFieldsOf(`${name}[${key}]`, inner));
  return [[name, String(value)]];
}
