import type { AnyClientName, ClientDialect } from "./client-dialect.ts";
import { fieldsOf, listOf, type Fields } from "./json-value.ts";

/** How a dialect writes a conversation in which the tool `look` is offered. */
interface TurnWriter {
  /** The member of a request that holds the turns. */
  member: string;
  tools: readonly Fields[];
  user(text: string): Fields;
  /** Returns the turns of a whole answer, as its client keeps them. */
  answered(body: Fields): readonly Fields[];
  results(calls: readonly CalledTool[], text: string): readonly Fields[];
}

/** A call whose result is given back. */
interface CalledTool {
  id: string;
  name: string;
}

const name = "look";
const schema = { type: "object", properties: {} };

const writers: Readonly<Record<AnyClientName, TurnWriter>> = {
  "openai-chat": {
    member: "messages",
    tools: [{ type: "function", function: { name, parameters: schema } }],
    user: (content) => ({ role: "user", content }),
    answered: ({ choices }) => [fieldsOf(fieldsOf(listOf(choices)[0]).message)],
    results: (calls, content) =>
      calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content })),
  },
  "anthropic-messages": {
    member: "messages",
    tools: [{ name, input_schema: schema }],
    user: (content) => ({ role: "user", content }),
    answered: ({ content }) => [{ role: "assistant", content }],
    results: (calls, content) => [
      {
        role: "user",
        content: calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content })),
      },
    ],
  },
  "openai-responses": {
    member: "input",
    tools: [{ type: "function", name, parameters: schema }],
    user: (content) => ({ role: "user", content }),
    answered: ({ output }) => listOf(output),
    results: (calls, output) =>
      calls.map(({ id }) => ({ type: "function_call_output", call_id: id, output })),
  },
  "google-generate": {
    member: "contents",
    tools: [{ functionDeclarations: [{ name, parametersJsonSchema: schema }] }],
    user: (text) => ({ role: "user", parts: [{ text }] }),
    answered: ({ candidates }) => [fieldsOf(fieldsOf(listOf(candidates)[0]).content)],
    results: (calls, output) => [
      {
        role: "user",
        parts: calls.map((call) => ({ functionResponse: { ...call, response: { output } } })),
      },
    ],
  },
};

/** Returns how a client writes conversations. */
export const turnsOf = (client: ClientDialect): TurnWriter => writers[client.name];

/** Returns a client's request with these turns, which offers the tool `look`. */
export function requestWith(client: ClientDialect, turns: readonly Fields[]): Fields {
  const { member, tools } = turnsOf(client);
  return { ...client.ask(""), tools, [member]: turns };
}
