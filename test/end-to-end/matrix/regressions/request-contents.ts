import type { RequestRow } from "./regression-row.ts";

const user = (content: unknown) => ({ role: "user", content });
const chatCall = (id: string, name: string, text: string) => ({
  id,
  type: "function",
  function: { name, arguments: text },
});
const svg = "data:image/svg+xml;base64,PHN2Zy8+";

/** Schemas, pictures and thoughts as they are asked. */
export const contentRows: readonly RequestRow[] = [
  {
    number: "C66",
    what: "a schema without type and properties gets both",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: {
      messages: [user("Go")],
      tools: [
        {
          type: "function",
          function: { name: "f", parameters: { $schema: "x", additionalProperties: false } },
        },
      ],
    },
    gets: {
      tools: [
        {
          name: "f",
          input_schema: {
            type: "object",
            $schema: "x",
            properties: {},
            additionalProperties: false,
          },
        },
      ],
    },
  },
  {
    number: "C70",
    what: "image/jpg is image/jpeg, whatever follows it",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: {
      messages: [
        user([
          { type: "image_url", image_url: { url: "data:IMAGE/JPG;charset=utf-8;base64,/9j/" } },
        ]),
      ],
    },
    gets: {
      messages: [
        user([
          { type: "image", source: { type: "base64", media_type: "image/jpeg", data: "/9j/" } },
        ]),
      ],
    },
  },
  {
    number: "C70",
    what: "a picture that Anthropic cannot read is refused by name",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: { messages: [user([{ type: "image_url", image_url: { url: svg } }])] },
    refused: "messages[0].content[0]",
  },
  {
    number: "C71",
    what: "a thought with its signature comes before its call",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: {
      messages: [
        user("Go"),
        {
          role: "assistant",
          content: null,
          reasoning_details: [{ type: "reasoning.text", text: "Hm.", signature: "s1", index: 0 }],
          tool_calls: [chatCall("a", "f", "{}")],
        },
        { role: "tool", tool_call_id: "a", content: "1" },
      ],
    },
    gets: {
      messages: [
        user("Go"),
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Hm.", signature: "s1" },
            { type: "tool_use", id: "a", name: "f", input: {} },
          ],
        },
        user([{ type: "tool_result", tool_use_id: "a", content: "1" }]),
      ],
    },
  },
  {
    number: "C73",
    what: "a thought with an empty signature is dropped, not altered",
    client: "openai-chat",
    upstream: "anthropic-messages",
    sends: {
      messages: [
        user("Go"),
        {
          role: "assistant",
          content: "So.",
          reasoning_details: [{ type: "reasoning.text", text: "Hm.", signature: "", index: 0 }],
        },
        user("On"),
      ],
    },
    gets: { messages: [user("Go"), { role: "assistant", content: "So." }, user("On")] },
  },
  {
    number: "C75",
    client: "anthropic-messages",
    upstream: "openai-chat",
    what: "thoughts are replayed to providers that want them with calls",
    deviations: { reasoningReplay: "reasoning_content" },
    sends: {
      messages: [
        user("Go"),
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Hm.", signature: "" },
            { type: "tool_use", id: "a", name: "f", input: {} },
          ],
        },
        user([{ type: "tool_result", tool_use_id: "a", content: "1" }]),
      ],
    },
    gets: {
      messages: [
        user("Go"),
        {
          role: "assistant",
          content: null,
          reasoning_content: "Hm.",
          tool_calls: [chatCall("a", "f", "{}")],
        },
        { role: "tool", tool_call_id: "a", content: "1" },
      ],
    },
  },
  {
    number: "C75",
    what: "thoughts are not replayed to providers that refuse them",
    client: "anthropic-messages",
    upstream: "openai-chat",
    sends: {
      messages: [
        user("Go"),
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Hm.", signature: "" },
            { type: "text", text: "So." },
          ],
        },
        user("On"),
      ],
    },
    gets: { messages: [user("Go"), { role: "assistant", content: "So." }, user("On")] },
  },
  {
    number: "C77",
    client: "openai-responses",
    upstream: "openai-responses",
    what: "a thought of which nothing but its id is known is not sent",
    sends: {
      store: false,
      input: [
        user("Go"),
        { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gw1:other:c2Vh" },
        user("On"),
      ],
    },
    gets: { input: [user("Go"), user("On")] },
  },
  {
    number: "C83",
    client: "anthropic-messages",
    upstream: "openai-chat",
    what: "the billing line that changes with every request is not sent to others",
    sends: {
      system: [
        { type: "text", text: "x-anthropic-billing-header: cc_version=1; cch=abc" },
        { type: "text", text: "Be brief." },
      ],
      messages: [user("Go")],
    },
    gets: { messages: [{ role: "system", content: "Be brief." }, user("Go")] },
  },
];
