import { isProgram, type Finding, type Rule } from "./rule.ts";
import type { SourceFile } from "./source-tree.ts";

/**
 * Fields that one wire format or two have and the rest of the house has other names for. Not among
 * them are names that the house itself uses, such as `maxOutputTokens` of the canonical form, and
 * `prompt_tokens` of records and of the database.
 */
const fields: Readonly<Record<string, readonly string[]>> = {
  "openai-chat": [
    "completion_tokens_details",
    "finish_reason",
    "function_call",
    "image_url",
    "include_usage",
    "input_audio",
    "logit_bias",
    "max_completion_tokens",
    "prompt_tokens_details",
    "reasoning_content",
    "reasoning_details",
    "reasoning_effort",
    "response_format",
    "stream_options",
    "tool_call_id",
    "tool_calls",
    "tool_choice",
    "top_logprobs",
  ],
  "openai-responses": [
    "function_call_output",
    "incomplete_details",
    "input_image",
    "input_tokens_details",
    "max_output_tokens",
    "output_tokens_details",
  ],
  "anthropic-messages": [
    "budget_tokens",
    "cache_control",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "content_block",
    "content_block_delta",
    "input_schema",
    "message_delta",
    "output_config",
    "stop_reason",
    "stop_sequences",
    "tool_result",
    "tool_use",
  ],
  "google-generate": [
    "cachedContentTokenCount",
    "candidatesTokenCount",
    "functionDeclarations",
    "functionResponse",
    "generationConfig",
    "includeThoughts",
    "inlineData",
    "promptTokenCount",
    "systemInstruction",
    "thinkingConfig",
    "thoughtsTokenCount",
    "usageMetadata",
  ],
  "amazon-converse": ["additionalModelRequestFields", "inferenceConfig", "toolConfig"],
};

/** A place outside of the dialects that names fields, and which. */
interface Exception {
  names: readonly string[];
  why: string;
}

const declaredParameters = [
  "logit_bias",
  "max_completion_tokens",
  "reasoning_effort",
  "response_format",
  "stream_options",
  "tool_choice",
  "top_logprobs",
];
const geminiFields = fields["google-generate"] ?? [];

