import type { MediaSource } from "../canonical/content.ts";

/** Bytes as text, with their media type. */
export interface InlineBytes {
  mediaType: string;
  /** Base64. */
  data: string;
}

const pattern = /^data:([^;,]*)((?:;[^;,]*)*?);base64,/i;

/**
 * Reads a base64 data URL (RFC 2397); undefined for any other text. The media type is folded to lower
 * case, parameters are dropped and `image/jpg` becomes the registered `image/jpeg`.
 */
export function parseDataUrl(url: string): InlineBytes | undefined {
  const match = pattern.exec(url);
  if (match === null) return undefined;
  const mediaType = (match[1] ?? "").toLowerCase();
  return {
    mediaType:
      mediaType === "image/jpg"
        ? "image/jpeg"
        : mediaType === ""
          ? "application/octet-stream"
          : mediaType,
    data: url.slice(match[0].length),
  };
}

/** The data URL of inline bytes. */
export const dataUrl = ({ mediaType, data }: InlineBytes): string =>
  `data:${mediaType};base64,${data}`;

/** A picture's address, or its bytes where the address is a data URL. */
export function mediaSource(url: string): MediaSource {
  const inline = parseDataUrl(url);
  return inline ? { type: "base64", ...inline } : { type: "url", url };
}
