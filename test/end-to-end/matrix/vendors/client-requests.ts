import {
  chatFormat,
  chatTool,
  claudeTool,
  eitherOf,
  geminiTool,
  olderSchema,
  responsesTool,
  schemaOf,
} from "../../../support/strict-vendors/samples.ts";
import type { Fields } from "../support/json-value.ts";

/** A request as clients of one dialect send it. */
interface ClientCase {
  what: string;
  /** The path, or the dialect whose path names the model. */
  path: "/chat/completions" | "/messages" | "/responses" | "google-generate";
  body: Fields;
}

const schema = schemaOf({ type: "integer", minimum: 1 });
const device = `user_${"0f".repeat(32)}_account_11111111-2222-3333-4444-555555555555_session_1`;
const said = { role: "user", content: "Answer in JSON: how warm is it?" };
const args = '{"city":"Bern"}';

const chat = (what: string, more: Fields, messages: readonly Fields[] = [said]): ClientCase => ({
  what: `chat: ${what}`,
  path: "/chat/completions",
  body: { messages, ...more },
});
const chatTurns = (call: Fields): Fields[] => [
  { role: "system", content: "Be brief." },
  said,
  {
    role: "assistant",
    content: null,
    tool_calls: [
      { id: "call_1", type: "function", function: { name: "look_up", arguments: args } },
    ],
    ...call,
  },
  { role: "tool", tool_call_id: "call_1", content: "21" },
];

const messages = (what: string, more: Fields, turns: readonly Fields[] = [said]): ClientCase => ({
  what: `Messages: ${what}`,
  path: "/messages",
  body: { max_tokens: 4_096, messages: turns, ...more },
});
const claudeTurns = (...thoughts: Fields[]): Fields[] => [
  said,
  {
    role: "assistant",
    content: [
      ...thoughts,
      { type: "tool_use", id: "toolu_1", name: "look_up", input: { city: "Bern" } },
    ],
  },
  {
    role: "user",
    content: [
      { type: "tool_result", tool_use_id: "toolu_1", content: "21" },
      { type: "text", text: "And tomorrow?" },
    ],
  },
];

const responses = (what: string, more: Fields, items: readonly Fields[] = [said]): ClientCase => ({
  what: `Responses: ${what}`,
  path: "/responses",
  body: { input: items, store: false, ...more },
});
const callItems: Fields[] = [
  said,
  { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }] },
  { type: "function_call", call_id: "call_1", name: "look_up", arguments: args },
  { type: "function_call_output", call_id: "call_1", output: "21" },
];

const gemini = (what: string, more: Fields, turns: readonly Fields[] = [asked]): ClientCase => ({
  what: `generateContent: ${what}`,
  path: "google-generate",
  body: { contents: turns, ...more },
});
const asked = { role: "user", parts: [{ text: "Answer in JSON: how warm is it?" }] };
const geminiCall = { functionCall: { name: "look_up", args: { city: "Bern" } } };
/** Google's text for a signature that its client does not have. */
const unsigned = { thoughtSignature: "skip_thought_signature_validator" };
const geminiTurns = (...parts: Fields[]): Fields[] => [
  asked,
  ...parts.map((part) => ({ role: "model", parts: [part] })),
  {
    role: "user",
    parts: [{ functionResponse: { name: "look_up", response: { output: "21" } } }],
  },
];

