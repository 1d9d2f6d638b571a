import type { JsonObject } from "../../canonical/json.ts";

/** One event as SSE text: Anthropic's clients drop events without an `event:` line. */
export const frame = (event: JsonObject): string =>
  `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`;

/**
 * The event that adds a piece of text to a block, as `frame` would write it: what most of a
 * stream's events are.
 */
export const deltaFrame = (
  index: number,
  { type, key, text }: { type: string; key: string; text: string },
): string =>
  `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},` +
  `"delta":{"type":"${type}","${key}":${JSON.stringify(text)}}}\n\n`;

/** What is sent while the upstream is silent, as Anthropic writes it. */
export const pingFrame = 'event: ping\ndata: {"type": "ping"}\n\n';
