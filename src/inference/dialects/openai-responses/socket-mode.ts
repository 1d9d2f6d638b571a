import { editMembers, memberText } from "../../../platform/kernel/json/json-members.ts";
import type { SocketContinuation, SocketFrame, SocketMode } from "../socket-mode.ts";

/**
 * Responses over a WebSocket: `response.create` frames with the members of the body, answered by the
 * events of the stream. The socket remembers its latest response although nothing is stored.
 * Source: OpenAI, "WebSocket mode" (2026-11).
 */
export const socketMode: SocketMode = {
  requestFrame(text, continued) {
    const edits = new Map<string, string | undefined>([
      ["type", '"response.create"'],
      ["stream", undefined],
    ]);
    const added = continued && newItems(text, continued);
    if (continued !== undefined && added !== undefined) {
      edits.set("input", added);
      edits.set("previous_response_id", JSON.stringify(continued.responseId));
    }
    return editMembers(text, edits);
  },
  readFrame(text) {
    const delta = /^\{"type":"(response\.[\w.]+\.delta)"/.exec(text)?.[1];
    if (delta !== undefined && !lineBreak.test(text))
      return { kind: "event", sse: sseOf(delta, text) };
    const event = eventOf(text);
    const { type } = event ?? {};
    if (event === undefined || typeof type !== "string" || !/^[\w.]+$/.test(type))
      return { kind: "malformed", sse: "" };
    const sse = sseOf(type, lineBreak.test(text) ? JSON.stringify(event) : text);
    if (type === "error") return { kind: "error", sse };
    return terminal.test(type) ? ended(event, { type, sse }) : { kind: "event", sse };
  },
};

/** A break between members, which would end a line of the stream. */
const lineBreak = /[\r\n]/;

const sseOf = (type: string, data: string): string => `event: ${type}\ndata: ${data}\n\n`;

type WireEvent = Readonly<Record<string, unknown>>;

const terminal = /^response\.(?:completed|incomplete|failed|cancelled)$/;

/** Returns a frame's event; undefined where the text is no JSON object. */
function eventOf(text: string): WireEvent | undefined {
  try {
    const event: unknown = JSON.parse(text);
    return typeof event === "object" && event !== null ? (event as WireEvent) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the last frame of a response, which can be continued unless it failed. */
function ended(event: WireEvent, { type, sse }: { type: string; sse: string }): SocketFrame {
  const { id } = Object(event["response"]) as { id?: unknown };
  const isKept = type === "response.completed" || type === "response.incomplete";
  return { kind: "end", sse, responseId: isKept && typeof id === "string" ? id : undefined };
}

/**
 * Returns the JSON text of the items that are new; undefined where items of the conversation were
 * left out or added for the provider, so that their number does not identify them.
 */
function newItems(text: string, { itemCount, newCount }: SocketContinuation): string | undefined {
  const items: unknown = JSON.parse(memberText(text, "input") ?? "null");
  if (!Array.isArray(items) || items.length !== itemCount) return undefined;
  return JSON.stringify(items.slice(itemCount - newCount));
}
