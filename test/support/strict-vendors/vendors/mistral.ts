import {
  callsOf,
  follows,
  functionsOf,
  hasOtherCallId,
  hasStrayResult,
  isSet,
  lacksResults,
  someTurn,
  turnsOf,
} from "../reading.ts";
import { type Fields, rulesOf, type VendorRule } from "../rule.ts";
import { ask, chatCall, chatHistory, chatResult, chatTool } from "../samples.ts";

const unprocessable = ({ message, param }: { message: string; param: string | null }): Fields => ({
  object: "error",
  message: { detail: [{ type: "extra_forbidden", loc: ["body", param], msg: message }] },
  type: "invalid_request_error",
  param: null,
  code: null,
});
const refused = ({ message, code }: { message: string; code: string | null }): Fields => ({
  object: "error",
  message,
  type: code === "3280" ? "invalid_function_call" : "invalid_request_message_order",
  param: null,
  code,
});

const forbidden: readonly (readonly [field: string, value: unknown])[] = [
  ["max_completion_tokens", 900],
  ["seed", 1],
  ["logprobs", true],
  ["top_logprobs", 2],
  ["logit_bias", { "1": 1 }],
  ["top_k", 5],
  ["min_p", 0.1],
  ["user", "u"],
  ["stream_options", { include_usage: true }],
  ["store", true],
  ["service_tier", "auto"],
  ["verbosity", "low"],
  ["prompt_cache_key", "k"],
  ["reasoning", { effort: "high" }],
  ["functions", [{ name: "look_up" }]],
];

const large = "mistral-large-latest";
const extraSource = "github.com/editor-code-assistant/eca/issues/231 (2025-12-12)";
const orderSource = "github.com/datapizza-labs/datapizza-ai/issues/98 (2025-12-04)";
const nine = "abc123XYZ";
const called = chatCall({}, nine);
const answered = chatResult(nine);

/** What Mistral refuses. */
export const mistralRules: readonly VendorRule[] = [
  ...rulesOf({ vendor: "mistral", endpoint: "chat", status: 422, body: unprocessable }, [
    ...forbidden.map(([field, value]) => ({
      id: `extra-${field.replaceAll("_", "-")}`,
      when: isSet(field),
      says: "Extra inputs are not permitted",
      param: field,
      source: extraSource,
      violates: {
        model: large,
        body: ask({ [field]: value, ...(field === "stream_options" && { stream: true }) }),
      },
    })),
    {
      id: "extra-reasoning-content",
      when: someTurn((turn) =>
        ["reasoning_content", "reasoning", "reasoning_details"].some(
          (field) => turn[field] !== undefined,
        ),
      ),
      says: "Extra inputs are not permitted",
      param: "messages",
      source: "github.com/charmbracelet/crush/issues/1590 (2025-12-10)",
      violates: {
        model: large,
        body: {
          ...ask(),
          messages: [
            { role: "user", content: "Hi" },
            { role: "assistant", content: "So.", reasoning_content: "Hm." },
            { role: "user", content: "And?" },
          ],
        },
      },
    },
    {
      id: "extra-name",
      when: someTurn((turn) => turn["role"] !== "tool" && turn["name"] !== undefined),
      says: "Extra inputs are not permitted",
      param: "messages",
      source: "github.com/Gage-Technologies/mistral-go/pull/2 (2024-04-18)",
      violates: {
        model: large,
        body: { messages: [{ role: "user", name: "ann", content: "Hi" }] },
      },
    },
    {
      id: "developer",
      when: someTurn((turn) => turn["role"] === "developer"),
      says: "Input tag 'developer' found using 'role' does not match any of the expected tags: 'system', 'user', 'assistant', 'tool'",
      param: "messages",
      source: "docs.mistral.ai/api (2026-11)",
      violates: {
        model: large,
        body: {
          messages: [
            { role: "developer", content: "Be brief." },
            { role: "user", content: "Hi" },
          ],
        },
      },
    },
  ]),
  ...rulesOf({ vendor: "mistral", endpoint: "chat", body: refused }, [
    {
      id: "user-after-result",
      when: follows("user", "tool"),
      says: "Unexpected role 'user' after role 'tool'",
      code: "3230",
      source: orderSource,
      violates: {
        model: large,
        body: chatHistory(
          { call: called, result: answered },
          { role: "user", content: "And tomorrow?" },
        ),
      },
    },
    {
      id: "system-after-user",
      when: someTurn(
        (turn, index, turns) =>
          turn["role"] === "system" &&
          turns.slice(0, index).some((before) => before["role"] !== "system"),
      ),
      says: "Unexpected role 'system' after role 'user'",
      code: "3230",
      source: orderSource,
      violates: {
        model: large,
        body: {
          messages: [
            { role: "user", content: "Hi" },
            { role: "assistant", content: "So." },
            { role: "system", content: "Be brief." },
            { role: "user", content: "And?" },
          ],
        },
      },
    },
    {
      id: "call-id",
      when: hasOtherCallId(/^[a-zA-Z0-9]{9}$/),
      says: "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
      code: "3280",
      source: "github.com/nearai/ironclaw/issues/1241 (2026-03-16)",
      violates: { model: large, body: chatHistory() },
    },
    {
      id: "calls-without-results",
      when: lacksResults,
      says: "Not the same number of function calls and responses",
      code: "3230",
      source: "docs.mistral.ai/capabilities/function_calling (2026-11)",
      violates: {
        model: large,
        body: {
          messages: [
            { role: "user", content: "Hi" },
            called,
            { role: "assistant", content: "So." },
          ],
          tools: [chatTool()],
        },
      },
    },
    {
      id: "results-without-calls",
      when: hasStrayResult,
      says: "Unexpected role 'tool' after role 'user'",
      code: "3230",
      source: "github.com/charmbracelet/crush/issues/279 (2025-07-22)",
      violates: {
        model: large,
        body: { messages: [{ role: "user", content: "Hi" }, answered], tools: [chatTool()] },
      },
    },
    {
      id: "last-assistant",
      when: (request) => {
        const last = turnsOf(request).at(-1);
        return last?.["role"] === "assistant" && last["prefix"] !== true;
      },
      says: "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
      code: "3230",
      source:
        "github.com/huggingface/smolagents/issues/757 (2025-02-23), " +
        "docs.mistral.ai/capabilities/completion/prefix (2026-11)",
      violates: {
        model: large,
        body: {
          messages: [
            { role: "user", content: "Hi" },
            { role: "assistant", content: "So" },
          ],
        },
      },
    },
    {
      id: "empty-assistant",
      when: someTurn(
        (turn) =>
          turn["role"] === "assistant" &&
          callsOf(turn).length === 0 &&
          (turn["content"] === null || turn["content"] === "" || turn["content"] === undefined),
      ),
      says: "Assistant message must have either content or tool_calls, but not none.",
      code: "3240",
      source: "recalled",
      violates: {
        model: large,
        body: {
          messages: [
            { role: "user", content: "Hi" },
            { role: "assistant", content: "" },
            { role: "user", content: "And?" },
          ],
        },
      },
    },
    {
      id: "tool-name",
      when: (request) =>
        functionsOf(request).some(({ name }) => !/^[a-zA-Z0-9_-]{1,64}$/.test(String(name))),
      says: "Function name was look.up but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.",
      code: "3280",
      source: "recalled",
      violates: { model: large, body: ask({ tools: [chatTool({ name: "look.up" })] }) },
    },
  ]),
];
