/** Base64 that was found in bytes, and the text before it. */
interface FoundBase64 {
  before: string;
  /** Empty for the text after the last one. */
  base64: readonly Uint8Array[];
}

/** A position in pieces of bytes. */
interface Place {
  piece: number;
  at: number;
}

const quote = 0x22;
const backslash = 0x5c;
const [lineFeed, carriageReturn] = [0x0a, 0x0d];

/** Bytes before a string in which its name is looked for, and of it for what a data URL begins with. */
const nameBytes = 64;
const headerBytes = 256;
/** Bytes at both ends of a piece that say whether it is base64. */
const sampleBytes = 64;
/** Average bytes of pieces below which they are joined, so that they are sent at once. */
const pieceBytesMin = 32 * 1024;

const namesBase64 = /"(?:data|result|partial_image_b64|b64_json)"\s*:\s*"$/;
const namesUrl = /"url"\s*:\s*"$/;
const dataUrl = /^data:[^",\\]*;base64,/;
const noBase64 = /[^A-Za-z0-9+/=_-]/;

/**
 * Finds base64 of pictures and sound in the pieces of JSON, under the names that providers use, or in
 * a data URL. It is found where at least one whole piece has no quote, so that nearly all bytes are
 * passed over once, by one search. Returns nothing where there is none.
 */
export function longBase64In(
  pieces: readonly Uint8Array[],
  leastBytes: number,
): readonly FoundBase64[] {
  const found: FoundBase64[] = [];
  let from: Place = { piece: 0, at: 0 };
  for (let first = 1; first < pieces.length; first += 1) {
    if (hasQuote(pieces[first])) continue;
    let after = first + 1;
    while (after < pieces.length && !hasQuote(pieces[after])) after += 1;
    const start = startIn(pieces, first);
    const end = start && endIn(pieces, after);
    if (start !== undefined && end !== undefined) {
      const base64 = slicesOf(pieces, start, end);
      if (lengthOf(base64) >= leastBytes && base64.every(isBase64) && !endsLine(base64.at(-1))) {
        found.push({ before: textOf(slicesOf(pieces, from, start)), base64: joinedSmall(base64) });
        from = end;
      }
    }
    first = after;
  }
  if (found.length === 0) return found;
  const end = { piece: pieces.length, at: 0 };
  found.push({ before: textOf(slicesOf(pieces, from, end)), base64: [] });
  return found;
}

const hasQuote = (piece: Uint8Array | undefined): boolean => piece?.includes(quote) === true;

/**
 * Returns where the base64 begins that reaches into a piece from the one before; undefined where
 * that is no base64.
 */
function startIn(pieces: readonly Uint8Array[], first: number): Place | undefined {
  const before = pieces[first - 1] ?? new Uint8Array();
  const start = before.lastIndexOf(quote) + 1;
  if (start === 0) return undefined;
  const named = textOf([
    (pieces[first - 2] ?? new Uint8Array()).subarray(-nameBytes),
    before.subarray(Math.max(0, start - nameBytes), start),
  ]);
  if (namesBase64.test(named)) return { piece: first - 1, at: start };
  if (!namesUrl.test(named)) return undefined;
  const begins = [
    before.subarray(start, start + headerBytes),
    pieces[first]?.subarray(0, headerBytes),
  ];
  const header = dataUrl.exec(textOf(begins.filter((bytes) => bytes !== undefined)))?.[0];
  if (header === undefined) return undefined;
  const at = start + header.length;
  return at <= before.byteLength
    ? { piece: first - 1, at }
    : { piece: first, at: at - before.byteLength };
}

/** Returns where a string ends whose last piece is this one; undefined where it does not. */
function endIn(pieces: readonly Uint8Array[], piece: number): Place | undefined {
  const at = pieces[piece]?.indexOf(quote) ?? -1;
  const last = at > 0 ? pieces[piece]?.[at - 1] : pieces[piece - 1]?.at(-1);
  return at < 0 || last === backslash ? undefined : { piece, at };
}

function slicesOf(pieces: readonly Uint8Array[], start: Place, end: Place): Uint8Array[] {
  const slices: Uint8Array[] = [];
  for (let index = start.piece; index <= end.piece; index += 1) {
    const to = index === end.piece ? end.at : undefined;
    const slice = pieces[index]?.subarray(index === start.piece ? start.at : 0, to);
    if (slice !== undefined && slice.byteLength > 0) slices.push(slice);
  }
  return slices;
}

const lengthOf = (slices: readonly Uint8Array[]): number =>
  slices.reduce((sum, { byteLength }) => sum + byteLength, 0);

/** Returns whether the ends of bytes are base64. Text of this length has other characters as well. */
function isBase64(bytes: Uint8Array): boolean {
  const ends = [bytes.subarray(0, sampleBytes), bytes.subarray(-sampleBytes)];
  return !noBase64.test(textOf(ends));
}

/**
 * Returns whether a line of the stream ends within the last bytes of a string, which are no JSON then.
 * Pieces before the last one are read only as far as their line has not ended.
 */
const endsLine = (bytes: Uint8Array | undefined): boolean =>
  bytes !== undefined && (bytes.includes(lineFeed) || bytes.includes(carriageReturn));

const textOf = (slices: readonly Uint8Array[]): string => Buffer.concat(slices).toString("utf8");

const joinedSmall = (slices: readonly Uint8Array[]): readonly Uint8Array[] =>
  lengthOf(slices) < slices.length * pieceBytesMin ? [Buffer.concat(slices)] : slices;
