/** Bytes of text that make one token, on the average of the field's tokenizers. */
const bytesPerToken = 4;
/** What a picture, a sound or a document costs at least, whatever its bytes: a guess for holds only. */
const tokensPerBinaryPart = 1_600;
/** Base64 that is shorter than this is as likely a word. */
const binaryLengthMin = 64;

/** Data URLs, the members that hold base64 in the dialects of clients, and those that name a picture or a file elsewhere. */
const binaryMark = /"(?:data:[a-z]+\/|(?:data|file_data|url|image_url|file_url|file_id)"\s*:\s*")/;
const binaryMembers: ReadonlySet<string> = new Set(["data", "file_data"]);
const namingMembers: ReadonlySet<string> = new Set(["url", "image_url", "file_url", "file_id"]);

function bytesOf(value: unknown, key: string): number {
  if (typeof value === "string") {
    const binary =
      value.startsWith("data:") ||
      (binaryMembers.has(key) && value.length >= binaryLengthMin) ||
      namingMembers.has(key);
    return binary ? tokensPerBinaryPart * bytesPerToken : Buffer.byteLength(value);
  }
  if (typeof value !== "object" || value === null) return 4;
  let sum = 2;
  if (Array.isArray(value)) for (const entry of value) sum += bytesOf(entry, key) + 1;
  else
    for (const name in value)
      sum += name.length + 4 + bytesOf((value as Record<string, unknown>)[name], name);
  return sum;
}

/**
 * Input tokens of a body for holds and for usage that no provider reported: its length over four, with
 * embedded pictures, sounds and documents at a flat rate instead of their base64 length.
 */
export function estimateInputTokens(text: string, body: Readonly<Record<string, unknown>>): number {
  // Bytes rather than characters: scripts that take three bytes a character take about a token for each, too.
  const bytes = binaryMark.test(text) ? bytesOf(body, "") : Buffer.byteLength(text);
  return Math.ceil(bytes / bytesPerToken);
}
