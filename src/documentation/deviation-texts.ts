import { deviationNames } from "../inference/providers/provider-definition.ts";
import { table } from "./api-pages.ts";

/** The beginning of names that leave out a field. */
const refusesPrefix = "refuses_";

/** What each name changes in requests to a server, and the server that needs it. */
export const deviationTexts: Readonly<Record<string, readonly [effect: string, when: string]>> = {
  max_tokens: ["The output cap is sent as `max_tokens`.", "The default; most servers."],
  max_completion_tokens: [
    "The output cap is sent as `max_completion_tokens`.",
    "The server refuses `max_tokens`, or ignores it, so that answers are longer than asked for.",
  ],
  either_max_tokens: [
    "The output cap keeps the name that the client sent.",
    "The server knows both names.",
  ],
  no_stream_options: [
    "`stream_options` is not sent.",
    "The server answers 400 to it. Usage then comes by itself, or is estimated.",
  ],
  system_only_first: [
    "System messages after the first place are sent as text of the user.",
    "The model's template refuses them, as Qwen's does.",
  ],
  developer_role: [
    "The role `developer` is kept.",
    "The server knows it. Elsewhere such messages are sent as `system`.",
  ],
  custom_tools: [
    "Tools with free text as input are kept.",
    "The server knows `type: custom`. Elsewhere they are wrapped in functions.",
  ],
  reasoning_object: [
    "`reasoning: { effort, max_tokens }` is sent in place of `reasoning_effort`.",
    "The server speaks as OpenRouter does.",
  ],
  replay_reasoning_content: [
    "Earlier reasoning is sent back as `reasoning_content`.",
    "The model needs its reasoning beside its tool calls, as DeepSeek's and Qwen's do.",
  ],
  replay_reasoning: [
    "Earlier reasoning is sent back as `reasoning`.",
    "The server names it so, as vLLM does with gpt-oss.",
  ],
  replay_reasoning_details: [
    "Earlier reasoning is sent back as `reasoning_details`.",
    "The server speaks as OpenRouter does.",
  ],
  replay_content: [
    "Earlier reasoning is sent back as parts of `content`.",
    "The server speaks as Mistral does.",
  ],
  cache_control: [
    "Marks of cached prompts are sent as `cache_control`.",
    "The server knows Anthropic's marks on chat.",
  ],
  prompt_cache_breakpoint: [
    "Marks of cached prompts are sent as `prompt_cache_breakpoint`.",
    "The server knows these marks.",
  ],
  message_threads: [
    "`thread` of Messages is sent.",
    "The server holds conversations. Elsewhere such requests are refused.",
  ],
  text_only: [
    "Pictures, files and sound are left out of conversations and named as lost.",
    "The server answers 400 to them.",
  ],
  json_without_schema: [
    "An answer by a schema is asked for as any JSON object, with the schema in the prompt.",
    "The server knows `json_object`, and no `json_schema`.",
  ],
  no_empty_turns: [
    "Turns of the assistant without text and calls are left out.",
    "The server answers 400 to them.",
  ],
  no_user_after_tool: [
    "A turn of the assistant is put between a tool's result and the user's text.",
    "The server refuses the user's turn there, as Mistral does.",
  ],
  plain_schemas: [
    "Schemas of functions have a type in every form and beside listed values, definitions at the top, and no tuples.",
    "The server's validator refuses the whole request for one schema, as Moonshot's does.",
  ],
  no_named_tool_choice: [
    "A forced call of one function becomes a forced call of any.",
    "The server takes `tool_choice: required`, and no function's name.",
  ],
  no_reasoning_summary: [
    "`reasoning.summary` of Responses is not sent.",
    "The server answers 400 to it.",
  ],
  nine_character_call_ids: [
    "Ids of tool calls are nine letters and digits.",
    "The server refuses others, as Mistral does.",
  ],
  reasoning_beside_calls: [
    "Turns with calls carry `reasoning_content`, empty where none is known.",
    "The model refuses calls without it while it reasons, as DeepSeek's and Moonshot's do.",
  ],
  responses_socket: [
    "Responses are asked for on WebSockets where the client uses one.",
    "The server serves `/responses` on WebSockets.",
  ],
  own_completions: [
    "`/v1/completions` is sent to the server's own `/completions`.",
    "The server has this endpoint. Servers that are `like: vllm` have it by themselves.",
  ],
  llama_cpp_completions: [
    "The same, without `best_of`, `suffix` and `echo`; the gateway begins the answer with the prompt itself.",
    "The server is llama.cpp's, which answers 400 to them.",
  ],
};

/** Returns the page of the names that `deviations:` takes. */
export function deviationsPage(): string {
  const fields = deviationNames.filter((name) => name.startsWith(refusesPrefix));
  const rows = Object.entries(deviationTexts).map(([name, [effect, when]]) => [
    `\`${name}\``,
    effect,
    when,
  ]);
  return `# Deviations of servers

A server that speaks OpenAI's dialect may still refuse parts of it. \`deviations:\` of a provider names what it does otherwise, and the
gateway fits each request to it.

\`\`\`yaml
providers:
  - id: house
    dialect: openai-chat
    base_url: http://127.0.0.1:8080/v1
    like: vllm # all deviations of a provider that the gateway knows
    deviations: [llama_cpp_completions, refuses_seed] # more of them, or others in their place
    models: [{ id: house/qwen3, context_length: 32768, pricing: { prompt: "0", completion: "0" } }]
\`\`\`

\`like\` takes over those of a known provider; a name in \`deviations\` takes precedence over it. Providers that the gateway knows need
neither. What is left out of a request is named in \`X-Service-Translation-Loss\`.

## Names

${table(["name", "effect", "for a server that"], rows)}

## Fields that a server refuses

\`refuses_FIELD\` leaves a field out, for a server that answers 400 to it: ${fields
    .map((name) => `\`${name}\``)
    .join(", ")}.
`;
}
