import { expect } from "bun:test";
import type { AnsweredCase } from "./pair-case.ts";
import { chat, gemini, message, response, said } from "./upstream-heads.ts";

/** A seal as a client keeps it: with the name of its maker in front, where it is no native one. */
const sealed: unknown = expect.stringMatching(/^(?:gw1:[a-z-]+:)?c2Vh$/);
/** What Responses has one seal for: a thought's text with its signature. */
const sealedThought: unknown = expect.stringMatching(/^gw1:[a-z-]+:(?:c2Vh$|th1\.)/);

/** What upstreams say, and what their clients see of it. */
export const answerCases: readonly AnsweredCase[] = [
  {
    what: "text, of an input that was cached in part, with tokens of thoughts",
    answers: {
      "openai-chat": chat(
        { message: { role: "assistant", content: "Sunny." }, finish_reason: "stop" },
        {
          prompt_tokens: 130,
          completion_tokens: 7,
          total_tokens: 137,
          prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 20 },
          completion_tokens_details: { reasoning_tokens: 4 },
        },
      ),
      "anthropic-messages": message(
        [{ type: "text", text: "Sunny." }],
        { stop_reason: "end_turn" },
        {
          input_tokens: 10,
          cache_creation_input_tokens: 20,
          cache_read_input_tokens: 100,
          output_tokens: 7,
          output_tokens_details: { thinking_tokens: 4 },
        },
      ),
      "openai-responses": response(
        [said("Sunny.")],
        {},
        {
          input_tokens: 130,
          input_tokens_details: { cached_tokens: 100, cache_write_tokens: 20 },
          output_tokens: 7,
          output_tokens_details: { reasoning_tokens: 4 },
          total_tokens: 137,
        },
      ),
      "google-generate": gemini([{ text: "Sunny." }], "STOP", {
        promptTokenCount: 130,
        cachedContentTokenCount: 100,
        candidatesTokenCount: 3,
        thoughtsTokenCount: 4,
        totalTokenCount: 137,
      }),
    },
    sees: {
      "openai-chat": {
        choices: [{ message: { role: "assistant", content: "Sunny." }, finish_reason: "stop" }],
        usage: {
          prompt_tokens: 130,
          completion_tokens: 7,
          total_tokens: 137,
          prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 20 },
          completion_tokens_details: { reasoning_tokens: 4 },
        },
      },
      "anthropic-messages": {
        type: "message",
        role: "assistant",
        content: [{ type: "text", text: "Sunny." }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage: {
          input_tokens: 10,
          cache_creation_input_tokens: 20,
          cache_read_input_tokens: 100,
          output_tokens: 7,
          output_tokens_details: { thinking_tokens: 4 },
        },
      },
      "openai-responses": {
        object: "response",
        status: "completed",
        output: [
          {
            type: "message",
            role: "assistant",
            status: "completed",
            content: [{ type: "output_text", text: "Sunny." }],
          },
        ],
        usage: {
          input_tokens: 130,
          input_tokens_details: { cached_tokens: 100, cache_write_tokens: 20 },
          output_tokens: 7,
          output_tokens_details: { reasoning_tokens: 4 },
          total_tokens: 137,
        },
      },
    },
    // Gemini does not say what it wrote to its cache.
    except: {
      "openai-chat -> google-generate": {
        usage: {
          prompt_tokens: 130,
          completion_tokens: 7,
          total_tokens: 137,
          prompt_tokens_details: { cached_tokens: 100 },
        },
      },
      "anthropic-messages -> google-generate": {
        usage: { input_tokens: 30, cache_read_input_tokens: 100, output_tokens: 7 },
      },
      "openai-responses -> google-generate": {
        usage: {
          input_tokens: 130,
          input_tokens_details: { cached_tokens: 100 },
          output_tokens: 7,
          total_tokens: 137,
        },
      },
    },
  },
  {
    what: "a thought with its seal, and text",
    answers: {
      "openai-chat": chat({
        message: {
          role: "assistant",
          content: "So.",
          reasoning_content: "Because.",
          reasoning_details: [
            { type: "reasoning.text", text: "Because.", signature: "c2Vh", index: 0 },
          ],
        },
        finish_reason: "stop",
      }),
      "anthropic-messages": message(
        [
          { type: "thinking", thinking: "Because.", signature: "c2Vh" },
          { type: "text", text: "So." },
        ],
        { stop_reason: "end_turn" },
      ),
      "openai-responses": response([
        {
          id: "rs_1",
          type: "reasoning",
          summary: [{ type: "summary_text", text: "Because." }],
          encrypted_content: "c2Vh",
        },
        said("So."),
      ]),
      "google-generate": gemini(
        [{ text: "Because.", thought: true, thoughtSignature: "c2Vh" }, { text: "So." }],
        "STOP",
      ),
    },
    sees: {
      "openai-chat": {
        choices: [
          {
            message: {
              content: "So.",
              reasoning_content: "Because.",
              reasoning_details: [{ type: "reasoning.text", text: "Because.", signature: sealed }],
            },
            finish_reason: "stop",
          },
        ],
      },
      "anthropic-messages": {
        content: [
          { type: "thinking", thinking: "Because.", signature: sealed },
          { type: "text", text: "So." },
        ],
        stop_reason: "end_turn",
      },
      "openai-responses": {
        output: [
          {
            type: "reasoning",
            summary: [{ type: "summary_text", text: "Because." }],
            encrypted_content: sealedThought,
          },
          { type: "message", content: [{ type: "output_text", text: "So." }] },
        ],
        status: "completed",
      },
    },
    // The seal of Responses is over no text.
    except: {
      "openai-chat -> openai-responses": {
        choices: [
          {
            message: {
              content: "So.",
              reasoning_content: "Because.",
              reasoning_details: [
                { type: "reasoning.summary", summary: "Because." },
                { type: "reasoning.encrypted", data: sealed },
              ],
            },
            finish_reason: "stop",
          },
        ],
      },
      "anthropic-messages -> openai-responses": {
        content: [
          { type: "thinking", thinking: "Because.", signature: "" },
          { type: "redacted_thinking", data: sealed },
          { type: "text", text: "So." },
        ],
      },
    },
  },
  {
    what: "text and two calls, one of them without arguments",
    answers: {
      "openai-chat": chat({
        message: {
          role: "assistant",
          content: "Looking.",
          tool_calls: [
            {
              id: "call_1",
              type: "function",
              function: { name: "get_weather", arguments: '{"city":"Łódź"}' },
            },
            { id: "call_2", type: "function", function: { name: "get_time", arguments: "" } },
          ],
        },
        finish_reason: "tool_calls",
      }),
      "anthropic-messages": message(
        [
          { type: "text", text: "Looking." },
          { type: "tool_use", id: "call_1", name: "get_weather", input: { city: "Łódź" } },
          { type: "tool_use", id: "call_2", name: "get_time", input: {} },
        ],
        { stop_reason: "tool_use" },
      ),
      "openai-responses": response([
        said("Looking."),
        {
          id: "fc_1",
          type: "function_call",
          call_id: "call_1",
          name: "get_weather",
          arguments: '{"city":"Łódź"}',
          status: "completed",
        },
        {
          id: "fc_2",
          type: "function_call",
          call_id: "call_2",
          name: "get_time",
          arguments: "{}",
          status: "completed",
        },
      ]),
      "google-generate": gemini(
        [
          { text: "Looking." },
          { functionCall: { id: "call_1", name: "get_weather", args: { city: "Łódź" } } },
          { functionCall: { id: "call_2", name: "get_time" } },
        ],
        "STOP",
      ),
    },
    sees: {
      "openai-chat": {
        choices: [
          {
            message: {
              content: "Looking.",
              tool_calls: [
                {
                  id: "call_1",
                  type: "function",
                  function: { name: "get_weather", arguments: '{"city":"Łódź"}' },
                },
                { id: "call_2", type: "function", function: { name: "get_time", arguments: "{}" } },
              ],
            },
            finish_reason: "tool_calls",
          },
        ],
      },
      "anthropic-messages": {
        content: [
          { type: "text", text: "Looking." },
          { type: "tool_use", id: "call_1", name: "get_weather", input: { city: "Łódź" } },
          { type: "tool_use", id: "call_2", name: "get_time", input: {} },
        ],
        stop_reason: "tool_use",
      },
      "openai-responses": {
        output: [
          { type: "message", content: [{ type: "output_text", text: "Looking." }] },
          {
            type: "function_call",
            call_id: "call_1",
            name: "get_weather",
            arguments: '{"city":"Łódź"}',
            status: "completed",
          },
          {
            type: "function_call",
            call_id: "call_2",
            name: "get_time",
            arguments: "{}",
            status: "completed",
          },
        ],
        status: "completed",
      },
    },
    // A stream that passes through keeps empty arguments empty; a whole answer has `{}`.
    except: {
      "openai-chat -> openai-chat": {
        choices: [
          {
            message: {
              content: "Looking.",
              tool_calls: [
                { id: "call_1" },
                {
                  id: "call_2",
                  function: { arguments: expect.stringMatching(/^(\{\})?$/) as string },
                },
              ],
            },
          },
        ],
      },
    },
  },
  {
    what: "text that was cut by its bound",
    answers: {
      "openai-chat": chat({
        message: { role: "assistant", content: "So the" },
        finish_reason: "length",
      }),
      "anthropic-messages": message([{ type: "text", text: "So the" }], {
        stop_reason: "max_tokens",
      }),
      "openai-responses": response([said("So the", "incomplete")], {
        status: "incomplete",
        incomplete_details: { reason: "max_output_tokens" },
      }),
      "google-generate": gemini([{ text: "So the" }], "MAX_TOKENS"),
    },
    sees: {
      "openai-chat": { choices: [{ message: { content: "So the" }, finish_reason: "length" }] },
      "anthropic-messages": {
        content: [{ type: "text", text: "So the" }],
        stop_reason: "max_tokens",
      },
      "openai-responses": {
        output: [
          {
            type: "message",
            status: "incomplete",
            content: [{ type: "output_text", text: "So the" }],
          },
        ],
        status: "incomplete",
        incomplete_details: { reason: "max_output_tokens" },
      },
    },
  },
  {
    what: "text that ended at a stop text",
    answers: {
      "openai-chat": chat({
        message: { role: "assistant", content: "So" },
        finish_reason: "stop",
        stop_reason: "END",
      }),
      "anthropic-messages": message([{ type: "text", text: "So" }], {
        stop_reason: "stop_sequence",
        stop_sequence: "END",
      }),
      "openai-responses": response([said("So")]),
      "google-generate": gemini([{ text: "So" }], "STOP"),
    },
    sees: {
      "openai-chat": {
        choices: [{ message: { content: "So" }, finish_reason: "stop", stop_reason: "END" }],
      },
      "anthropic-messages": {
        content: [{ type: "text", text: "So" }],
        stop_reason: "stop_sequence",
        stop_sequence: "END",
      },
      "openai-responses": {
        output: [{ type: "message", content: [{ type: "output_text", text: "So" }] }],
        status: "completed",
      },
    },
    // Neither of the two tells a stop text from another end.
    except: {
      "openai-chat -> openai-responses": {
        choices: [{ message: { content: "So" }, finish_reason: "stop" }],
      },
      "openai-chat -> google-generate": {
        choices: [{ message: { content: "So" }, finish_reason: "stop" }],
      },
      "anthropic-messages -> openai-responses": { stop_reason: "end_turn", stop_sequence: null },
      "anthropic-messages -> google-generate": { stop_reason: "end_turn", stop_sequence: null },
    },
  },
  {
    what: "text that was filtered",
    answers: {
      "openai-chat": chat({
        message: { role: "assistant", content: "So" },
        finish_reason: "content_filter",
      }),
      "anthropic-messages": message([{ type: "text", text: "So" }], { stop_reason: "refusal" }),
      "openai-responses": response([said("So", "incomplete")], {
        status: "incomplete",
        incomplete_details: { reason: "content_filter" },
      }),
      "google-generate": gemini([{ text: "So" }], "SAFETY"),
    },
    sees: {
      "openai-chat": { choices: [{ message: { content: "So" }, finish_reason: "content_filter" }] },
      "anthropic-messages": { content: [{ type: "text", text: "So" }], stop_reason: "refusal" },
      "openai-responses": {
        output: [{ type: "message", content: [{ type: "output_text", text: "So" }] }],
        status: "incomplete",
        incomplete_details: { reason: "content_filter" },
      },
    },
  },
  {
    what: "a refusal in words",
    answers: {
      "openai-chat": chat({
        message: { role: "assistant", content: null, refusal: "I will not." },
        finish_reason: "stop",
      }),
      "anthropic-messages": message([], {
        stop_reason: "refusal",
        stop_details: { type: "refusal", category: "cyber", explanation: "I will not." },
      }),
      "openai-responses": response([
        {
          id: "msg_1",
          type: "message",
          role: "assistant",
          status: "completed",
          content: [{ type: "refusal", refusal: "I will not." }],
        },
      ]),
      "google-generate": gemini([{ text: "I will not." }], "PROHIBITED_CONTENT"),
    },
    sees: {
      "openai-chat": {
        choices: [{ message: { content: null, refusal: "I will not." }, finish_reason: "stop" }],
      },
      "anthropic-messages": {
        content: [{ type: "text", text: "I will not." }],
        stop_reason: "refusal",
      },
      "openai-responses": {
        output: [{ type: "message", content: [{ type: "refusal", refusal: "I will not." }] }],
        status: "completed",
      },
    },
    except: {
      "openai-chat -> anthropic-messages": {
        choices: [
          { message: { content: null, refusal: "I will not." }, finish_reason: "content_filter" },
        ],
      },
      "anthropic-messages -> anthropic-messages": {
        content: [],
        stop_reason: "refusal",
        stop_details: { type: "refusal", category: "cyber", explanation: "I will not." },
      },
      // Gemini has no words for a refusal but those of the answer.
      "openai-chat -> google-generate": {
        choices: [{ message: { content: "I will not." }, finish_reason: "content_filter" }],
      },
      "openai-responses -> google-generate": {
        output: [{ type: "message", content: [{ type: "output_text", text: "I will not." }] }],
        status: "incomplete",
        incomplete_details: { reason: "content_filter" },
      },
    },
  },
];