/** What agents and applications send, in the four dialects. */
export const clientRequests: readonly ClientCase[] = [
  chat("a question", {}),
  chat("a stream", { stream: true, stream_options: { include_usage: true } }),
  chat("tools", { tools: [chatTool()], tool_choice: "auto" }),
  chat("tools with an effort", { tools: [chatTool()], reasoning_effort: "high" }),
  chat("sampling", { temperature: 0.3, top_p: 0.9, max_tokens: 700 }),
  chat("penalties, seed and stop", {
    presence_penalty: 0.2,
    frequency_penalty: 0.2,
    seed: 7,
    stop: ["END"],
  }),
  chat("a small cap with a high effort", { max_tokens: 500, reasoning_effort: "high" }),
  chat("JSON", { response_format: { type: "json_object" } }),
  chat("a schema", chatFormat(schema, false)),
  chat("a history of calls", { tools: [chatTool()] }, chatTurns({})),
  chat(
    "a history of calls of another model, and a user after them",
    { tools: [chatTool()], user: "customer-1" },
    [...chatTurns({ reasoning_content: "Hm." }), said],
  ),
  chat("instructions of a developer", {}, [{ role: "developer", content: "Be brief." }, said]),
  messages("a question", { system: "Be brief." }),
  messages("Claude Code", {
    metadata: { user_id: device },
    tools: [claudeTool()],
    stream: true,
    thinking: { type: "adaptive" },
    output_config: { effort: "high" },
  }),
  messages("a tool of an older draft", { tools: [claudeTool({ input_schema: olderSchema })] }),
  messages("tools without reasoning", { tools: [claudeTool()], thinking: { type: "disabled" } }),
  messages("a history of calls", { tools: [claudeTool()] }, claudeTurns()),
  messages(
    "tools without reasoning, of which one is to be called, behind others",
    { tools: [claudeTool()], tool_choice: { type: "any" }, thinking: { type: "disabled" } },
    claudeTurns(),
  ),
  messages(
    "a history of thoughts of another model",
    { tools: [claudeTool()], temperature: 1 },
    claudeTurns({ type: "thinking", thinking: "Hm.", signature: "gw1:elsewhere:sealed" }),
  ),
  messages("stop texts", { stop_sequences: ["END"] }),
  responses("a question", { instructions: "Be brief." }),
  responses("tools", { tools: [responsesTool()], tool_choice: "auto" }),
  responses("Codex", {
    tools: [responsesTool({ strict: false }), { type: "web_search" }],
    reasoning: { effort: "medium", summary: "auto" },
    include: ["reasoning.encrypted_content"],
    parallel_tool_calls: false,
    prompt_cache_key: "session-1",
    stream: true,
  }),
  responses("a history of calls", { tools: [responsesTool()] }, callItems),
  responses("a schema", {
    text: { format: { type: "json_schema", name: "answer", schema, strict: false } },
  }),
  responses("sampling", { temperature: 0.3, max_output_tokens: 700 }),
  gemini("a question", { systemInstruction: { parts: [{ text: "Be brief." }] } }),
  gemini("Gemini CLI", {
    stream: true,
    tools: [geminiTool()],
    generationConfig: { temperature: 1, topP: 0.95, thinkingConfig: { includeThoughts: true } },
  }),
  gemini("a tool with one of two arguments", {
    tools: [geminiTool({ parametersJsonSchema: eitherOf })],
  }),
  gemini("a level", { generationConfig: { thinkingConfig: { thinkingLevel: "LOW" } } }),
  gemini(
    "a history of calls, of which one has no signature",
    { tools: [geminiTool()] },
    geminiTurns({ ...geminiCall, ...unsigned }),
  ),
  gemini(
    "a streamed history of thoughts of another model",
    { tools: [geminiTool()] },
    geminiTurns(
      { text: "Hm.", thought: true },
      { text: "Let me" },
      { text: " " },
      { text: "look." },
      { ...geminiCall, thoughtSignature: "CioBVKhc7nQ=" },
    ),
  ),
  gemini("a schema", {
    generationConfig: { responseMimeType: "application/json", responseJsonSchema: schema },
  }),
  gemini(
    "JSON of which nothing says so",
    { generationConfig: { responseMimeType: "application/json" } },
    [{ role: "user", parts: [{ text: "How warm is it?" }] }],
  ),
  gemini("sampling and safety", {
    generationConfig: { temperature: 0.3, topK: 40, maxOutputTokens: 700, seed: 7 },
    safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "OFF" }],
  }),
];
