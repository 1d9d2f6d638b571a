import type { StoredContent } from "../../../platform/spool/spool.ts";
import { WindowedBytes } from "../media/windowed-bytes.ts";

/** The most markers before the frame header: pictures have dozens, with large profiles a few hundred. */
const markersMax = 10_000;

/** Markers that no length follows: TEM, restarts and the start of a picture. */
const isBare = (marker: number): boolean => marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8);

/** Markers of frame headers: SOF0 to SOF15 without DHT, JPG and DAC. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);

/** Returns the position of the last of several bytes `0xff` within the window. */
function fillEnd(bytes: WindowedBytes, position: number): number {
  let last = position;
  while (bytes.at(last + 1) === 0xff) last += 1;
  return last;
}

/**
 * Finds the dimensions of a JPEG (ITU-T T.81, B.2.2), however much metadata precedes them. Bytes
 * between segments, and fill bytes, are skipped, as decoders do. Nothing where there is no frame,
 * and undefined where too much precedes one.
 */
export async function jpegSides(
  content: StoredContent,
): Promise<{ width?: number; height?: number } | undefined> {
  const bytes = new WindowedBytes(content);
  let at = 2;
  for (let markers = 0; markers < markersMax; ) {
    await bytes.load(at, 1);
    const mark = bytes.find(0xff, at);
    if (mark < 0) {
      if (bytes.end <= at) return {};
      at = bytes.end;
      continue;
    }
    markers += 1;
    await bytes.load(mark, 10);
    const marker = bytes.at(mark + 1);
    if (marker === undefined || marker === 0xd9 || marker === 0xda) return {};
    if (isFrame(marker))
      return { height: bytes.number(mark + 5, 2), width: bytes.number(mark + 7, 2) };
    if (marker === 0xff) at = fillEnd(bytes, mark);
    else if (marker === 0x00 || isBare(marker)) at = mark + 2;
    else at = mark + 2 + Math.max(2, bytes.number(mark + 2, 2));
  }
  return undefined;
}
