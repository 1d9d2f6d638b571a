import {
  all,
  at,
  blocksOf,
  callsOf,
  functionsOf,
  isAbove,
  isSet,
  lacksResults,
  not,
  saysJson,
  someTurn,
} from "../reading.ts";
import { type Fields, rulesOf, type VendorRequest, type VendorRule } from "../rule.ts";
import { ask, chatCall, chatFormat, chatHistory, chatTool, schemaOf } from "../samples.ts";

const envelope = ({ message }: { message: string }): Fields => ({
  error: { message, type: "invalid_request_error", param: null, code: "invalid_request_error" },
});

/**
 * V4 thinks unless the request turns it off, by `thinking` alone (BerriAI/litellm#27453, 2026-05);
 * the older names are fixed.
 */
const thinking = /deepseek-(?:v[4-9]|reasoner)/;
const thinks = ({ model, body }: VendorRequest): boolean =>
  thinking.test(model) && at(body, "thinking.type") !== "disabled";

/** Flash reads the pictures of users. */
const sees = ({ model }: VendorRequest, { role }: Fields): boolean =>
  model.includes("flash") && role === "user";

const pro = "deepseek-v4-pro";
const guide = "api-docs.deepseek.com/guides/thinking_mode (2026-11)";
const choiceSource = "github.com/deepseek-ai/DeepSeek-V3/issues/1376 (2026-05-30)";
const forced = ({ body }: VendorRequest): boolean =>
  body["tool_choice"] === "required" || at(body, "tool_choice.type") === "function";

/** What DeepSeek refuses. */
export const deepseekRules: readonly VendorRule[] = rulesOf(
  { vendor: "deepseek", endpoint: "chat", body: envelope },
  [
    {
      id: "calls-without-reasoning",
      models: thinking,
      when: all(
        thinks,
        someTurn(
          (turn) =>
            turn["role"] === "assistant" &&
            callsOf(turn).length > 0 &&
            typeof turn["reasoning_content"] !== "string",
        ),
      ),
      says: "The `reasoning_content` in the thinking mode must be passed back to the API.",
      source: "github.com/qwersyk/Newelle/issues/404 (2026-07-04)",
      violates: { model: pro, body: chatHistory() },
    },
    {
      id: "choice-required",
      models: thinking,
      when: all(thinks, forced),
      says: "Thinking mode does not support this tool_choice",
      source: choiceSource,
      violates: { model: pro, body: ask({ tools: [chatTool()], tool_choice: "required" }) },
    },
    {
      id: "choice-function",
      models: thinking,
      when: all(thinks, ({ body }) => at(body, "tool_choice.type") === "function"),
      says: "Thinking mode does not support this tool_choice",
      source: choiceSource,
      violates: {
        model: "deepseek-v4-flash",
        body: ask({
          tools: [chatTool()],
          tool_choice: { type: "function", function: { name: "look_up" } },
        }),
      },
    },
    {
      id: "json-schema",
      when: ({ body }) => at(body, "response_format.type") === "json_schema",
      says: "This response_format type is unavailable now",
      source: "api-docs.deepseek.com/guides/json_mode (2026-11)",
      violates: { model: pro, body: ask(chatFormat(schemaOf({ type: "string" }))) },
    },
    {
      id: "json-without-the-word",
      when: all(({ body }) => at(body, "response_format.type") === "json_object", not(saysJson)),
      says: "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'.",
      source: "api-docs.deepseek.com/guides/json_mode (2026-11)",
      violates: { model: pro, body: ask({ response_format: { type: "json_object" } }) },
    },
    {
      id: "developer",
      when: someTurn((turn) => turn["role"] === "developer"),
      says: "Failed to deserialize the JSON body into the target type: messages[0].role: unknown variant `developer`,...",
      source: "api-docs.deepseek.com/api/create-chat-completion (2026-11)",
      violates: {
        model: pro,
        body: {
          messages: [
            { role: "developer", content: "Be brief." },
            { role: "user", content: "Hi" },
          ],
        },
      },
    },
    {
      id: "parts",
      when: (request) =>
        someTurn((turn) =>
          blocksOf(turn).some(
            ({ type = "text" }) =>
              type !== "text" && !(type === "image_url" && sees(request, turn)),
          ),
        )(request),
      says: "Failed to deserialize the JSON body into the target type: messages[0]: unknown variant `image_url`, expected `text`",
      source: "api-docs.deepseek.com/guides/vision (2026-11)",
      violates: {
        model: pro,
        body: {
          messages: [
            {
              role: "user",
              content: [{ type: "image_url", image_url: { url: "https://x.test/a.png" } }],
            },
          ],
        },
      },
    },
    ...(["logprobs", "top_logprobs"] as const).map((field) => ({
      id: field.replace("_", "-"),
      models: thinking,
      when: all(thinks, isSet(field)),
      says: `deepseek-reasoner does not support this parameter: ${field}`,
      source: guide,
      violates: {
        model: pro,
        body: ask({ logprobs: true, ...(field === "top_logprobs" && { top_logprobs: 2 }) }),
      },
    })),
    {
      id: "temperature-range",
      when: isAbove("temperature", 2),
      says: "Invalid temperature value, the valid range of temperature is [0, 2.0]",
      source: "api-docs.deepseek.com/api/create-chat-completion (2026-11)",
      violates: { model: pro, body: ask({ temperature: 2.5 }) },
    },
    {
      id: "calls-without-results",
      when: lacksResults,
      says: "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'....",
      source: "api-docs.deepseek.com/guides/tool_calls (2026-11)",
      violates: {
        model: pro,
        body: {
          messages: [
            { role: "user", content: "Hi" },
            chatCall({ reasoning_content: "Hm." }),
            { role: "user", content: "And?" },
          ],
          tools: [chatTool()],
        },
      },
    },
    {
      id: "tool-name",
      when: (request) =>
        functionsOf(request).some(({ name }) => !/^[a-zA-Z0-9_-]{1,64}$/.test(String(name))),
      says: "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern...",
      source: "api-docs.deepseek.com/api/create-chat-completion (2026-11)",
      violates: { model: pro, body: ask({ tools: [chatTool({ name: "look.up" })] }) },
    },
  ],
);
