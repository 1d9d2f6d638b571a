import {
  ask,
  chatCall,
  chatFormat,
  chatHistory,
  chatResult,
  chatTool,
  eitherOf,
  oddMembers,
  olderSchema,
  schemaOf,
} from "../../../support/strict-vendors/samples.ts";
import type { Fields } from "../support/json-value.ts";

const forced = { tools: [chatTool()], tool_choice: "required" };
const thinking = (more: Fields): Fields => ask({ reasoning_effort: "high", ...more });
const markers = {
  messages: [
    {
      role: "system",
      content: Array.from({ length: 5 }, (_, index) => ({
        type: "text",
        text: `Rule ${index}.`,
        cache_control: { type: "ephemeral" },
      })),
    },
    { role: "user", content: "Hi" },
  ],
};
const prefilled = (text: string): { messages: readonly Fields[] } => ({
  messages: [
    { role: "user", content: "Hi" },
    { role: "assistant", content: text },
    { role: "user", content: "And?" },
  ],
});
/** A conversation that ends in the model's own turn. */
const begun: Fields = { messages: prefilled("So")["messages"].slice(0, 2) };
const held = (property: Fields): Fields => ask(chatFormat(schemaOf(property)));
const longId = "functions.look_up:0";
const longerId = "c".repeat(65);
const longCalls = chatHistory({ call: chatCall({}, longerId), result: chatResult(longerId) });
const oddCalls = chatHistory({ call: chatCall({}, longId), result: chatResult(longId) });
const cutCalls = {
  messages: [{ role: "user", content: "Hi" }, chatCall(), { role: "user", content: "And?" }],
  tools: [chatTool()],
};
const strayResult = { messages: [{ role: "user", content: "Hi" }, chatResult()] };
/** A conversation with a picture in a result. */
const seen = chatHistory({
  result: {
    ...chatResult(),
    content: [{ type: "image_url", image_url: { url: "data:image/png;base64,iVBO" } }],
  },
});
const toolless = { ...chatHistory(), tools: undefined };
const twins = ask({ tools: [chatTool(), chatTool({ description: "Looks it up elsewhere." })] });
const searching = ask({ tools: [chatTool()], web_search_options: {} });
const badName = ask({ tools: [chatTool({ name: "look.up" })] });

