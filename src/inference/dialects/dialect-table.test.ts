import { describe, expect, test } from "bun:test";
import { dialectRequestCases } from "../../../test/support/dialect-request-cases.ts";
import type { DialectId } from "../canonical/dialect-id.ts";
import type { JsonObject } from "../canonical/json.ts";
import type { CanonicalRequest } from "../canonical/request.ts";
import type { CanonicalResponse } from "../canonical/response.ts";
import type { ClientDialect, UpstreamDialect } from "./dialect.ts";
import { openaiChat } from "./openai-chat/openai-chat.ts";

/** Dialects under test; a new one gets a row here and a column in every case. */
const dialects: Partial<Record<DialectId, ClientDialect & UpstreamDialect>> = { "openai-chat": openaiChat };

describe("a canonical request on each wire", () => {
  for (const { what, canonical, wire } of dialectRequestCases) {
    test(what, () => {
      for (const [id, dialect] of Object.entries(dialects) as [DialectId, ClientDialect & UpstreamDialect][]) {
        const request: CanonicalRequest = { dialect: id, model: "m", stream: false, ...canonical };
        const expected = wire[id];
        expect(expected, `${what} has no row for ${id}`).toBeDefined();
        const { body, losses } = dialect.encodeRequest(request, { upstreamModel: "m", stream: false, providerId: "acme" });
        expect(body).toStrictEqual({ model: "m", ...expected });
        expect(losses).toEqual([]);
        expect(dialect.decodeRequest({ model: "m", ...expected })).toStrictEqual(request);
      }
    });
  }
});

interface ResponseCase {
  what: string;
  canonical: CanonicalResponse;
  wire: Partial<Record<DialectId, JsonObject>>;
}

const head = { id: "r1", model: "m", createdAtSeconds: 1_763_700_000 };
const chatHead = { id: "r1", object: "chat.completion", created: 1_763_700_000, model: "m" };

const responseCases: ResponseCase[] = [
  {
    what: "text with usage",
    canonical: {
      ...head,
      choices: [{ index: 0, parts: [{ type: "text", text: "Sunny." }], finish: { reason: "stop" } }],
      usage: {
        usage: { inputTokens: 10, cacheReadTokens: 100, cacheWriteTokens: 20, outputTokens: 3, reasoningTokens: 4 },
        estimated: false,
        clamped: false,
      },
    },
    wire: {
      "openai-chat": {
        ...chatHead,
        choices: [{ index: 0, message: { role: "assistant", content: "Sunny.", refusal: null }, logprobs: null, finish_reason: "stop" }],
        usage: {
          prompt_tokens: 130, completion_tokens: 7, total_tokens: 137,
          prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 20 }, completion_tokens_details: { reasoning_tokens: 4 },
        },
      },
    },
  },
  {
    what: "a call without arguments",
    canonical: {
      ...head,
      choices: [
        {
          index: 0,
          parts: [{ type: "tool-call", kind: "function", id: "c", name: "f", arguments: "{}" }],
          finish: { reason: "tool_calls" },
        },
      ],
    },
    wire: {
      "openai-chat": {
        ...chatHead,
        choices: [{
          index: 0,
          message: {
            role: "assistant",
            content: null,
            refusal: null,
            tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
          },
          logprobs: null,
          finish_reason: "tool_calls",
        }],
      },
    },
  },
  {
    what: "plain thoughts before text that was cut by its bound",
    canonical: {
      ...head,
      choices: [{ index: 0, parts: [{ type: "reasoning", text: "hm" }, { type: "text", text: "So" }], finish: { reason: "length" } }],
    },
    wire: {
      "openai-chat": {
        ...chatHead,
        choices: [{
          index: 0,
          message: { role: "assistant", content: "So", refusal: null, reasoning_content: "hm" },
          logprobs: null,
          finish_reason: "length",
        }],
      },
    },
  },
];

describe("a canonical answer on each wire", () => {
  for (const { what, canonical, wire } of responseCases) {
    test(what, () => {
      for (const [id, dialect] of Object.entries(dialects) as [DialectId, ClientDialect & UpstreamDialect][]) {
        const expected = wire[id];
        expect(expected, `${what} has no row for ${id}`).toBeDefined();
        expect(dialect.encodeResponse(canonical)).toStrictEqual(expected ?? {});
        expect(dialect.decodeResponse(expected, {})).toStrictEqual(canonical);
      }
    });
  }
});
