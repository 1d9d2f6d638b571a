const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The text of a message and how many parts beside text it has. */
export interface ContentText {
  text: string;
  mediaCount: number;
}

/**
 * Text of a message's content in any dialect: a string, null, or a list of parts of which those with
 * a `text` (or `thinking`, `refusal`) are text and all others are media.
 */
export function readContent(content: unknown): ContentText {
  if (typeof content === "string") return { text: content, mediaCount: 0 };
  const texts: string[] = [];
  let mediaCount = 0;
  for (const part of Array.isArray(content) ? content : []) {
    const text = partText(part);
    if (text === undefined) mediaCount += 1;
    else texts.push(text);
  }
  return { text: texts.join("\n"), mediaCount };
}

function partText(part: unknown): string | undefined {
  if (typeof part === "string") return part;
  if (!isRecord(part)) return undefined;
  for (const key of ["text", "thinking", "refusal"]) {
    const text = part[key];
    if (typeof text === "string") return text;
  }
  return undefined;
}
