import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { chatRequest, chatResponse } from "../../../../test/support/canonical-arbitraries.ts";
import {
  messagesRequest,
  messagesResponse,
} from "../../../../test/support/messages-arbitraries.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { ResponseAssembler } from "../../canonical/response-assembler.ts";
import { responseParts, type CanonicalResponse } from "../../canonical/response.ts";
import { SseDecoder } from "../../upstream/sse-decoder.ts";
import { anthropicMessages } from "./index.ts";

/** Everything that JSON would carry: a wire body as the other side parses it. */
const overTheWire = (body: unknown): unknown => JSON.parse(JSON.stringify(body));

describe("requests survive decode(encode(x))", () => {
  test("in the same dialect, in every field and without a loss", () => {
    fc.assert(
      fc.property(messagesRequest, (request) => {
        const { body, losses } = anthropicMessages.encodeRequest(request, {
          upstreamModel: request.model,
          stream: request.stream,
          providerId: "acme",
        });
        expect(losses).toEqual([]);
        expect(anthropicMessages.decodeRequest(overTheWire(body))).toEqual(request);
      }),
      { numRuns: 500 },
    );
  });

  test("or are refused, or give a valid Messages body, if they are from a chat client", () => {
    let written = 0;
    fc.assert(
      fc.property(
        chatRequest,
        fc.constantFrom("claude-opus-4-7", "claude-3-5-haiku-20241022", "kimi-k2"),
        (asked, upstreamModel) => {
          // Several answers, log probabilities and sound are always refused.
          const {
            choiceCount: _count,
            logProbabilities: _probabilities,
            modalities: _modalities,
            ...request
          } = asked;
          const body = encoded(
            () =>
              anthropicMessages.encodeRequest(request, {
                upstreamModel,
                stream: request.stream,
                providerId: "acme",
              }).body,
          );
          if (body === undefined) return;
          written += 1;
          expect(anthropicMessages.decodeRequest(overTheWire(body)).model).toBe(upstreamModel);
          keepsTheRules(overTheWire(body) as WireBody);
        },
      ),
      { numRuns: 1_000 },
    );
    expect(written).toBeGreaterThan(200);
  });
});

/** The body; undefined where the request was refused for its content. */
function encoded(encode: () => JsonObject): JsonObject | undefined {
  try {
    return encode();
  } catch (error) {
    if (error instanceof GatewayError && error.code === "unsupported_content") return undefined;
    throw error;
  }
}

interface WireBody {
  max_tokens: number;
  thinking?: { budget_tokens?: number };
  temperature?: number;
  messages: { role: string; content: string | JsonObject[] }[];
  tools?: { name: string; input_schema: JsonObject }[];
}

/** What Anthropic answers with 400, as far as its documentation says. */
function keepsTheRules({
  messages,
  tools = [],
  max_tokens: bound,
  thinking,
  temperature = 1,
}: WireBody): void {
  expect(messages.map(({ role }) => role)).toEqual(
    messages.map((_, index) => (index % 2 === 0 ? "user" : "assistant")),
  );
  expect(temperature).toBeLessThanOrEqual(1);
  expect(thinking?.budget_tokens ?? 0).toBeLessThan(bound);
  for (const { name, input_schema: schema } of tools) {
    expect(name).toMatch(/^[a-zA-Z0-9_-]{1,128}$/);
    expect(schema).toHaveProperty("type", "object");
  }
  let open: unknown[] = [];
  for (const { role, content } of messages) {
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    expect(blocks.length).toBeGreaterThan(0);
    const answered = blocks
      .filter((block) => block.type === "tool_result")
      .map((block) => block.tool_use_id);
    if (role === "user") expect(answered).toEqual(open as never);
    expect(blocks.slice(0, answered.length).every((block) => block.type === "tool_result")).toBe(
      true,
    );
    open = blocks.filter((block) => block.type === "tool_use").map((block) => block.id);
    for (const block of blocks)
      if (block.type === "text") expect(String(block.text).trim()).not.toBe("");
  }
}

describe("responses survive decode(encode(x))", () => {
  test("whole", () => {
    fc.assert(
      fc.property(messagesResponse, (response) => {
        const decoded = anthropicMessages.decodeResponse(
          overTheWire(anthropicMessages.encodeResponse(response)),
          {},
        );
        expect(decoded).toEqual(response);
      }),
      { numRuns: 500 },
    );
  });

  test("as a stream, at any split", () => {
    fc.assert(
      fc.property(messagesResponse, fc.nat(), (response, cut) => {
        expect(throughStream(response, cut)).toEqual(response);
      }),
      { numRuns: 300 },
    );
  });

  test("with the same result whole and streamed, if they are from a chat server", () => {
    fc.assert(
      fc.property(chatResponse, fc.nat(), (response, cut) => {
        const whole = anthropicMessages.decodeResponse(
          overTheWire(anthropicMessages.encodeResponse(response)),
          {},
        );
        expect(throughStream(response, cut)).toEqual(whole);
      }),
      { numRuns: 300 },
    );
  });
});

/** The answer as a client of the gateway would put it together, out of frames cut in two. */
function throughStream(response: CanonicalResponse, cut: number): CanonicalResponse {
  const encoder = anthropicMessages.createStreamEncoder();
  const bytes = Buffer.from(
    responseParts(response)
      .flatMap((part) => encoder.encode(part))
      .join(""),
  );
  const sse = new SseDecoder();
  const at = cut % (bytes.length + 1);
  const events = [
    ...sse.push(bytes.subarray(0, at)),
    ...sse.push(bytes.subarray(at)),
    ...sse.end(),
  ];
  const decoder = anthropicMessages.createStreamDecoder({});
  const assembler = new ResponseAssembler();
  for (const event of events) for (const part of decoder.decode(event)) assembler.add(part);
  for (const part of decoder.end()) assembler.add(part);
  expect(assembler.error).toBeUndefined();
  return assembler.response();
}