/** Files, or folders with a slash at the end. */
const exceptions: Readonly<Record<string, Exception>> = {
  "src/inference/canonical/": {
    names: ["cache_control", "reasoning_content", "reasoning_details", "tool_calls"],
    why: "finish reasons have the names of chat; seals and markers remember the format they came in",
  },
  "src/inference/catalog/": {
    names: [...declaredParameters, "input_audio"],
    why: "the contract's models declare parameters, caps and prices by the names of chat",
  },
  "src/inference/routing/candidate.ts": {
    names: ["reasoning_effort"],
    why: "reads what models declare",
  },
  "src/inference/providers/": {
    names: [...declaredParameters, "cache_control", "reasoning_content", "reasoning_details"],
    why: "a provider's deviation names the field in which it deviates",
  },
  "src/inference/surfaces/realtime/": {
    names: [
      "cachedContentTokenCount",
      "functionDeclarations",
      "functionResponse",
      "function_call",
      "function_call_output",
      "generationConfig",
      "image_url",
      "inlineData",
      "input_audio",
      "input_image",
      "max_output_tokens",
      "promptTokenCount",
      "systemInstruction",
      "thoughtsTokenCount",
      "tool_choice",
      "usageMetadata",
    ],
    why: "events of OpenAI's Realtime API and frames of Gemini Live are wire formats of their own",
  },
  "src/inference/responses/": {
    names: ["function_call", "function_call_output", "stream_options", "tool_choice"],
    why: "keeps requests and items of the Responses API, as the contract has them",
  },
  "src/inference/surfaces/embeddings/": {
    names: [
      "image_url",
      "inlineData",
      "promptTokenCount",
      "prompt_tokens_details",
      "usageMetadata",
    ],
    why: "embeddings are wire formats of their own, one file each",
  },
  "src/inference/surfaces/images/": {
    names: [
      ...geminiFields,
      "completion_tokens_details",
      "image_url",
      "input_tokens_details",
      "output_tokens_details",
      "prompt_tokens_details",
      "response_format",
    ],
    why: "pictures are wire formats of their own, one file each",
  },
  "src/inference/surfaces/audio/": {
    names: [...geminiFields, "input_audio", "response_format"],
    why: "sound has wire formats of its own, one file each",
  },
  "src/mcp/tools/media/": {
    names: ["input_audio", "response_format"],
    why: "asks the endpoints of pictures and sound for what agents name alike",
  },
  "src/endpoints/media/": {
    names: ["image_url", "input_audio", "input_image", "response_format"],
    why: "documents requests for pictures and sound in OpenAPI",
  },
  "src/inference/surfaces/completion-shaper.ts": {
    names: ["finish_reason", "top_logprobs"],
    why: "a form of chat, which has its names",
  },
  "src/inference/surfaces/own-completions.ts": {
    names: ["include_usage", "stream_options"],
    why: "the form of completions asks for its usage as chat does",
  },
  "src/inference/surfaces/bedrock/": {
    names: [
      ...(fields["amazon-converse"] ?? []),
      ...(fields["anthropic-messages"] ?? []),
      "image_url",
      "tool_choice",
    ],
    why: "puts Bedrock's requests into the form of messages, and their answers back",
  },
  "src/inference/surfaces/ollama/": {
    names: [
      "finish_reason",
      "image_url",
      "include_usage",
      "reasoning_content",
      "response_format",
      "stream_options",
      "tool_call_id",
      "tool_calls",
      "top_logprobs",
    ],
    why: "a form of chat, which has its names",
  },
  "src/inference/sandbox/": {
    names: [
      ...declaredParameters,
      ...geminiFields,
      "input_tokens_details",
      "toolConfig",
      "tool_calls",
      "tool_result",
    ],
    why: "declares models, and answers as Google's server would, which no client dialect does",
  },
  "src/endpoints/inference/": {
    names: [
      "content_block",
      "content_block_delta",
      "finish_reason",
      "incomplete_details",
      "message_delta",
      "prompt_tokens_details",
      "stop_reason",
      "tool_calls",
    ],
    why: "documents answers and their events in OpenAPI",
  },
  "src/endpoints/doors/": {
    names: [...(fields["amazon-converse"] ?? []), "finish_reason", "output_config"],
    why: "documents requests and answers in OpenAPI",
  },
  "src/endpoints/gemini/": {
    names: [...geminiFields, "image_url"],
    why: "documents Google's answers in OpenAPI, and puts vectors into their form",
  },
  "src/endpoints/inference/tools/": {
    names: [
      "content_block",
      "finish_reason",
      "function_call",
      "function_call_output",
      "image_url",
      "incomplete_details",
      "input_image",
      "input_schema",
      "stop_reason",
      "tool_call_id",
      "tool_calls",
      "tool_choice",
      "tool_result",
      "tool_use",
    ],
    why: "runs tools between the rounds of an answer, in the client's own form",
  },
  "src/endpoints/catalog/models.ts": {
    names: ["max_completion_tokens"],
    why: "a field of the contract's models",
  },
  "src/endpoints/catalog/model-endpoints.ts": {
    names: ["max_completion_tokens", "tool_choice"],
    why: "OpenRouter's form of a model's providers has caps and parameters by the names of chat",
  },
  "src/endpoints/account/presets.ts": {
    names: [...declaredParameters, "include_usage"],
    why: "the contract's PresetConfig has the names of chat",
  },
  "src/endpoints/mcp/mcp-servers.ts": {
    names: ["input_schema"],
    why: "records show the schema of a tool under this name",
  },
  "src/platform/kernel/models/preset-settings.ts": {
    names: declaredParameters,
    why: "the contract's PresetConfig has the names of chat",
  },
  "src/endpoints/insights/": {
    names: ["finish_reason"],
    why: "a field of the contract's generation records",
  },
  "src/insights/": { names: ["finish_reason"], why: "a column of generation records" },
  "src/platform/storage/migrations/": {
    names: ["finish_reason"],
    why: "a column of generation records",
  },
  "src/platform/telemetry/usage-metrics.ts": {
    names: ["input_audio", "input_image"],
    why: "kinds of tokens, by the names of the metric's label",
  },
  "src/cli/import/": {
    names: [
      ...declaredParameters,
      "cache_creation_input_tokens",
      "cache_read_input_tokens",
      "cachedContentTokenCount",
      "candidatesTokenCount",
      "max_output_tokens",
      "promptTokenCount",
      "stop_sequences",
    ],
    why: "reads other gateways' configuration",
  },
  "src/documentation/setting-meanings.ts": {
    names: ["max_completion_tokens"],
    why: "a key of switchyard.yaml",
  },
  "src/documentation/deviation-texts.ts": {
    names: [...declaredParameters, "cache_control", "reasoning_content", "reasoning_details"],
    why: "says of each deviation which field it changes",
  },
  "src/documentation/generated-pages.ts": {
    names: ["content_block_delta", "message_delta"],
    why: "shows a stream to readers",
  },
};

const named = new RegExp(`(?<!\\w)(?:${Object.values(fields).flat().join("|")})(?!\\w)`, "g");

/** The lines of a file without its comments, which may name fields. */
const codeLines = ({ lines }: SourceFile): string[] =>
  lines
    .join("\n")
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ""))
    .split("\n")
    .map((line) => line.replace(/(^|\s)\/\/.*/, ""));

const exceptionsOf = (path: string): readonly string[] =>
  Object.entries(exceptions)
    .filter(([place]) => (place.endsWith("/") ? path.startsWith(place) : path === place))
    .flatMap(([, { names }]) => names);

/** What is known of a wire format stands in its folder: outside, its fields have no names. */
export const wireFields: Rule = {
  name: "wire fields",
  fix: "Ask the dialect for what the field says, or name the file and the reason in test/tidy/wire-fields.ts.",
  check: ({ files }) =>
    files
      .filter(({ path }) => isProgram(path) && !path.startsWith("src/inference/dialects/"))
      .flatMap((file) => {
        const allowed = new Set(exceptionsOf(file.path));
        return codeLines(file).flatMap((text, index): Finding[] =>
          [...text.matchAll(named)]
            .filter(([name]) => !allowed.has(name))
            .map(([name]) => ({
              path: file.path,
              line: index + 1,
              problem: `names ${name}, a field of a wire format`,
            })),
        );
      }),
};
