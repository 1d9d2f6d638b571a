import type { MeteredUsage } from "../../canonical/usage.ts";
import { fieldsOf, readOpenaiUsage as readChatUsage } from "../read-openai-usage.ts";

export { estimateUsage } from "../../canonical/usage.ts";
export { readChatUsage };

/** Usage of a chat response or chunk: in its usual place, or where Groq and Moonshot put it in streams. */
export function readUsageOf(body: unknown): MeteredUsage | undefined {
  const fields = fieldsOf(body);
  if (fields.usage) return readChatUsage(fields.usage);
  if (fields.x_groq) return readChatUsage(fieldsOf(fields.x_groq).usage);
  const choice: unknown = Array.isArray(fields.choices) ? fields.choices[0] : undefined;
  return choice === undefined ? undefined : readChatUsage(fieldsOf(choice).usage);
}
