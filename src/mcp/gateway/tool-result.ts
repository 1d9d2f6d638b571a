import type { CallToolResult } from "@modelcontextprotocol/client";

type Content = CallToolResult["content"][number];

const bytesOf = (content: Content): number => Buffer.byteLength(JSON.stringify(content));

/** Cuts a text to a number of bytes, at a character's border. */
function cutText(text: string, bytes: number): string {
  const cut = Buffer.from(text, "utf8").subarray(0, bytes).toString("utf8");
  return cut.endsWith("\uFFFD") ? cut.slice(0, -1) : cut;
}

/** Bytes of JSON of a text of no characters. */
const emptyTextBytes = bytesOf({ type: "text", text: "" });

/** Cuts a text so that it takes at most a number of bytes as content, with what JSON escapes. */
function textWithin(text: string, bytes: number): Content {
  let kept = Math.max(0, bytes - emptyTextBytes);
  for (;;) {
    const content: Content = { type: "text", text: cutText(text, kept) };
    const size = bytesOf(content);
    if (size <= bytes || kept <= 0) return content;
    const share = (bytes - emptyTextBytes) / (size - emptyTextBytes);
    kept = Math.min(kept - 1, Math.floor(kept * share));
  }
}

/** Returns what a result has beside its content, where that is small enough to be kept. */
function besideContent(result: CallToolResult, bytesMax: number): Omit<CallToolResult, "content"> {
  const { structuredContent: _, content: _content, _meta: meta, ...rest } = result;
  const isSmall = Buffer.byteLength(JSON.stringify(meta ?? {})) <= bytesMax / 4;
  return { ...rest, ...(meta !== undefined && isSmall && { _meta: meta }) };
}

/**
 * Returns a result that is no larger than its server's limit, as JSON. Texts are cut, other content
 * that does not fit is left out, and a notice at the end says so.
 */
export function cappedResult(result: CallToolResult, bytesMax: number): CallToolResult {
  if (Buffer.byteLength(JSON.stringify(result)) <= bytesMax) return result;
  const beside = besideContent(result, bytesMax);
  const noticeOf = (left: number): Content => ({
    type: "text",
    text: `[The result was cut to ${bytesMax} bytes; ${left} bytes of content did not fit. Ask for less at once.]`,
  });
  const whole = bytesOf(noticeOf(Number.MAX_SAFE_INTEGER));
  let free = bytesMax - Buffer.byteLength(JSON.stringify({ ...beside, content: [] })) - whole;
  const kept: Content[] = [];
  let left = 0;
  for (const content of result.content) {
    // The comma between two contents is a byte too.
    const bytes = bytesOf(content) + 1;
    if (bytes <= free) kept.push(content);
    else {
      left += bytes - 1;
      if (content.type === "text" && free > emptyTextBytes + 1)
        kept.push(textWithin(content.text, free - 1));
    }
    free = Math.max(0, free - bytes);
  }
  return { ...beside, content: [...kept, noticeOf(left)] };
}
