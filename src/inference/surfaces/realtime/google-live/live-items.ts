import { asObject } from "../../../dialects/shared/wire-fields.ts";

/** What an item of a conversation is at Gemini Live. */
export type LiveItem =
  | { turn: { role: "user" | "model"; parts: Record<string, unknown>[] } }
  | { functionResponse: { id: string; name: string; response: Record<string, unknown> } }
  | { lost: string };

/** Returns a part of a message; undefined where it has no counterpart. */
function partOf(content: unknown): Record<string, unknown> | undefined {
  const { type, text, audio, transcript, image_url: url } = asObject(content) ?? {};
  switch (type) {
    case "input_text":
    case "output_text":
    case "text":
      return typeof text === "string" ? { text } : undefined;
    case "input_audio":
      return typeof audio === "string"
        ? { inlineData: { mimeType: "audio/pcm;rate=24000", data: audio } }
        : undefined;
    case "output_audio":
      return typeof transcript === "string" ? { text: transcript } : undefined;
    case "input_image": {
      const [, mimeType, data] = /^data:([^;,]+);base64,(.+)$/s.exec(String(url)) ?? [];
      return data === undefined ? undefined : { inlineData: { mimeType, data } };
    }
    default:
      return undefined;
  }
}

/** Returns the JSON object of a text, or an object that contains the text. */
function objectOf(text: unknown): Record<string, unknown> {
  try {
    const parsed = asObject(JSON.parse(String(text)));
    if (parsed !== undefined) return { ...parsed };
  } catch {
    // Outputs of tools are often no JSON.
  }
  return { output: text };
}

/** Returns an item as Gemini Live takes it; `names` are those of the functions by their calls. */
export function liveItem(sent: unknown, names: ReadonlyMap<string, string>): LiveItem {
  const item = asObject(sent) ?? {};
  const { type, role, content, call_id: callId, output } = item;
  if (type === "function_call_output") {
    const id = String(callId);
    return { functionResponse: { id, name: names.get(id) ?? "", response: objectOf(output) } };
  }
  if (type !== "message" || role === "system") return { lost: `item.${String(role ?? type)}` };
  const parts = (Array.isArray(content) ? content : []).map(partOf);
  if (parts.length === 0 || parts.includes(undefined)) return { lost: "item.content" };
  const kept = parts.filter((part) => part !== undefined);
  return { turn: { role: role === "assistant" ? "model" : "user", parts: kept } };
}
