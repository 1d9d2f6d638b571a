/** Bytes of text that make one token, on the average of the field's tokenizers. */
const bytesPerToken = 4;
/** What a picture, a sound or a document costs at least, whatever its bytes: a guess for holds only. */
const tokensPerBinaryPart = 1_600;

const binaryMark = /"(?:data:[a-z]+\/|input_audio|file_data)/;

function partTokens(part: unknown): number {
  if (typeof part === "string") return Buffer.byteLength(part) / bytesPerToken;
  if (typeof part !== "object" || part === null) return 0;
  const { type, text } = part as { type?: unknown; text?: unknown };
  return type === "text" && typeof text === "string" ? Buffer.byteLength(text) / bytesPerToken : tokensPerBinaryPart;
}

/**
 * Input tokens of a chat body for holds and for usage that no provider reported: its length over four,
 * with embedded pictures, sounds and documents at a flat rate instead of their base64 length.
 */
export function estimateInputTokens(text: string, body: Readonly<Record<string, unknown>>): number {
  // Bytes rather than characters: scripts that take three bytes a character take about a token for each, too.
  if (!binaryMark.test(text)) return Math.ceil(Buffer.byteLength(text) / bytesPerToken);
  const messages = Array.isArray(body["messages"]) ? (body["messages"] as { content?: unknown }[]) : [];
  const tokens = messages.reduce((sum, { content }) =>
    sum + (Array.isArray(content) ? content.reduce<number>((inner, part) => inner + partTokens(part), 0) : partTokens(content)), 0);
  return Math.ceil(tokens) + messages.length * 4;
}
