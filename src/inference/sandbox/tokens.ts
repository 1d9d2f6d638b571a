/** Characters (UTF-16 code units) that the sandbox counts as one token. */
const charactersPerToken = 4;

/** Tokens that each image, audio clip or file of a prompt counts for. */
export const tokensPerMedium = 256;

/** Tokens of an input text: four characters each, at least 1. */
export const estimateTokens = (text: string): number => tokensOfLength(text.length);

/** Tokens of an input that is so many characters long, at least 1. */
export const tokensOfLength = (length: number): number =>
  Math.max(1, Math.ceil(length / charactersPerToken));

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;

/** Cuts an output text into its tokens; a character outside the basic plane is never cut in two. */
export function splitTokens(text: string): string[] {
  const tokens: string[] = [];
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + charactersPerToken, text.length);
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end += 1;
    tokens.push(text.slice(start, end));
    start = end;
  }
  return tokens;
}
