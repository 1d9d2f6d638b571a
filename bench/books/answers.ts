import { z } from "zod";

const completionSchema = z.object({ id: z.string(), usage: z.object({}).loose() });
const chunkSchema = z.object({ id: z.string() });

/**
 * The id of a whole chat answer, streamed or not; undefined where it is cut off, an error, or
 * anything else that a client would not take for one.
 */
export function answerId(text: string): string | undefined {
  if (text.startsWith("data:")) return streamId(text);
  try {
    return completionSchema.parse(JSON.parse(text)).id;
  } catch {
    return undefined;
  }
}

function streamId(text: string): string | undefined {
  const events = text
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice("data:".length).trim());
  if (events.at(-1) !== "[DONE]" || text.includes('"error"')) return undefined;
  const [first] = events;
  try {
    return chunkSchema.parse(JSON.parse(first ?? "")).id;
  } catch {
    return undefined;
  }
}
