import type { ClientDialect } from "./dialect.ts";
import { capFields } from "./shared/output-cap.ts";
import { asObject } from "./shared/wire-fields.ts";

type JsonFields = Readonly<Record<string, unknown>>;

/** Sets members over those of a body; members that are objects are merged. */
function over(body: JsonFields, members: JsonFields): JsonFields {
  const merged = Object.entries(members).map(([name, value]): [string, unknown] => {
    const [own, given] = [asObject(body[name]), asObject(value)];
    return [name, own !== undefined && given !== undefined ? { ...own, ...given } : value];
  });
  return { ...body, ...Object.fromEntries(merged) };
}

/** Returns a body with an output cap of at most `tokens`. */
export function withCap(
  { presetFields }: Pick<ClientDialect, "presetFields">,
  body: JsonFields,
  tokens: number,
): JsonFields {
  const config = asObject(body["generationConfig"]);
  const most = config?.["maxOutputTokens"];
  if (typeof most === "number")
    return over(body, { generationConfig: { maxOutputTokens: Math.min(most, tokens) } });
  const own = capFields.filter((name) => typeof body[name] === "number");
  if (own.length === 0) return over(body, presetFields.settings({ max_tokens: tokens }, body));
  const lowered = own.map((name): [string, number] => [name, Math.min(Number(body[name]), tokens)]);
  return { ...body, ...Object.fromEntries(lowered) };
}

/** Returns a body with a reasoning effort in place of its own. */
export const withEffort = (
  { presetFields }: Pick<ClientDialect, "presetFields">,
  body: JsonFields,
  effort: string,
): JsonFields => over(body, presetFields.settings({ reasoning: { effort } }, {}));

const textPart = (type: string, text: string): JsonFields =>
  type === "" ? { text } : { type, text };

/** Returns a list with a text added to its last message, where that is the user's, or behind it. */
function withText(
  list: readonly unknown[],
  { member, type, text }: { member: "content" | "parts"; type: string; text: string },
): unknown[] {
  const last = asObject(list.at(-1));
  const content = last?.[member];
  if (last?.["role"] !== "user")
    return [...list, { role: "user", [member]: [textPart(type, text)] }];
  if (typeof content === "string")
    return [...list.slice(0, -1), { ...last, [member]: `${content}\n\n${text}` }];
  const parts = Array.isArray(content) ? (content as unknown[]) : [];
  return [...list.slice(0, -1), { ...last, [member]: [...parts, textPart(type, text)] }];
}

/**
 * Returns a body whose conversation ends with a text for the model. It stands last, so that the
 * prompt's cached prefix stays as it is.
 */
export function withLastText(body: JsonFields, text: string): JsonFields {
  const { messages, input, contents } = body;
  if (Array.isArray(messages))
    return { ...body, messages: withText(messages, { member: "content", type: "text", text }) };
  if (typeof input === "string") return { ...body, input: `${input}\n\n${text}` };
  if (Array.isArray(input))
    return { ...body, input: withText(input, { member: "content", type: "input_text", text }) };
  if (Array.isArray(contents))
    return { ...body, contents: withText(contents, { member: "parts", type: "", text }) };
  return body;
}

/** Returns the tool calls of an item of a conversation as text; undefined where it has none. */
function callsOf(item: unknown): string | undefined {
  const fields = asObject(item);
  if (fields === undefined) return undefined;
  if (fields["type"] === "function_call")
    return JSON.stringify([fields["name"], fields["arguments"]]);
  const calls = Array.isArray(fields["tool_calls"]) ? (fields["tool_calls"] as unknown[]) : [];
  const blocks = Array.isArray(fields["content"]) ? (fields["content"] as unknown[]) : [];
  const made = [
    ...calls.map((call) => asObject(asObject(call)?.["function"])),
    ...blocks.map(asObject).filter((block) => block?.["type"] === "tool_use"),
  ].map((call) => [call?.["name"], call?.["arguments"] ?? call?.["input"]]);
  return made.length === 0 ? undefined : JSON.stringify(made);
}

/** Returns how often the last tool call of a conversation was made in a row; 0 without any. */
export function repeatedCalls({ messages, input }: JsonFields): number {
  const items: readonly unknown[] = Array.isArray(messages)
    ? messages
    : Array.isArray(input)
      ? input
      : [];
  const calls = items.flatMap((item) => callsOf(item) ?? []);
  const last = calls.at(-1);
  const other = calls.findLastIndex((call) => call !== last);
  return calls.length - 1 - other;
}
