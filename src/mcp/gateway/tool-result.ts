import type { CallToolResult } from "@modelcontextprotocol/client";

type Content = CallToolResult["content"][number];

const bytesOf = (content: Content): number => Buffer.byteLength(JSON.stringify(content));

/** Cuts a text to a number of bytes, at a character's border. */
function cutText(text: string, bytes: number): string {
  const cut = Buffer.from(text, "utf8").subarray(0, bytes).toString("utf8");
  return cut.endsWith("\uFFFD") ? cut.slice(0, -1) : cut;
}

/**
 * Returns a result that is no larger than its server's limit. Texts are cut, other content that
 * does not fit is left out, and a notice at the end says so.
 */
export function cappedResult(result: CallToolResult, bytesMax: number): CallToolResult {
  if (Buffer.byteLength(JSON.stringify(result)) <= bytesMax) return result;
  const { structuredContent: _, ...rest } = result;
  const kept: Content[] = [];
  let free = bytesMax;
  let left = 0;
  for (const content of result.content) {
    const bytes = bytesOf(content);
    if (bytes <= free) kept.push(content);
    else {
      left += bytes;
      if (content.type === "text" && free > 0)
        kept.push({ type: "text", text: cutText(content.text, free) });
    }
    free = Math.max(0, free - bytes);
  }
  const notice = `[The result was cut to ${bytesMax} bytes; ${left} bytes of content did not fit. Ask for less at once.]`;
  return { ...rest, content: [...kept, { type: "text", text: notice }] };
}
