import type { JsonObject } from "../../canonical/json.ts";

/** One event as SSE text: Anthropic's clients drop events without an `event:` line. */
export const frame = (event: JsonObject): string => `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`;

/** What is sent while the upstream is silent, as Anthropic writes it. */
export const pingFrame = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