/** Requests of chat clients that would break a rule of another dialect if translated word by word. */
export const translated: Readonly<Record<string, Fields>> = {
  "anthropic/newer-temperature": ask({ temperature: 0.2 }),
  "anthropic/newer-top-p": ask({ top_p: 0.5 }),
  "anthropic/newer-top-k": ask({ top_k: 5 }),
  "anthropic/temperature-and-top-p": ask({ temperature: 0.5, top_p: 0.5 }),
  "anthropic/temperature-range": ask({ temperature: 1.5 }),
  "anthropic/unknown-frequency-penalty": ask({ frequency_penalty: 0.5 }),
  "anthropic/unknown-seed": ask({ seed: 1 }),
  "anthropic/unknown-n": ask({ n: 1 }),
  "anthropic/unknown-stop": ask({ stop: "END" }),
  "anthropic/unknown-response-format": ask({ response_format: { type: "json_object" } }),
  "anthropic/unknown-reasoning-effort": ask({ reasoning_effort: "low" }),
  "anthropic/unknown-user": ask({ user: "u" }),
  "anthropic/budget-on-newer": ask({ reasoning: { max_tokens: 2_048 }, max_tokens: 4_096 }),
  "anthropic/thinking-disabled": ask({ reasoning_effort: "none" }),
  "anthropic/forced-tool-on-thinker": ask(forced),
  "anthropic/adaptive-on-older": thinking({}),
  "anthropic/effort-on-older": thinking({}),
  "anthropic/effort-level": ask({ reasoning_effort: "xhigh" }),
  "anthropic/budget-too-small": ask({ reasoning: { max_tokens: 512 }, max_tokens: 4_096 }),
  "anthropic/budget-above-cap": thinking({ max_tokens: 1_025 }),
  "anthropic/temperature-while-thinking": thinking({ temperature: 0 }),
  "anthropic/top-k-while-thinking": thinking({ top_k: 5 }),
  "anthropic/top-p-while-thinking": thinking({ top_p: 0.5 }),
  "anthropic/forced-tool-while-thinking": thinking(forced),
  "anthropic/calls-without-thought": {
    ...chatHistory({}, { role: "user", content: "And?" }),
    reasoning_effort: "high",
  },
  "anthropic/foreign-signature": chatHistory({
    call: chatCall({
      reasoning_details: [{ type: "reasoning.text", text: "Hm.", signature: "gw1:google:x" }],
    }),
  }),
  "anthropic/moved-thought": chatHistory({
    call: chatCall({
      content: "I look it up.",
      reasoning_details: ["place0", "place2"].map((seal, index) => ({
        type: "reasoning.text",
        text: "Hm.",
        signature: `gw1:anthropic:${seal}`,
        index,
        ...(index > 0 && { tool_call_id: "call_1" }),
      })),
    }),
  }),
  "anthropic/empty-text": {
    messages: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "" },
      { role: "user", content: "And?" },
    ],
  },
  "anthropic/trailing-white-space": prefilled("So "),
  "anthropic/prefill-on-newer": begun,
  "anthropic/calls-without-results": cutCalls,
  "anthropic/results-without-calls": strayResult,
  "anthropic/call-id": oddCalls,
  "anthropic/call-ids-twice": chatHistory({}, chatCall(), chatResult()),
  "anthropic/history-without-tools": toolless,
  "anthropic/tool-name": badName,
  "anthropic/member-name": ask({ tools: [chatTool({ parameters: oddMembers })] }),
  "anthropic/older-schema": ask({ tools: [chatTool({ parameters: olderSchema })] }),
  "anthropic/tool-names-twice": twins,
  "anthropic/top-level-forms": ask({ tools: [chatTool({ parameters: eitherOf })] }),
  "anthropic/search-of-both-domains": ask({
    tools: [
      {
        type: "openrouter:web_search",
        parameters: { allowed_domains: ["a.test"], excluded_domains: ["b.test"] },
      },
    ],
  }),
  "anthropic/too-many-markers": markers,
  "anthropic/marker-lifetimes": {
    messages: [undefined, "1h"].map((ttl, index) => ({
      role: index === 0 ? "system" : "user",
      content: [{ type: "text", text: "Hi", cache_control: { type: "ephemeral", ttl } }],
    })),
  },
  "anthropic/blank-stop": ask({ stop: ["\n\n", "END"] }),
  "anthropic/image-type": {
    messages: [
      {
        role: "user",
        content: [
          { type: "image_url", image_url: { url: "data:image/jpg;base64,/9j/4AAQSkZJRg==" } },
        ],
      },
    ],
  },
  "anthropic/no-cap": ask(),
  "anthropic/cap-above-model": thinking({}),
  "anthropic/schema-minimum": held({ type: "integer", minimum: 1 }),
  "anthropic/schema-maximum": held({ type: "number", maximum: 9 }),
  "anthropic/schema-exclusive-minimum": held({ type: "number", exclusiveMinimum: 0 }),
  "anthropic/schema-exclusive-maximum": held({ type: "number", exclusiveMaximum: 9 }),
  "anthropic/schema-multiple-of": held({ type: "integer", multipleOf: 5 }),
  "anthropic/schema-min-length": held({ type: "string", minLength: 1 }),
  "anthropic/schema-max-length": held({ type: "string", maxLength: 9 }),
  "anthropic/schema-max-items": held({ type: "array", items: { type: "string" }, maxItems: 9 }),
  "anthropic/schema-unique-items": held({
    type: "array",
    items: { type: "string" },
    uniqueItems: true,
  }),
  "anthropic/schema-min-properties": held({ type: "object", properties: {}, minProperties: 1 }),
  "anthropic/schema-one-of": held({ oneOf: [{ type: "string" }, { type: "number" }] }),
  "anthropic/schema-not": held({ type: "number", not: { const: 3 } }),
  "anthropic/schema-min-items": held({ type: "array", items: { type: "string" }, minItems: 2 }),
  "anthropic/schema-format": held({ type: "string", format: "color" }),
  "anthropic/schema-open-object": ask(
    chatFormat(schemaOf({ type: "string" }, { additionalProperties: true })),
  ),
  "anthropic/strict-tool-bounds": ask({
    tools: [chatTool({ strict: true, parameters: schemaOf({ type: "integer", minimum: 1 }) })],
  }),
  "amazon-bedrock/history-without-tools": toolless,
  "amazon-bedrock/calls-without-results": cutCalls,
  "amazon-bedrock/texts-beside-results": chatHistory({}, { role: "user", content: "And?" }),
  "amazon-bedrock/texts-beside-calls": chatHistory({ call: chatCall({ content: "Wait." }) }),
  "amazon-bedrock/result-status": cutCalls,
  "amazon-bedrock/image-in-a-result": seen,
  "amazon-bedrock/call-id": oddCalls,
  "amazon-bedrock/call-ids-twice": {
    ...toolless,
    messages: [
      { role: "user", content: "Hi" },
      chatCall({ tool_calls: [1, 2].flatMap(() => chatCall()["tool_calls"] as Fields[]) }),
      chatResult(),
      chatResult(),
    ],
  },
  "amazon-bedrock/tool-name": ask({ tools: [chatTool({ name: "look.up" })] }),
  "amazon-bedrock/empty-description": ask({ tools: [chatTool({ description: "" })] }),
  "amazon-bedrock/schema-type": ask({ tools: [chatTool({ parameters: undefined })] }),
  "amazon-bedrock/blank-text": {
    messages: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: " " },
      { role: "user", content: "And?" },
    ],
  },
  "amazon-bedrock/first-turn": {
    messages: [
      { role: "assistant", content: "Hello." },
      { role: "user", content: "Hi" },
    ],
  },
  "amazon-bedrock/alternating-turns": {
    messages: [
      { role: "user", content: "Hi" },
      { role: "user", content: "there" },
    ],
  },
  "amazon-bedrock/temperature-range": ask({ temperature: 1.5 }),
  "amazon-bedrock/choice-any": ask(forced),
  "amazon-bedrock/choice-tool": ask({
    tools: [chatTool()],
    tool_choice: { type: "function", function: { name: "look_up" } },
  }),
  "amazon-bedrock/strict-without-support": ask({ tools: [chatTool({ strict: true })] }),
  "amazon-bedrock/high-effort-with-cap": thinking({ max_tokens: 900 }),
  "amazon-bedrock/cache-point-in-tools": ask({
    tools: [{ ...chatTool(), cache_control: { type: "ephemeral" } }],
  }),
  "amazon-bedrock/cache-point-behind-result": { ...chatHistory(), prompt_cache_key: "session-1" },
  "amazon-bedrock/cache-point-without-support": markers,
  "openai/responses-call-id-length": longCalls,
  "google/json-beside-forced-functions": ask({
    ...forced,
    response_format: { type: "json_object" },
  }),
  "google/json-beside-functions": ask({
    tools: [chatTool()],
    response_format: { type: "json_object" },
  }),
  "google/json-beside-search": ask({
    web_search_options: {},
    response_format: { type: "json_object" },
  }),
  "google/level-and-budget": thinking({ max_tokens: 4_096 }),
  "google/level-on-older": thinking({}),
  "google/level-minimal-on-pro": ask({ reasoning_effort: "minimal" }),
  "google/level-minimal-on-newer": ask({ reasoning_effort: "none" }),
  "google/budget-off-on-pro": ask({ reasoning_effort: "none" }),
  "google/budget-range": ask({ reasoning_effort: "max" }),
  "google/thinking-on-others": thinking({}),
  "google/penalty-frequency": ask({ frequency_penalty: 0.5 }),
  "google/penalty-presence": ask({ presence_penalty: 0.5 }),
  "google/too-many-stops": ask({ stop: ["a", "b", "c", "d"] }),
  "google/seed-range": ask({ seed: 2 ** 32 }),
  "google/top-k-zero": ask({ top_k: 0 }),
  "google/unknown-config": ask({ min_p: 0.1, repetition_penalty: 1.1, logit_bias: { "1": 1 } }),
  "google/no-contents": { messages: [{ role: "system", content: "Say hi." }] },
  "google/model-turn-last": begun,
  "google/role": {
    messages: [
      { role: "developer", content: "Be brief." },
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello." },
      { role: "system", content: "Be briefer." },
      { role: "user", content: "And?" },
    ],
  },
  "google/empty-part": {
    messages: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "" },
      { role: "user", content: "And?" },
    ],
  },
  "google/results-per-turn": cutCalls,
  "google/media-in-results": seen,
  "google/call-after-user": {
    messages: (chatHistory()["messages"] as Fields[]).slice(1),
    tools: [chatTool()],
  },
  "google/thought-signature": chatHistory(),
  "google/function-name": ask({ tools: [chatTool({ name: "9lives" })] }),
  "google/duplicate-declaration": twins,
  "google/parameters-subset": ask({
    tools: [chatTool({ parameters: schemaOf({ type: "string" }, { $schema: "https://x.test" }) })],
  }),
  "openai/responses-search-in-json-mode": ask({
    web_search_options: {},
    response_format: { type: "json_object" },
  }),
  "openai/responses-search-with-least-effort": ask({
    web_search_options: {},
    reasoning_effort: "minimal",
  }),
  "google/search-beside-functions": searching,
  "google/search-unannounced": searching,
  "google/auto-beside-search": { ...searching, tool_choice: "auto" },
  "google/announced-on-older": searching,
  "google/names-beside-auto": ask({
    tools: [chatTool()],
    tool_choice: {
      type: "allowed_tools",
      allowed_tools: {
        mode: "auto",
        tools: [{ type: "function", function: { name: "look_up" } }],
      },
    },
  }),
  "google/config-without-functions": ask({ tool_choice: "auto" }),
  "google/arguments-are-objects": chatHistory(),
};

/**
 * Rules of Converse for Claude, which Bedrock is asked for through InvokeModel instead, and rules
 * with a test of their own.
 */
export const unreached: readonly string[] = [
  "amazon-bedrock/member-name",
  "google/other-account",
  "openai/responses-search-of-older-models",
  "amazon-bedrock/temperature-and-top-p",
  "amazon-bedrock/sampling-while-thinking",
  "amazon-bedrock/budget-above-cap",
  "amazon-bedrock/forced-tool-while-thinking",
  "amazon-bedrock/schema-bounds",
];
