import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { StoredContent } from "../../../platform/spool/spool.ts";
import { jpegSides } from "./jpeg-sides.ts";

/** The bytes of a file that say what it is. */
const headBytes = 64;

/** The most pixels of a picture that is sent to a provider: more than any of them takes. */
const pixelsMax = 100_000_000;

/** A picture as its first bytes describe it. */
export interface PictureHead {
  type: "image/png" | "image/jpeg" | "image/webp" | "image/gif";
  /** Undefined where the file does not tell them. */
  width?: number;
  height?: number;
}

/** Returns the media type of base64 by its first characters; PNG for an unknown one. */
export function typeOfBase64(base64: string): string {
  const bytes = Buffer.from(base64.slice(0, 64), "base64");
  const isDrawing = /^\ufeff?\s*<(?:svg|\?xml|!--|!doctype svg)/i.test(bytes.toString("utf8"));
  return headOf(bytes)?.type ?? (isDrawing ? "image/svg+xml" : "image/png");
}

/** Reads the head of a picture; undefined where it is none of the known formats. */
function headOf(bytes: Buffer): PictureHead | undefined {
  if (bytes.length >= 8 && bytes.readUInt32BE(0) === 0x89504e47)
    return bytes.length < 24
      ? { type: "image/png" }
      : { type: "image/png", width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  // Its dimensions stand behind its metadata, which may be long.
  if (bytes.length >= 3 && bytes[0] === 0xff && bytes[1] === 0xd8) return { type: "image/jpeg" };
  const text = bytes.toString("latin1", 0, 16);
  if (/^GIF8[79]a/.test(text))
    return bytes.length < 10
      ? { type: "image/gif" }
      : { type: "image/gif", width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
  return text.startsWith("RIFF") && text.slice(8, 12) === "WEBP" ? webpHead(bytes) : undefined;
}

/** Reads the canvas of a WebP (RFC 9649, section 2.7). */
function webpHead(bytes: Buffer): PictureHead {
  const type = "image/webp";
  const chunk = bytes.toString("latin1", 12, 16);
  if (chunk === "VP8X" && bytes.length >= 30)
    return { type, width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
  if (chunk === "VP8 " && bytes.length >= 30)
    return {
      type,
      width: bytes.readUInt16LE(26) & 0x3fff,
      height: bytes.readUInt16LE(28) & 0x3fff,
    };
  if (chunk === "VP8L" && bytes.length >= 25) {
    const bits = bytes.readUInt32LE(21);
    return { type, width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 };
  }
  return { type };
}

/**
 * Checks a picture that is to be sent to a provider. Throws `invalid_image_encoding` for an empty
 * file or another format, and `image_too_large` for too many pixels.
 */
export async function checkPicture(content: StoredContent, param: string): Promise<PictureHead> {
  if (content.size === 0)
    throw new GatewayError("invalid_image_encoding", `${param}: the file is empty.`, { param });
  const bytes = await content.read(0, headBytes);
  const known = headOf(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  if (known === undefined) {
    const message = `${param}: must be a PNG, JPEG, WebP or GIF file.`;
    throw new GatewayError("invalid_image_encoding", message, { param });
  }
  const sides = known.type === "image/jpeg" ? await jpegSides(content) : {};
  if (sides === undefined) {
    const message = `${param}: too much precedes the picture in the file; save it without metadata.`;
    throw new GatewayError("invalid_image_encoding", message, { param });
  }
  const head = { ...known, ...sides };
  const { width = 1, height = 1 } = head;
  if (width * height > pixelsMax || width === 0 || height === 0) {
    const message = `${param}: has ${width} x ${height} pixels; send at most ${pixelsMax} in all.`;
    throw new GatewayError("image_too_large", message, {
      param,
      metadata: { limit_pixels: pixelsMax },
    });
  }
  return head;
}
