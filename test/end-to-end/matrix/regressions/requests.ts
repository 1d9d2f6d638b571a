import type { RequestRow } from "./regression-row.ts";

const user = (content: unknown) => ({ role: "user", content });
const chatCall = (id: string, name: string, text: string) => ({
  id,
  type: "function",
  function: { name, arguments: text },
});
const schema = { type: "object", properties: {} };
const longId = `functions.search:${"0".repeat(80)}`;

/** Calls, results and tools as they are asked. */
export const requestRows: readonly RequestRow[] = [
  {
    number: "C15",
    what: "a tool_use without input has an empty one",
    client: "anthropic-messages",
    upstream: "openai-chat",
    sends: {
      messages: [
        user("Go"),
        { role: "assistant", content: [{ type: "tool_use", id: "a", name: "f" }] },
        user([{ type: "tool_result", tool_use_id: "a" }]),
      ],
    },
    gets: {
      messages: [
        user("Go"),
        { role: "assistant", content: null, tool_calls: [chatCall("a", "f", "{}")] },
        { role: "tool", tool_call_id: "a", content: "" },
      ],
    },
  },
  {
    number: "C16",
    what: "empty arguments are an empty object",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: {
      messages: [
        user("Go"),
        { role: "assistant", content: "", tool_calls: [chatCall("a", "f", "")] },
        { role: "tool", tool_call_id: "a", content: "1" },
      ],
    },
    gets: {
      messages: [
        user("Go"),
        { role: "assistant", content: [{ type: "tool_use", id: "a", name: "f", input: {} }] },
        user([{ type: "tool_result", tool_use_id: "a", content: "1" }]),
      ],
    },
  },
  {
    number: "C25",
    what: "a grammar's tool goes out as a function with an input",
    client: "openai-responses",
    upstream: "openai-chat",
    sends: {
      input: "Patch",
      tools: [
        { type: "custom", name: "apply_patch", description: "Patches.", format: { type: "text" } },
      ],
    },
    gets: {
      tools: [
        {
          type: "function",
          function: {
            name: "apply_patch",
            description: "Patches.",
            parameters: {
              type: "object",
              properties: { input: { type: "string", description: "The tool's whole input." } },
              required: ["input"],
              additionalProperties: false,
            },
          },
        },
      ],
    },
  },
  {
    number: "C26",
    what: "additional tools are tools, and no message",
    client: "openai-responses",
    upstream: "openai-chat",
    sends: {
      input: [
        {
          type: "additional_tools",
          role: "developer",
          tools: [{ type: "function", name: "f", parameters: schema }],
        },
        user("Go"),
      ],
    },
    gets: {
      messages: [user("Go")],
      tools: [{ type: "function", function: { name: "f", parameters: schema } }],
    },
  },
  {
    number: "C28",
    what: "stop_sequences are kept",
    client: "anthropic-messages",
    upstream: "openai-chat",
    sends: { messages: [user("Go")], stop_sequences: ["A", "B"] },
    gets: { stop: ["A", "B"] },
  },
  {
    number: "C28",
    what: "one stop text is a list of one",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: { messages: [user("Go")], stop: "X" },
    gets: { stop_sequences: ["X"] },
  },
  {
    number: "C54",
    what: "turns of the model without content are none",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: {
      messages: [
        user("A"),
        { role: "assistant", content: null },
        { role: "assistant", content: "" },
        { role: "assistant", content: [] },
        user("B"),
        { role: "assistant", content: " \n" },
      ],
    },
    gets: {
      messages: [
        user([
          { type: "text", text: "A" },
          { type: "text", text: "B" },
        ]),
      ],
    },
  },
  {
    number: "C54",
    what: "the end of a prefilled answer is trimmed",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: { messages: [user("A"), { role: "assistant", content: "The answer is \n" }] },
    gets: { messages: [user("A"), { role: "assistant", content: "The answer is" }] },
  },
  {
    number: "C56",
    what: "two answers cannot be had of a provider that gives one",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: { messages: [user("Go")], n: 2 },
    refused: "n",
  },
  {
    number: "C57",
    what: "results of parallel calls stand in one message (Messages)",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: {
      messages: [
        user("Go"),
        {
          role: "assistant",
          content: null,
          tool_calls: [chatCall("a", "f", "{}"), chatCall("b", "g", "{}")],
        },
        { role: "tool", tool_call_id: "a", content: "1" },
        { role: "tool", tool_call_id: "b", content: "2" },
      ],
    },
    gets: {
      messages: [
        user("Go"),
        {
          role: "assistant",
          content: [
            { type: "tool_use", id: "a", name: "f", input: {} },
            { type: "tool_use", id: "b", name: "g", input: {} },
          ],
        },
        user([
          { type: "tool_result", tool_use_id: "a", content: "1" },
          { type: "tool_result", tool_use_id: "b", content: "2" },
        ]),
      ],
    },
  },
  {
    number: "C58",
    client: "anthropic-messages",
    upstream: "openai-chat",
    what: "results come before the user's words, which keep their order",
    sends: {
      messages: [
        user("Go"),
        {
          role: "assistant",
          content: [
            { type: "tool_use", id: "a", name: "f", input: {} },
            { type: "tool_use", id: "b", name: "g", input: {} },
          ],
        },
        user([
          { type: "text", text: "First." },
          { type: "tool_result", tool_use_id: "a", content: "1" },
          { type: "text", text: "Then." },
          { type: "tool_result", tool_use_id: "b", content: "2" },
        ]),
      ],
    },
    gets: {
      messages: [
        user("Go"),
        {
          role: "assistant",
          content: null,
          tool_calls: [chatCall("a", "f", "{}"), chatCall("b", "g", "{}")],
        },
        { role: "tool", tool_call_id: "a", content: "1" },
        { role: "tool", tool_call_id: "b", content: "2" },
        user([
          { type: "text", text: "First." },
          { type: "text", text: "Then." },
        ]),
      ],
    },
  },
  {
    number: "C59",
    what: "thoughts keep their places between calls",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: {
      messages: [
        user("Go"),
        {
          role: "assistant",
          content: null,
          reasoning_details: [
            { type: "reasoning.text", text: "one", signature: "s1", index: 0, tool_call_id: "a" },
            { type: "reasoning.text", text: "two", signature: "s2", index: 1, tool_call_id: "b" },
          ],
          tool_calls: [chatCall("a", "f", "{}"), chatCall("b", "g", "{}")],
        },
        { role: "tool", tool_call_id: "a", content: "1" },
        { role: "tool", tool_call_id: "b", content: "2" },
      ],
    },
    gets: {
      messages: [
        user("Go"),
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "one", signature: "s1" },
            { type: "tool_use", id: "a", name: "f", input: {} },
            { type: "thinking", thinking: "two", signature: "s2" },
            { type: "tool_use", id: "b", name: "g", input: {} },
          ],
        },
        user([
          { type: "tool_result", tool_use_id: "a", content: "1" },
          { type: "tool_result", tool_use_id: "b", content: "2" },
        ]),
      ],
    },
  },
  {
    number: "C60",
    what: "a result of text alone is a text",
    client: "openai-chat",
    upstream: "openai-responses",
    sends: {
      messages: [
        user("Go"),
        { role: "assistant", content: null, tool_calls: [chatCall("a", "f", "{}")] },
        { role: "tool", tool_call_id: "a", content: [{ type: "text", text: "1" }] },
      ],
    },
    gets: {
      input: [
        { type: "message", ...user("Go") },
        { type: "function_call", call_id: "a", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "a", output: "1" },
      ],
    },
  },
  {
    number: "C61",
    what: "a call and its result share an id",
    client: "openai-responses",
    upstream: "openai-chat",
    sends: {
      input: [
        user("Go"),
        { type: "function_call", id: "x", call_id: "a", name: "f", arguments: "{}" },
        { type: "function_call_output", id: "x", call_id: "a", output: "1" },
      ],
    },
    gets: {
      messages: [
        user("Go"),
        { role: "assistant", content: null, tool_calls: [chatCall("a", "f", "{}")] },
        { role: "tool", tool_call_id: "a", content: "1" },
      ],
    },
  },
  {
    number: "C64",
    what: "a result that no call asked for is text",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: { messages: [user("Go"), { role: "tool", tool_call_id: "lost", content: "1" }] },
    gets: {
      messages: [
        user([
          { type: "text", text: "Go" },
          { type: "text", text: "Result of the tool call lost:" },
          { type: "text", text: "1" },
        ]),
      ],
    },
  },
  {
    number: "C64",
    what: "a tool with an empty type is the client's own",
    client: "anthropic-messages",
    upstream: "openai-chat",
    sends: {
      messages: [user("Go")],
      tools: [
        { type: "", name: "f", input_schema: schema },
        { type: null, name: "g", input_schema: schema },
      ],
    },
    gets: {
      tools: [
        { type: "function", function: { name: "f", parameters: schema } },
        { type: "function", function: { name: "g", parameters: schema } },
      ],
    },
  },
  {
    number: "C65",
    what: "parallel calls are forbidden without forcing one",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: {
      messages: [user("Go")],
      tools: [{ type: "function", function: { name: "f", parameters: schema } }],
      parallel_tool_calls: false,
    },
    gets: { tool_choice: { type: "auto", disable_parallel_tool_use: true } },
  },
  {
    number: "C65",
    what: "a choice among no tools is none",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: { messages: [user("Go")], tool_choice: "auto", parallel_tool_calls: false },
    gets: { tool_choice: undefined, tools: undefined },
  },
  {
    number: "C65",
    what: "none keeps the tools that history names",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: {
      messages: [user("Go")],
      tools: [{ type: "function", function: { name: "f", parameters: schema } }],
      tool_choice: "none",
    },
    gets: { tool_choice: { type: "none" }, tools: [{ name: "f", input_schema: schema }] },
  },
  {
    number: "C62",
    what: "ids that Anthropic refuses become legal ones, the same in call and result",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: {
      messages: [
        user("Go"),
        { role: "assistant", content: null, tool_calls: [chatCall(longId, "f", "{}")] },
        { role: "tool", tool_call_id: longId, content: "1" },
      ],
    },
  },
];
