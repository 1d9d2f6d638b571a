import type { StoredContent } from "../../../../platform/spool/spool.ts";
import { WindowedBytes } from "../../media/windowed-bytes.ts";

/** The most chunks before the samples: editors write a dozen. */
const chunksMax = 256;

const forms: ReadonlySet<string> = new Set(["RIFF", "RF64", "BW64"]);

/**
 * Returns the length of an uncompressed WAV in milliseconds by its bytes, however much precedes the
 * samples; undefined for anything else.
 */
export async function wavMs(content: StoredContent): Promise<number | undefined> {
  const bytes = new WindowedBytes(content);
  await bytes.load(0, 12);
  const name = (at: number): string => bytes.slice(at, 4).toString("latin1");
  if (!forms.has(name(0)) || name(8) !== "WAVE") return undefined;
  let bytesPerSecond = 0;
  let at = 12;
  for (let chunks = 0; chunks < chunksMax && at + 8 <= content.size; chunks += 1) {
    await bytes.load(at, 24);
    const kind = name(at);
    const length = bytes.slice(at + 4, 4).readUInt32LE(0);
    if (kind === "fmt ") {
      const found = rateOf(bytes.slice(at + 8, 16));
      if (found === undefined) return undefined;
      bytesPerSecond = found;
    }
    if (kind === "data")
      return bytesPerSecond === 0
        ? undefined
        : Math.ceil(((content.size - at - 8) * 1_000) / bytesPerSecond);
    at += 8 + length + (length % 2);
  }
  return undefined;
}

/**
 * Returns the bytes of a second; undefined for compressed samples. A header names them twice, and
 * readers do not agree on which they believe, so the smaller counts: it makes the sound longer.
 */
function rateOf(format: Buffer): number | undefined {
  // Formats other than samples (1), floats (3) and extended ones are compressed.
  if (format.length < 12 || ![1, 3, 0xfffe].includes(format.readUInt16LE(0))) return undefined;
  const declared = format.readUInt32LE(8);
  if (format.length < 16) return declared;
  const [channels, samples, bits] = [
    format.readUInt16LE(2),
    format.readUInt32LE(4),
    format.readUInt16LE(14),
  ];
  const counted = channels * samples * Math.ceil(bits / 8);
  return declared === 0 || counted === 0
    ? Math.max(declared, counted)
    : Math.min(declared, counted);
}
