import { type Settings, type Shared, columnOf } from "./draft.ts";

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

/** The text of a message's content; parts that are no text are left out. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .flatMap((part: unknown) =>
      isObject(part) && typeof part["text"] === "string" ? [part["text"]] : [],
    )
    .join("\n");
}

const numberText = (value: unknown): string => (typeof value === "number" ? String(value) : "");

function settingsOf(body: Readonly<Record<string, unknown>>): Partial<Settings> {
  const { model, temperature, max_tokens: cap, tools } = body;
  return {
    ...(typeof model === "string" ? { model } : {}),
    temperature: numberText(temperature),
    maxTokens: numberText(cap ?? body["max_completion_tokens"]),
    ...(Array.isArray(tools) && tools.length > 0 ? { tools: JSON.stringify(tools, null, 2) } : {}),
  };
}

/**
 * What the playground opens a chat request with: its settings, what was said before, and its last
 * message to be sent again. Pictures and calls of tools are left out.
 */
export function sharedOfRequest(body: Readonly<Record<string, unknown>>): Shared {
  const messages = (Array.isArray(body["messages"]) ? body["messages"] : []).filter(isObject);
  const system = [
    textOf(body["system"]),
    ...messages
      .filter(({ role }) => role === "system" || role === "developer")
      .map(({ content }) => textOf(content)),
  ]
    .filter((text) => text !== "")
    .join("\n\n");
  const spoken = messages.filter(({ role }) => role === "user" || role === "assistant");
  const said: [string, string][] = [];
  let prompt = "";
  for (const { role, content } of spoken) {
    const text = textOf(content);
    if (role === "user") prompt = prompt === "" ? text : `${prompt}\n\n${text}`;
    else if (prompt !== "") {
      said.push([prompt, text]);
      prompt = "";
    }
  }
  return { columns: [columnOf({ ...settingsOf(body), system })], prompt, said };
}
